"""What neighbour sampling and DP-SGD guarantee every client of the benchmark: nothing is trained."""

MEASURED["client_privacy"] = {
    "reads": [],
    "files": ["table.csv", "page.md"],
}
