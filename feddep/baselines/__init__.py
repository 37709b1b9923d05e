"""What the baselines FedGNN, FedGraph and FedGSL consist of: clients that convolve with more than their own subgraph."""
