"""Parts that several methods share: stand-ins for nodes of other clients, names and answers that a
server passes on, impairing.
"""
