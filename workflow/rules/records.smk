"""Published records: a run whose record has the right key is not trained for the tables, and needs no data."""

from functools import cache


@cache  # a record is read once, however many tables ask
def source(artefact):
    """The file that tables read a result from: its record, whose key says all, so that its age does not matter; or the result."""
    return ancient(str(artefact.record)) if artefact.source == artefact.record else artefact.result


localrules: publish


rule publish:
    """Copy every result of the configuration that has no record yet to the records that git keeps."""
    message: "Publish the results in {config[records][directory]}"
    input: [source(artefact) for artefact in (*RUNS.values(), *CUTS.values(), *GRAPHS.values())]
    log: f"{OUTPUT}/logs/publish.log"
    shell: feddep(f"publish --config {CONFIG}")
