"""FedDEP bench: a reproducible benchmark of subgraph federated learning."""

__version__ = "0.1.0"
