"""The papers' numbers, at places that were read in the papers' own tables."""

from feddep.reporting import published


def test_sweeps_name_their_values() -> None:
    over_c = published.sweep("prototypes", "method")
    assert sorted(over_c.loc[over_c["method"] == "feddep", "value"].unique()) == [3, 5, 10, 15, 20]
    assert over_c.loc[over_c["method"] != "feddep", "value"].isna().all()
    sizes = {
        option: len(published.sweep(option, "setting"))
        for option in ("batch_size", "local_epochs", "prototypes", "fanout")
    }
    assert sizes == {"batch_size": 9, "local_epochs": 6, "prototypes": 0, "fanout": 0}
    assert published.sweep("local_epochs", "method").empty
