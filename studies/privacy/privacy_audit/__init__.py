"""Attacks on what leaves clients: edges, properties, features, and lower bounds on ε."""
