"""The original text files ``NAME.content`` and ``NAME.cites`` of a citation graph (Sen et al., AI Magazine 29(3), 2008).

A line of ``.content`` is a paper's id, a 0 or 1 for each word, and the name of its class; a line of ``.cites`` is the id of
a cited paper and that of the citing one.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph


def read(directory: Path, release: Release) -> Graph:
    """The graph in the order of the lines of ``.content``, classes numbered as in ``release.class_names``."""
    content, cites = (directory / name for name in release.files)
    papers = [line.split("\t") for line in content.read_text(encoding="utf-8").splitlines()]
    number = {paper[0]: node for node, paper in enumerate(papers)}
    classes = {name: index for index, name in enumerate(release.class_names)}
    labels = np.array([classes[paper[-1]] for paper in papers])
    words = np.array(
        [(node, word) for node, paper in enumerate(papers) for word, there in enumerate(paper[1:-1]) if there == "1"]
    )
    features = sp.csr_matrix((np.ones(len(words)), tuple(words.T)), shape=(len(papers), len(papers[0]) - 2))
    pairs = [line.split("\t") for line in cites.read_text(encoding="utf-8").splitlines()]
    edges = np.array([(number[cited], number[citing]) for cited, citing in pairs])
    return Graph.from_edges(edges, features, labels, len(classes))
