"""What trained models tell of their nodes, and what party B is sent tells of edges, in vertical
training.
"""
