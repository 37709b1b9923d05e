"""Labels that clients hold, and that trained models predict."""

MEASURED["label_distributions"] = {
    "reads": ["model"],
    "files": ["table.csv", "page.md", "figure.svg", "figure.png"],
}
