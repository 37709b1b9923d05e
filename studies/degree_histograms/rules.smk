"""How many nodes have which degree, with differential privacy for edges."""

MEASURED["degree_histograms"] = {
    "reads": [],
    "files": ["table.csv", "page.md", "figure.svg", "figure.png"],
}
