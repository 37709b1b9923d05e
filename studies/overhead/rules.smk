"""What training generators across clients costs, beside the formulas of FedDEP's Table 1."""

MEASURED["overhead"] = {
    "reads": ["pretrain", "prototypes", "generator"],
    "files": ["table.csv", "page.md"],
}
