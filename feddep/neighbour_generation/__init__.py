"""Missing neighbour generation of FedSage+ (Zhang et al., 2021): training NeighGen, mending subgraphs, measuring both."""
