"""What training generators across clients costs, beside the formulas of FedDEP's Table 1."""
