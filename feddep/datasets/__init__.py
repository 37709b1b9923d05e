"""Datasets: what there is and where to get it (registry), raw files (fetching), their content
(parsing), synthetic graphs.
"""
