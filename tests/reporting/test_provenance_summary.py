"""Each difference in how runs were made is told once, with the number of runs it concerns."""

from fabricated import Results

from feddep.reporting import provenance_summary, runs


def test_summary(results: Results) -> None:
    record = provenance_summary.summarise(results.config, runs.load(results.config))
    assert record["runs"] == 15
    assert record["training_seconds"] == 22.5
    assert (record["first"], record["last"]) == ("2025-01-01T12:00:00+00:00", "2025-01-03T12:00:00+00:00")
    assert record["data"] == {"cora": ["f1" * 32]}
    assert record["git"] == [{"value": {"commit": "c0ffee", "dirty": False}, "runs": 15}]
    assert [(entry["value"]["torch"], entry["runs"]) for entry in record["packages"]] == [("2.4.0", 10), ("2.5.0", 5)]
    assert record["device"] == [{"value": "cpu", "runs": 15}]
    assert record["configuration"] == results.told


def test_other_data_shows(results: Results) -> None:
    finished = runs.load(results.config)
    finished[0].provenance["data_fingerprint"] = "a0" * 32
    finished[1].provenance.pop("device")
    record = provenance_summary.summarise(results.config, finished)
    assert record["data"] == {"cora": ["a0" * 32, "f1" * 32]}
    assert {(entry["value"], entry["runs"]) for entry in record["device"]} == {("cpu", 14), (None, 1)}


def test_the_configuration_is_what_the_runs_come_from(results: Results) -> None:
    """What other runs are asked for, and with what, must not change where these come from."""
    settings = {**results.config["settings"], "other": {"rounds": 1}}
    methods = {**results.config["methods"], "halo": {}}
    studies = {"a": {"runs": [{"methods": {"fedavg": {}}}]}, "b": {"runs": [{"methods": {"halo": {}}}]}}
    more = {**results.config, "settings": settings, "methods": methods, "studies": studies, "quality": [{}]}
    finished = runs.load(results.config)
    assert provenance_summary.summarise(more, finished)["configuration"] == results.told

    fedavg = [one for one in finished if one.run.method == "fedavg"]
    part = provenance_summary.summarise(more, fedavg, "a")["configuration"]
    assert part.pop("studies") == {"a": studies["a"]}
    assert part.pop("methods") == {"fedavg": {}}
    assert part.items() <= results.told.items()
