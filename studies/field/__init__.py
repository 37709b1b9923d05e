"""Questions in the setting that most papers on subgraph federated learning share."""
