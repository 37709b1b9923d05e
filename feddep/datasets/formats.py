"""Published formats of raw files: ``READERS`` has a function ``(directory, release) -> Graph`` for
each.
"""

import json
import pickle
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from feddep.datasets.public_graphs import Release
from feddep.graph.graph import Graph, disjoint_union
from feddep.utils.errors import DataError

CSR = ("data", "indices", "indptr", "shape")
"""What an archive has of a matrix: the array ``PART_data`` and so on."""
_GENDER, _CLASS_YEAR = 1, 5
"""Columns of Facebook's attributes that are a class; 1 is female, 2 male."""
_ROWS = 100_000
"""Rows of features that are made sparse at a time, as that takes several times their memory."""


def read_planetoid(directory: Path, release: Release) -> Graph:
    """The Planetoid files ``ind.NAME.*`` (Yang et al. 2016): pickles of sparse features, one-hot
    labels and neighbour lists.

    Nodes 0 … len(allx) − 1 have their features in ``allx`` and labels in ``ally``; line k of
    ``test.index`` is the node to which row k of ``tx`` and ``ty`` belongs.  In CiteSeer 15 nodes of
    the test range are listed in no file; as is usual, they are kept as nodes without features,
    without neighbours and with class 0, the argmax of an empty row.
    """
    paths = {name.split(".", 2)[2]: directory / name for name in release.files}
    allx, tx = (_unpickle(paths[part]).matrix() for part in ("allx", "tx"))
    one_hot = np.concatenate([_unpickle(paths[part]) for part in ("ally", "ty")])
    neighbours = _unpickle(paths["graph"])
    nodes = np.concatenate(
        [np.arange(allx.shape[0]), np.loadtxt(paths["test.index"], dtype=np.int64)]
    )
    num_nodes = int(nodes.max()) + 1

    rows = sp.vstack([allx, tx]).tocoo()
    features = sp.csr_matrix(
        (rows.data, (nodes[rows.row], rows.col)), shape=(num_nodes, rows.shape[1])
    )
    labels = np.zeros(num_nodes, dtype=np.int64)
    labels[nodes] = one_hot.argmax(axis=1)
    edges = np.array([(node, other) for node, others in neighbours.items() for other in others])
    return Graph.from_edges(edges, features, labels, one_hot.shape[1])


class _PickledCsr:
    """Stands for the sparse matrix class of an old SciPy, whose module no longer exists."""

    def matrix(self: Any) -> sp.csr_matrix:
        return sp.csr_matrix((self.data, self.indices, self.indptr), shape=self._shape)


_KNOWN_CLASSES: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): _PickledCsr,
}


class _Unpickler(pickle.Unpickler):
    """Loads only the classes that the files hold, so that a pickle cannot run other code."""

    def find_class(self, module: str, name: str) -> Any:
        return _KNOWN_CLASSES[module, name]


def _unpickle(path: Path) -> Any:
    with path.open("rb") as stream:
        return _Unpickler(stream, encoding="latin1").load()


def read_content(directory: Path, release: Release) -> Graph:
    """The text files ``NAME.content`` and ``NAME.cites`` of a citation graph (Sen et al., AI
    Magazine 29(3), 2008).

    A line of ``.content`` is a paper's id, a 0 or 1 for each word, and the name of its class,
    numbered as in ``release.class_names``; a line of ``.cites`` is the id of a cited paper and that
    of the citing one.  So are the web pages of a university in WebKB, with URLs for ids.
    """
    content, cites = (directory / name for name in release.files)
    papers = [line.split("\t") for line in content.read_text(encoding="utf-8").splitlines()]
    number = {paper[0]: node for node, paper in enumerate(papers)}
    labels = np.array([release.class_names.index(paper[-1]) for paper in papers])
    words = np.array([paper[1:-1] for paper in papers], dtype=np.float32)
    pairs = [line.split() for line in cites.read_text(encoding="utf-8").splitlines()]
    edges = np.array([(number[cited], number[citing]) for cited, citing in pairs])
    return Graph.from_edges(edges, words, labels, len(release.class_names))


def read_npz(directory: Path, release: Release) -> Graph:
    """An archive of gnn-benchmark (Shchur et al. 2018): CSR arrays of adjacency and features, and a
    label for each node.

    The archives also hold pickled names of nodes, words and classes; these entries are never
    opened.
    """
    (name,) = release.files
    with np.load(directory / name, allow_pickle=False) as archive:
        adjacency, features = csr_of(archive, "adj"), csr_of(archive, "attr")
        labels = archive["labels"]
    return Graph.from_edges(
        np.column_stack(adjacency.nonzero()), features, labels, int(labels.max()) + 1
    )


def csr_of(archive: Any, part: str) -> sp.csr_matrix:
    """The matrix in the arrays ``PART_data``, ``PART_indices``, ``PART_indptr`` and ``PART_shape``
    of an archive.
    """
    data, indices, indptr, shape = (archive[f"{part}_{name}"] for name in CSR)
    # Which SciPy has no matrices of.
    data = data.astype(np.float32) if data.dtype == np.float16 else data
    matrix = sp.csr_matrix((data, indices, indptr), tuple(shape.tolist()))
    matrix.check_format(full_check=True)
    return matrix


def read_heterophilous(directory: Path, release: Release) -> Graph:
    """An archive of Platonov et al. (ICLR 2023): ``node_features``, dense, ``node_labels`` and
    ``edges``; masks are not read.
    """
    (name,) = release.files
    with np.load(directory / name, allow_pickle=False) as archive:
        edges, features, labels = (
            archive[part] for part in ("edges", "node_features", "node_labels")
        )
    return Graph.from_edges(edges, features, labels, int(labels.max()) + 1)


def read_musae(directory: Path, release: Release) -> Graph:
    """A network of Rozemberczki et al. (J. Complex Networks 9(2), 2021) in three files: edges,
    features, target.

    Features are 0 or 1, those that are 1 listed for each node.  The table of targets starts with
    the node and ends with its class, numbered in the order of their names; that of Twitch has the
    node as ``new_id``, and for the class whether its content is for adults (``mature``).
    """
    import pandas as pd

    edges, features, target = (directory / name for name in release.files)
    held = sorted(
        (int(node), columns)
        for node, columns in json.loads(features.read_text(encoding="utf-8")).items()
    )
    indptr = np.cumsum([0, *(len(columns) for _, columns in held)])
    indices = np.concatenate([columns for _, columns in held])
    words = sp.csr_matrix((np.ones(len(indices), dtype=bool), indices, indptr))
    words.sum_duplicates()
    table = pd.read_csv(target)
    node, label = (
        ("new_id", "mature") if "new_id" in table else (table.columns[0], table.columns[-1])
    )
    # FR of Twitch has two nodes twice, with the same label.
    table = table.drop_duplicates(node).sort_values(node)
    classes, labels = np.unique(table[label], return_inverse=True)
    return Graph.from_edges(pd.read_csv(edges).to_numpy(), words, labels, len(classes))


def read_facebook100(directory: Path, release: Release) -> Graph:
    """Friendships at universities (Traud et al., Physica A 391, 2012) in MATLAB's format, a file
    each, of which client i owns the i-th where there are several.

    Of seven attributes one is the class, gender or class year, as ``release.class_names`` says; who
    has another value or none has no label.  Features are the others, one-hot over all files, with a
    column for missing values, too (Lim et al., NeurIPS 2021).
    """
    files = [scipy.io.loadmat(directory / name) for name in release.files]
    attributes = np.concatenate([file["local_info"] for file in files]).astype(np.int64)
    network = sp.block_diag([file["A"] for file in files])
    classes = release.class_names
    column, first = (_GENDER, 1) if "female" in classes else (_CLASS_YEAR, int(classes[0]))
    codes = attributes[:, column] - first
    labels = np.where((codes >= 0) & (codes < len(classes)), codes, -1)
    others = np.delete(attributes, column, axis=1)
    features = sp.hstack([_one_hot(np.unique(each, return_inverse=True)[1]) for each in others.T])
    graph = Graph.from_edges(np.column_stack(network.nonzero()), features, labels, len(classes))
    owner = np.repeat(np.arange(len(files)), [len(file["local_info"]) for file in files])
    return replace(graph, client=owner) if len(files) > 1 else graph


def read_airports(directory: Path, release: Release) -> Graph:
    """Flights between the airports of a country (Ribeiro et al., KDD 2017): pairs of airports, and
    each one's quartile of activity, the class.

    Airports have no features, so these are the degree, one-hot.
    """
    edges, classes = (
        np.loadtxt(directory / name, dtype=np.int64, skiprows=skipped)
        for name, skipped in zip(release.files, (0, 1), strict=True)
    )
    airports, labels = classes[np.argsort(classes[:, 0])].T
    graph = Graph.from_edges(
        np.searchsorted(airports, edges), np.zeros((len(airports), 1)), labels, 4
    )
    return replace(graph, features=_one_hot(graph.degrees))


def read_wikics(directory: Path, release: Release) -> Graph:
    """Wikipedia's articles on computer science (Mernyei and Cangea, 2020) in JSON: ``features``,
    dense, ``labels`` and, for each article, ``links``; masks are not read.
    """
    (name,) = release.files
    content = json.loads((directory / name).read_text(encoding="utf-8"))
    edges = [(node, other) for node, others in enumerate(content["links"]) for other in others]
    features = np.array(content["features"], dtype=np.float32)
    return Graph.from_edges(
        np.array(edges), features, content["labels"], max(content["labels"]) + 1
    )


def read_citation_sources(directory: Path, release: Release) -> Graph:
    """A citation network of Shen et al. (AAAI 2020) in MATLAB's format: counts of words, and 0 or 1
    for each class.

    A paper of two classes is of the first of them, the argmax of its row.
    """
    (name,) = release.files
    arrays = scipy.io.loadmat(directory / name)
    edges, group = np.column_stack(arrays["network"].nonzero()), arrays["group"]
    return Graph.from_edges(edges, arrays["attrb"], group.argmax(axis=1), group.shape[1])


def read_ogb(directory: Path, release: Release) -> Graph:
    """An archive of the Open Graph Benchmark (Hu et al., NeurIPS 2020) for a task on nodes:
    compressed CSV without headers.
    """
    import pandas as pd

    (name,) = release.files
    with zipfile.ZipFile(directory / name) as archive:

        def table(part: str) -> np.ndarray:
            (member,) = (
                each for each in archive.namelist() if each.endswith(f"/raw/{part}.csv.gz")
            )
            with archive.open(member) as stream:
                return pd.read_csv(stream, compression="gzip", header=None).to_numpy()

        edges, labels = table("edge"), table("node-label")[:, 0].astype(np.int64)
        features = _sparse(table("node-feat").astype(np.float32))
    return Graph.from_edges(edges, features, labels, int(labels.max()) + 1)


def read_reddit(directory: Path, release: Release) -> Graph:
    """The archive of Reddit (Hamilton et al. 2017) as DGL offers it: both directions of every edge,
    and dense features.
    """
    (name,) = release.files
    with zipfile.ZipFile(directory / name) as archive:
        with archive.open("reddit_graph.npz") as stream:
            adjacency = sp.load_npz(stream)
        with (
            archive.open("reddit_data.npz") as stream,
            np.load(stream, allow_pickle=False) as arrays,
        ):
            features, labels = _sparse(arrays["feature"].astype(np.float32)), arrays["label"]
    once = adjacency.row < adjacency.col
    edges = np.column_stack([adjacency.row[once], adjacency.col[once]])
    return Graph.from_edges(edges, features, labels, int(labels.max()) + 1)


def _one_hot(columns: np.ndarray) -> sp.csr_matrix:
    """Row v has a one in column ``columns[v]``; float32."""
    rows = np.arange(len(columns))
    return sp.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)))


def _sparse(features: np.ndarray) -> sp.csr_matrix:
    return sp.vstack(
        [sp.csr_matrix(features[k : k + _ROWS]) for k in range(0, len(features), _ROWS)],
        format="csr",
    )


READERS = {
    "airports": read_airports,
    "citation_sources": read_citation_sources,
    "content": read_content,
    "facebook100": read_facebook100,
    "heterophilous": read_heterophilous,
    "musae": read_musae,
    "npz": read_npz,
    "ogb": read_ogb,
    "planetoid": read_planetoid,
    "reddit": read_reddit,
    "twitch": read_musae,
    "wikics": read_wikics,
}


def read(
    directory: Path, release: Release, clients: Mapping[str, Sequence[str]] | None = None
) -> Graph:
    """The graph in the files of a release, in their own node order; their checksums must be
    verified before.

    With ``clients``, it is the disjoint union of their graphs, with classes numbered as at the
    first (:attr:`feddep.datasets.public_graphs.Dataset.clients`); features of Facebook are of
    values that any of them has, so one reader takes all files.

    Raises:
        DataError: if the files are damaged or of another format.
    """
    try:
        if not clients or release.format == "facebook100":
            return READERS[release.format](directory, release)
        files = np.array_split(list(release.files), len(clients))
        parts = [
            READERS[release.format](directory, replace(release, files=dict.fromkeys(own, ())))
            for own in files
        ]
        first = next(iter(clients.values()))
        numbers = [np.array([first.index(name) for name in names]) for names in clients.values()]
        own = zip(parts, numbers, strict=True)
        return disjoint_union(
            [
                replace(part, labels=number[part.labels]) if len(number) else part
                for part, number in own
            ]
        )
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        pickle.UnpicklingError,
        zipfile.BadZipFile,
        DataError,
    ) as error:
        raise DataError(
            f"{directory} holds no graph in the format {release.format} ({error})"
        ) from None
