"""Keys of a configuration, as models with defaults.  The docstring below a field is its entry
in ``config/README.md``.

Snakemake merges mappings and replaces lists where several configurations are given.  So mappings
define (datasets, settings, methods), and lists choose (clients, seeds, tables, studies).
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from feddep.graph import partitioners, split
from feddep.graph.noise import Noise
from feddep.training.config import TrainingConfig
from feddep.utils.parameters import ClientCount, InKey, Natural, Parameters, Positive, Share


def _unique(values: Sequence[Any]) -> Sequence[Any]:
    if len(set(values)) < len(values):
        raise ValueError("no entry may occur twice")
    return values


def _splitter(method: str) -> str:
    if method not in (*split.METHODS, *split.ADDED):
        raise ValueError(f"allowed are {', '.join((*split.METHODS, *split.ADDED))}")
    return method


def _partitioner(method: str) -> str:
    if method not in partitioners.methods():
        raise ValueError(f"allowed are {', '.join(partitioners.methods())}")
    return method


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
"""A name that fits in a path."""
Text = Annotated[str, StringConstraints(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Any integer that a random generator can be seeded with."""
Fraction = Annotated[float, Field(gt=0, lt=1)]
Degree = Annotated[float, Field(ge=0, le=100)]
Clients = Annotated[list[ClientCount], Field(min_length=1), AfterValidator(_unique)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_unique)]
Names = Annotated[list[str], Field(min_length=1), AfterValidator(_unique)]
Entries = Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
"""Options to change by the name of an entry; a list of values takes each of them."""


class Records(Parameters):
    """The tables of runs that are published in git.  *Not in the key.*"""

    directory: Text = "results/runs"
    """their folder"""
    use: bool = True
    """take a run whose key is in a table from there instead of training it"""


class Data(Parameters):
    """Sources of raw files."""

    mirror: Text | None = None
    """a folder or URL with the raw files, tried before the public sources; `null`: the environment
    variable `FEDDEP_DATA_MIRROR`, else no mirror. Raw files are verified wherever they come from.
    *Not in the key.*"""


class Memory(Parameters):
    """Memory that the workflow reserves for a job, MB.  *Not in the key.*"""

    data: Positive = 2000
    """preparing, splitting and dividing a graph"""
    training: Positive = 6000
    """training, and measuring what was trained"""
    tables: Positive = 1000
    """tables, figures and pages"""


class Synthetic(Parameters):
    """A planted-partition graph with bags of words as features; all keys are ours."""

    nodes: Annotated[int, Field(ge=4, le=2 * 10**7)] = 240
    """number of nodes"""
    classes: Annotated[int, Field(ge=2, le=1000)] = 4
    """number of classes"""
    communities: Annotated[int, Field(ge=2, le=10**5)] = 12
    """number of communities, each within one class"""
    features: Annotated[int, Field(ge=2, le=10**5)] = 64
    """number of words"""
    degree_within: Degree = 6.0
    """expected neighbours of a node in its community"""
    degree_between: Degree = 1.0
    """expected neighbours in other communities"""
    words: Annotated[int, Field(ge=1, le=1000)] = 8
    """words of a node"""
    signal: Share = 0.5
    """share of a node's words that come from its class"""
    seed: Seed = 0
    """seed of the graph, apart from the seeds of the runs"""
    isolated: Share = 0.0
    """share of the nodes that have no neighbours; the degrees above are those of the others. *Not
    in the key* where it is 0
    """
    count_exponent: Annotated[float, Field(ge=1, le=100)] | None = None
    """exponent α of the words' counts, which are at least k with probability k^−α: counts with a
    heavy tail; `null`: 1 for each word of a node. *Not in the key* where it is `null`"""


class Dataset(Parameters):
    """A graph to train on."""

    features: Literal["raw", "row", "minmax"] = "raw"
    """`raw`: as they are in the files (code, for Cora, CiteSeer and PubMed); `minmax`: each column
    scaled to 0 … 1 (code, for MSAcademic); `row`: each node's features sum to 1, as much other work
    has it (ours; stalls with the SGD of FedDEP)"""
    labelled: Annotated[float, Field(gt=0, le=1)] | None = None
    """share of all nodes whose label may be trained on, at most `split.train`; `null`: all of
    `split.train`. The nodes of a smaller share are among those of a larger one"""
    noise: Annotated[Noise | None, InKey(default=False)] = None
    """what is wrong with what clients train on, as in OpenFGL: `feature_sparsity`, of the features
    of a node that are not 0 a share is 0; `feature_noise`, normal noise in every feature;
    `topology_sparsity`, a share of a client's edges is lost; `topology_noise`, and as many others
    are there; `label_sparsity`, a share of its training nodes has no label, or, `label_noise`, a
    wrong one. Features and edges are as they are where models are validated and tested. *Not in the
    key* where it is `null`"""
    noise_level: Annotated[Share, InKey(default=False)] = 0.1
    """that share, or the standard deviation of `feature_noise` (OpenFGL's default). *Not in the
    key* where it is the default"""
    noisy_clients: Annotated[float, InKey(default=False), Field(gt=0, le=1)] = 1.0
    """share of the clients with noise, drawn by the seed, at least one. *Not in the key* where it
    is 1"""
    split: Annotated[dict[str, Any] | None, InKey(ever=False)] = None
    """what differs from the key `split` for this graph, such as `{method: masks}`"""
    partition: Annotated[dict[str, Any] | None, InKey(ever=False)] = None
    """what differs from the key `partition` for this graph, such as `{method: random}`; a dataset
    that is several graphs, one a client, has the method `given`"""
    path: Annotated[Text | None, InKey(ever=False)] = None
    """a graph of your own ([own graphs](../docs/guide/own-data.md)): a file `.npz` or `.pt`, or a
    folder with tables of nodes and edges; relative paths begin at the working folder. *Not in the
    key*, but the content of the files is"""
    synthetic: Annotated[Synthetic | None, InKey(default=False)] = None
    """makes the graph from a formula instead of from files: a planted-partition graph with bags of
    words, for tests
    """


class SplitOptions(Parameters):
    """Which nodes train, validate and test."""

    method: Annotated[str, AfterValidator(_splitter)] = "random"
    """where they are from: drawn at `random`, or `class_balanced`, with equally many training nodes
    a class (code), or `within_clients`, of each class at each client the same shares (OpenFGL), or
    the `masks` in the files of a graph of your own, or one of a plugin. *Not in the key* where it
    is `random`"""
    train: Fraction = 0.6
    """share of training nodes (FedDEP and FedSage)"""
    val: Fraction = 0.2
    """share of validation nodes; the test nodes are what is left"""
    unseen: Annotated[bool, InKey(default=False)] = False
    """test nodes have no edges and no features while models train (inductive); they have them where
    models are validated and tested. *Not in the key* where it is false"""

    def shares(self) -> dict[str, float]:
        """Shares of ``train``, ``val`` and ``test`` nodes; they sum to 1."""
        test = round(1 - self.train - self.val, 9)
        return {"train": self.train, "val": self.val, "test": test}


class PartitionOptions(Parameters):
    """How nodes are divided among clients.  An option that the method does not read is not in the
    key.
    """

    method: Annotated[str, AfterValidator(_partitioner)] = "louvain"
    """`louvain`: communities, dealt to clients (FedDEP and FedSage); `random`: equal shares of the
    nodes, at random; `dirichlet`: skewed labels, of each class shares from a Dirichlet distribution
    (Li et al. 2022); `shards`: few classes a client (McMahan et al. 2017); `metis`: equal shares
    with few edges between them; `overlap`: METIS cuts M/5 parts, and of each five clients draw half
    of the nodes, so that they share some (FED-PUB); `given`: as the data say, of a graph of your
    own or of several graphs; or one of a plugin"""
    delta: Annotated[Natural, InKey(methods=("louvain",))] = 20
    """of `louvain`: communities above n/M − `delta` nodes are cut into pieces of that size, and
    pieces are dealt to a client as long as it stays below n/M + `delta` nodes (code)"""
    engine: Annotated[Literal["python-louvain", "igraph"] | None, InKey(methods=("louvain",))] = (
        None
    )
    """of `louvain`: what finds communities; `python-louvain` (code), or `igraph`, which is many
    times faster and finds others; `null`: the former up to 20,000 nodes, the latter above"""
    beta: Annotated[float, Field(ge=0.001, le=10**6), InKey(methods=("dirichlet",))] = 1.0
    """of `dirichlet`: concentration β; the smaller, the fewer classes a client has"""
    shards: Annotated[int, Field(ge=1, le=1000), InKey(methods=("shards",))] = 2
    """of `shards`: nodes in the order of their classes are cut into M · `shards` pieces, of which
    each client has so many (2: McMahan et al.)"""


class Block(Parameters):
    """Runs: every combination of what it names.  What it leaves out is as in the first main
    table.
    """

    settings: Entries | None = None
    """settings by name, each with what to change"""
    datasets: Entries | None = None
    """datasets likewise"""
    splits: Entries | None = None
    """methods of the key `split`, each with what to change, such as `within_clients: {train:
    0.2}`; by default those of the study, or that of the dataset"""
    partitions: Entries | None = None
    """methods of the key `partition` likewise, such as `dirichlet: {beta: [0.1, 1]}`"""
    methods: Entries | None = None
    """methods likewise; by default the rows of the main table of the setting"""
    clients: Clients | None = None
    """numbers of clients M"""
    seeds: Seeds | None = None
    """seeds"""


class Table(Parameters):
    """A main table."""

    setting: str
    """its setting"""
    methods: Names
    """its rows"""
    datasets: Names | None = None
    """its datasets; `null`: every entry of `datasets`"""


class Margin(Parameters):
    """Differences of accuracy that count as none.  *Not in the key.*"""

    accuracy: Fraction = 0.01
    """two methods that differ by less are *equivalent*"""
    strict: Fraction = 0.005
    """a stricter margin, by which pages judge as well"""
    declared: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """the day when both were declared, in quotes; pages say whether their runs are of before"""


class Search(Parameters):
    """Hyperparameters of methods, chosen on each dataset by validation among equally many
    trials.
    """

    setting: Text | dict[Text, Text]
    """the setting, with its own values among the trials; the protocol of its name says what else
    is tried (`PROTOCOLS` in `feddep/training/config.py`). It may have a value for each dataset, and
    one for the others: `{minesweeper: "field,metric=roc_auc", default: field}`"""
    datasets: Names
    """its datasets; where there are several, a method is tuned out of the box, too"""
    methods: list[Name] = Field(min_length=1)
    """its methods; each declares what is tried of its parameters. One that uses edges between
    clients is left out where each client has a graph of its own"""
    clients: ClientCount = 10
    """number of clients M; a dataset of several graphs, one a client, has as many as graphs"""
    trials: Annotated[int, Field(ge=2, le=10**4)] = 16
    """trials a method and dataset; the values without a search, those that its authors publish, and
    those with which it is FedAvg are always among them"""
    seed: Seed = 0
    """seed of the draw of trials; the reference's second search has the next one"""
    seeds: Seeds | None = None
    """seeds of the runs of what was chosen, of which none is in `search_seeds`; `null`: the key
    `seeds`"""


class Study(Parameters):
    """A question beside the main tables: a file of a folder of `studies/`, with a table and a
    figure of its own in `results/NAME/`.
    """

    name: Name
    """name of its file and of its folder of results"""
    kind: Name
    """what is made of the runs, see below; or the name of a folder `studies/GROUP/NAME` with code
    that measures each run
    """
    title: str = ""
    """heading of its table and figure"""
    question: str = ""
    """what it asks"""
    score: Literal["validation", "global_validation"] = "validation"
    """what a grid ranks by: accuracy of the clients' `validation` nodes on their own, possibly
    mended, subgraphs, or of the same nodes on the global graph, classified as its test nodes are
    (`global_validation`)"""
    studies: list[Name] = Field(default_factory=list)
    """studies whose runs it has as well; kind `pooled` judges methods over the graphs of several"""
    search_seeds: Seeds | None = None
    """seeds of the runs that a study of the kind `tuned` chooses hyperparameters by; of a `search`
    (default: 20, 21, 22) the first is that of all trials, the others are those of the best four"""
    search: Search | None = None
    """in place of `runs`: a search of hyperparameters, and the runs of what it chose; its keys are
    those of the last table"""
    splits: Entries | None = None
    """splits of the blocks that do not say otherwise"""
    partitions: Entries | None = None
    """partitions likewise"""
    runs: list[Block] = Field(default_factory=list)
    """the runs; a block's keys are those of the next table"""
    options: dict[str, Any] = Field(default_factory=dict)
    """what else the code of its kind reads"""


class Plugins(Parameters):
    """The plugins, which are loaded before the rest of the configuration is read: it may name their
    encoders.
    """

    plugins: Annotated[list[Text], AfterValidator(_unique)] = Field(default_factory=list)
    """Python files with [methods](../docs/guide/own-method.md) or [other
    parts](../docs/guide/own-parts.md) of your own, which are executed; relative paths begin at the
    working folder. *Not in the key*, but the content of a file is in the keys of what uses it"""


class Configuration(Plugins):
    """The whole configuration."""

    output: Text = "results"
    """folder that everything is written to. *Not in the key.*"""
    records: Records = Records()
    """published records"""
    data: Data = Data()
    """sources of raw files"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: a GPU where there is one; `cpu`; `cuda`: a GPU, or an error. *Not in the key*, but in
    each result's provenance
    """
    trainings_per_gpu: Annotated[int, Field(ge=1, le=1024)] = 1
    """training jobs that share a GPU; they must fit into its memory together. *Not in the key.*"""
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    """threads of one training job. On graphs of this size more jobs at a time gain more than more
    threads. *Not in the key*, but in the provenance: the same bytes are promised for the same
    machine and thread count"""
    memory: Memory = Memory()
    """memory of jobs"""
    margin: Margin = Margin()
    """which differences count as none, declared before runs are made"""
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    """graphs by name, each with its options (`{}` for the defaults); a name that is no known
    dataset needs `path` or `synthetic`"""
    clients: Clients
    """numbers of clients M (FedDEP and FedSage, Table 2: 3, 5, 10)"""
    seeds: Seeds
    """one run for each; a seed determines split, partition, initial weights and every draw. Three
    repetitions as in FedDEP; FedSage has five"""
    split: SplitOptions = SplitOptions()
    """training, validation and test nodes"""
    partition: PartitionOptions = PartitionOptions()
    """division among clients"""
    settings: Annotated[dict[Name, TrainingConfig], Field(min_length=1)]
    """named sets of hyperparameters"""
    methods: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    """parameters of methods by name, where they are not the defaults. A parameter may have a value
    for each dataset, and one for the others: `embedding: {cora: 128, citeseer: 64, default:
    128}`"""
    tables: Annotated[list[Table], Field(min_length=1)]
    """the main tables, one a setting, whose numbers are never mixed"""
    studies: list[Study | Name] = Field(default_factory=list)
    """studies beside the main tables: folders of `studies/`, each for all of its files; names of
    single files without `.yaml`; or studies written out
    """
