"""Where all numbers of a configuration come from: code, packages, devices, data, time."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from feddep.config import variants
from feddep.config.loading import MEASURED
from feddep.reporting.runs import FinishedRun
from feddep.utils.files import canonical_json

_SUMMED_UP = ("time", "seconds", "seconds_before", "seconds_by_round", "data_fingerprint", "code")


_CHOICES = ("tables", "studies", "audit", *MEASURED)
"""Keys of a configuration that only say which runs there are."""


def summarise(config: Mapping[str, Any], finished: list[FinishedRun], study: str | None = None) -> dict[str, Any]:
    """What all runs were made with, each difference once.

    Args:
        config: as it was resolved.
        finished: the runs.
        study: the study that they are of; None for those of the main tables.

    Returns:
        configuration: what of it these runs come from: the rows of the main tables, or the study; the settings, datasets and
        methods that the runs have; and all that is no matter of choice;
        runs: how many; training_seconds: their sum; first, last: when the runs were computed, UTC;
        data: for each dataset the fingerprints of the graphs that were trained on, one if all is well;
        and every other entry of the runs' provenance (git, packages, device, …): its distinct values, each with the number
        of runs that have it.
    """
    records = [one.provenance for one in finished]
    times = sorted(record["time"] for record in records if record.get("time"))
    entries = sorted({entry for record in records for entry in record} - {*_SUMMED_UP})
    return {
        "configuration": _part(config, finished, study),
        "runs": len(finished),
        "training_seconds": round(sum(record.get("seconds") or 0.0 for record in records), 1),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "data": _fingerprints(finished),
        **{entry: _distinct([record.get(entry) for record in records]) for entry in entries},
    }


def _part(config: Mapping[str, Any], finished: list[FinishedRun], study: str | None) -> dict[str, Any]:
    """Without what other runs come from, so that it is the same whatever else a configuration asks for."""
    spelled = {
        "settings": {one.run.setting for one in finished},
        "datasets": {one.run.dataset for one in finished},
        "methods": {one.run.method for one in finished},
    }
    used = {section: {variants.base(name) for name in names} for section, names in spelled.items()}
    entries = {section: {name: config[section][name] for name in config[section] if name in used[section]} for section in used}
    choice = {"tables": config["tables"]} if study is None else {"studies": {study: config["studies"][study]}}
    return {**{key: value for key, value in config.items() if key not in _CHOICES}, **entries, **choice}


def _fingerprints(finished: list[FinishedRun]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for one in finished:
        found.setdefault(one.run.dataset, set()).add(one.provenance.get("data_fingerprint", "unknown"))
    return {dataset: sorted(found[dataset]) for dataset in sorted(found)}


def _distinct(values: list[Any]) -> list[dict[str, Any]]:
    counts = Counter(canonical_json(value) for value in values)
    by_text = {canonical_json(value): value for value in values}
    return [{"value": by_text[text], "runs": counts[text]} for text in sorted(counts)]
