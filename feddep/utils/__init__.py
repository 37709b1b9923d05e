"""Utilities of every other package: errors, files, random streams, progress bars, validated
parameters.
"""
