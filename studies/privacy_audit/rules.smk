"""Attacks on what leaves clients: edges, properties, features, and lower bounds on ε."""

MEASURED["privacy_audit"] = {
    "reads": [],
    "files": ["table.csv", "page.md", "figure.svg", "figure.png", "canaries.csv", "properties.csv", "reconstruction.csv"],
}
