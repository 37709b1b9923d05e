"""Neighbourhoods that NeighGen mends beside the true ones."""

MEASURED["neighbourhoods"] = {
    "reads": ["generator"],
    "files": ["table.csv", "page.md", "figure.svg", "figure.png", "missing_neighbours.csv"],
}
