"""Labels that prototypes tell of a client's nodes, and what classifiers make of generated neighbours."""

MEASURED["label_shortcut"] = {
    "reads": ["pretrain", "prototypes", "generator", "model"],
    "files": ["table.csv", "page.md"],
}
