"""Spelled names: what differs from an entry can be read off the name, and the name from what differs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.config import variants
from feddep.config.loading import entry, validate
from feddep.utils.errors import ConfigError

VALUES = st.one_of(
    st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["all", "dec"])
)


@given(st.dictionaries(st.sampled_from(["depth", "rate", "kind"]), VALUES))
def test_what_is_spelled_is_read(changes):
    spelled = variants.format_name("feddep", changes)
    assert variants.read(spelled) == ("feddep", changes)
    assert variants.base(spelled) == "feddep"


def test_names_are_readable():
    changes = {"prototypes": 3, "bernoulli_rate": 0.5, "clustering": "dec", "labelled": None}
    assert variants.format_name("feddep", changes) == "feddep,prototypes=3,bernoulli_rate=0.5,clustering=dec,labelled=null"
    assert variants.format_name("fedavg", {}) == "fedavg"


@pytest.mark.parametrize("spelled", ["feddep,prototypes", "feddep,", "feddep,depth=1,depth=2"])
def test_what_cannot_be_read_is_named(spelled):
    with pytest.raises(ConfigError, match="key=value"):
        variants.read(spelled)


def test_lists_take_each_of_their_values():
    found = list(variants.combinations({"a": [1, 2], "b": "x", "c": [True, None]}))
    assert found == [{"a": a, "b": "x", "c": c} for a in (1, 2) for c in (True, None)]
    assert list(variants.combinations({})) == [{}]


SPELLED = st.one_of(
    st.text(alphabet='feddepqicktny,=[]{}:"-.0123456789', max_size=40),
    st.builds(
        lambda name, key, value: f"{name},{key}={value}",
        st.sampled_from(["feddep", "quick", "tiny"]),
        st.sampled_from(["prototypes", "rounds", "labelled", "embedding", "synthetic"]),
        st.sampled_from(
            ["1", "1.0", "1e999", "NaN", "true", "null", "[1]", "{}", '{"tiny": 2}', "9" * 5000, "[" * 9999, '"2"', ""]
        ),
    ),
)
CONFIG = validate(
    {
        "datasets": {"tiny": {"synthetic": {}}},
        "clients": [2],
        "seeds": [0],
        "settings": {"quick": {}},
        "methods": {"feddep": {}},
    }
)


@given(SPELLED)
def test_any_spelled_name_is_an_entry_or_refused_in_one_sentence(spelled: str):
    for section in ("datasets", "settings", "methods"):
        try:
            options = entry(CONFIG, section, spelled)
        except ConfigError as error:
            check_sentence(str(error))
        else:
            assert set(options) >= set(CONFIG[section].get(variants.base(spelled), {}))


def check_sentence(text: str) -> None:
    assert text.isprintable()
    assert len(text) < 11_000


def test_a_value_that_is_not_allowed_is_named():
    with pytest.raises(ConfigError, match=r"methods\.feddep\.prototypes is 1\.5; it must be an integer or null"):
        entry(CONFIG, "methods", "feddep,prototypes=1.5")
    with pytest.raises(ConfigError, match=r"has the value \"\[1\]\"; letters, digits and _\.\+- are allowed"):
        entry(CONFIG, "methods", "feddep,prototypes=[1]")
    with pytest.raises(ConfigError, match=r"settings\.quick\.round is not a known key"):
        entry(CONFIG, "settings", "quick,round=1")
    with pytest.raises(ConfigError, match=r"settings\.quick\.rounds is 1\.0; it must be an integer"):
        entry(CONFIG, "settings", "quick,rounds=1.0")
