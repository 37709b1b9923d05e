"""Which baseline the methods of a paired study are compared with."""

from feddep.reporting.studies.paired import _references


def test_variants_of_the_baseline_are_paired_by_the_options_that_they_vary() -> None:
    names = [
        f"{method},delta=1e-06,epsilon={budget}{rest}"
        for method, rest in (("gap", ""), ("vesper_gin", ",weights=frozen"))
        for budget in (2, 8)
    ]
    assert _references(names) == {names[2]: names[0], names[3]: names[1]}


def test_otherwise_the_first_is_the_baseline_of_all() -> None:
    assert _references(["fedavg", "feddep"]) == {"feddep": "fedavg"}
    assert _references(["gap,epsilon=2", "gap,epsilon=8"]) == {"gap,epsilon=8": "gap,epsilon=2"}
    names = ["gap,epsilon=2", "gap,epsilon=8", "vesper_gin,epsilon=4"]
    assert _references(names) == dict.fromkeys(names[1:], names[0])


def test_a_default_that_is_not_spelled_out_is_a_value() -> None:
    names = [
        f"{method}{encodings},epsilon=2"
        for method in ("gap", "vesper_gin")
        for encodings in ("", ",encodings=true")
    ]
    assert _references(names) == {names[2]: names[0], names[3]: names[1]}
    assert _references(["feddep,depth=1", "fedavg", "feddep"]) == dict.fromkeys(
        ["fedavg", "feddep"], "feddep,depth=1"
    )
