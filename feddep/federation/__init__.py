"""Federated learning: clients that hold data, a server that holds none, and the border between them."""
