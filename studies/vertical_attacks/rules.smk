"""What trained models tell of their nodes, and what party B is sent tells of edges, in vertical training."""

MEASURED["vertical_attacks"] = {
    "reads": [],
    "files": ["table.csv", "page.md", "figure.svg", "figure.png"],
}
