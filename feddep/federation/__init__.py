"""Federated learning: clients that hold data, a server that holds none, and the boundary between
them.
"""
