"""What the random draws of neighbours hide of a graph's edges: the published guarantee, and the exact one."""
