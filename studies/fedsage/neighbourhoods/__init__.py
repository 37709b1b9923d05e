"""Neighbourhoods that NeighGen mends beside the true ones."""
