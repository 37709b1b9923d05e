"""An experiment: the runs that a configuration asks for, their keys, their records and where their
numbers come from.
"""
