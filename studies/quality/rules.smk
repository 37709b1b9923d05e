"""What FedDEP's generators generate beside guesses that need no training."""

MEASURED["quality"] = {
    "reads": ["prototypes"],
    "files": ["table.csv", "page.md"],
}
