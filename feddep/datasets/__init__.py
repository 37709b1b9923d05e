"""Datasets: what there is and where to get it (registry), raw files (fetching), their content (parsing, formats, canonical).

Importing this package is cheap; :func:`feddep.datasets.parsing.parse`, which needs SciPy, is imported by those that call it.
"""

from feddep.datasets.fetching import download
from feddep.datasets.registry import REGISTRY, Dataset

__all__ = ["REGISTRY", "Dataset", "download"]
