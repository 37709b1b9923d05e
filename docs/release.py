"""Files that describe a release, from ``CITATION.cff`` and the schema of the tables of runs.

``python docs/release.py`` writes ``.zenodo.json``, which Zenodo reads; with ``--url`` also
``croissant.json``, metadata of the tables of runs and, with ``--divisions``, of what ``feddep
export`` wrote, in the format Croissant 1.1 (MLCommons).
"""

import argparse
import hashlib
import json
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from feddep.experiment import runs

ROOT = Path(__file__).resolve().parent.parent
_CROISSANT = "http://mlcommons.org/croissant/"
_TERMS = ("column", "extract", "field", "fileObject", "key", "recordSet", "source")
"""Of Croissant's vocabulary, those that are used here."""
_CONTEXT = {
    "@language": "en",
    "@vocab": "http://schema.org/",
    "sc": "http://schema.org/",
    "cr": _CROISSANT,
    "dct": "http://purl.org/dc/terms/",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{term: f"cr:{term}" for term in _TERMS},
}
_TYPES = {
    "string": "sc:Text",
    "Int64": "sc:Integer",
    "float64": "sc:Float",
    "boolean": "sc:Boolean",
}
"""Croissant's types, by pandas' ones."""


def main() -> None:
    """Write the files to the working folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="where the files of the release are")
    parser.add_argument("--divisions", type=Path, help="a folder that feddep export wrote")
    given = parser.parse_args()
    files = {".zenodo.json": zenodo()}
    if given.url:
        files["croissant.json"] = croissant(given.url, date.today().isoformat(), given.divisions)
    for name, content in files.items():
        Path(name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def citation() -> dict[str, Any]:
    """The content of ``CITATION.cff``."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return found


def zenodo() -> dict[str, Any]:
    """What Zenodo says of the release; where the file is there, it reads no other."""
    cited = citation()
    papers = [
        {"identifier": each["value"], "relation": "cites", "resource_type": "publication-article"}
        for work in cited["references"]
        for each in work.get("identifiers", ())
    ]
    return {
        **{name: cited[name] for name in ("title", "version", "license", "keywords")},
        "upload_type": cited["type"],
        "description": cited["abstract"],
        "creators": [{"name": author["name"]} for author in cited["authors"]],
        "related_identifiers": papers,
    }


def croissant(url: str, published: str, divisions: Path | None = None) -> dict[str, Any]:
    """Metadata of the tables of runs and of exported divisions.

    Args:
        url: where the files of the release are, in their folders.
        published: its date, as ISO 8601 has it.
        divisions: a folder that ``feddep export`` wrote.
    """
    cited = citation()
    tables = runs.tables(ROOT / "results" / "runs")
    files = [_file(table, ROOT, url, "text/csv", "a row a run") for table in tables]
    for archive in sorted(divisions.glob("*/*.npz")) if divisions else ():
        what = (
            "features, labels and edges" if archive.stem == "graph" else "a split and a partition"
        )
        files.append(_file(archive, divisions.parent, url, "application/x-npz", what))
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "dct:conformsTo": f"{_CROISSANT}1.1",
        "name": "FedDEP-bench-runs",
        "description": cited["abstract"],
        "license": f"https://spdx.org/licenses/{cited['license']}",
        "url": url,
        "creator": [{"@type": "sc:Organization", **author} for author in cited["authors"]],
        "datePublished": published,
        "version": cited["version"],
        "keywords": cited["keywords"],
        "distribution": files,
        "recordSet": [_records(table) for table in tables],
    }


def _file(path: Path, root: Path, url: str, form: str, what: str) -> dict[str, str]:
    name = path.relative_to(root).as_posix()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "description": what,
        "contentUrl": f"{url}/{name}",
        "encodingFormat": form,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _records(table: Path) -> dict[str, Any]:
    """The columns of a table of runs."""
    return {
        "@type": "cr:RecordSet",
        "@id": table.stem,
        "name": table.stem,
        "key": {"@id": f"{table.stem}/key"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table.stem}/{name}",
                "name": name,
                "description": f"{column.meaning} ({column.unit})"
                if column.unit
                else column.meaning,
                "dataType": _TYPES[column.type],
                "source": {
                    "fileObject": {"@id": table.relative_to(ROOT).as_posix()},
                    "extract": {"column": name},
                },
            }
            for name, column in runs.SCHEMA.items()
        ],
    }


if __name__ == "__main__":
    main()
