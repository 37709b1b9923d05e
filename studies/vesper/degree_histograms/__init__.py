"""How many nodes have which degree, with differential privacy for edges."""
