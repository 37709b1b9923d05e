"""Labels that prototypes tell of a client's nodes, and what classifiers make of generated
neighbours.
"""
