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
    """whether a run with a recorded key is read instead of trained"""


class Data(Parameters):
    """Sources of raw files."""

    mirror: Text | None = None
    """folder or URL with raw files, tried before the public sources; `null`: what
    `FEDDEP_DATA_MIRROR` says. All files are verified"""


class Memory(Parameters):
    """Memory that the workflow reserves for a job, MB.  *Not in the key.*"""

    data: Positive = 2000
    """preparing a graph"""
    training: Positive = 6000
    """training"""
    tables: Positive = 1000
    """tables and figures"""


class Synthetic(Parameters):
    """A planted-partition graph with bags of words as features; all keys are ours."""

    nodes: Annotated[int, Field(ge=4, le=2 * 10**7)] = 240
    """number of nodes"""
    classes: Annotated[int, Field(ge=2, le=1000)] = 4
    """number of classes"""
    communities: Annotated[int, Field(ge=2, le=10**5)] = 12
    """number of communities, each within one class"""
    features: Annotated[int, Field(ge=2, le=10**5)] = 64
    """number of words in the vocabulary"""
    degree_within: Degree = 6.0
    """expected neighbours of a node in its community"""
    degree_between: Degree = 1.0
    """expected neighbours in other communities"""
    words: Annotated[int, Field(ge=1, le=1000)] = 8
    """words of a node"""
    signal: Share = 0.5
    """share of a node's words that come from its class"""
    seed: Seed = 0
    """seed of the graph, apart from the seeds of runs"""
    isolated: Share = 0.0
    """share of nodes without neighbours; the degrees above are those of the others"""
    count_exponent: Annotated[float, Field(ge=1, le=100)] | None = None
    """exponent α of word counts, which are at least k with probability k^−α; `null`: every count is
    1"""


class Dataset(Parameters):
    """A graph to train on."""

    features: Literal["raw", "row", "minmax"] = "raw"
    """`raw`: as in the files; `minmax`: columns scaled to 0–1, as for MSAcademic; `row`: those of a
    node sum to 1 (code: `raw`)"""
    labelled: Annotated[float, Field(gt=0, le=1)] | None = None
    """share of all nodes whose label may be trained on; `null`: `split.train`. A smaller share is
    part of a larger one"""
    noise: Annotated[Noise | None, InKey(default=False)] = None
    """what is wrong in training: features are 0 (`feature_sparsity`) or noisy, edges lost
    (`topology_sparsity`) or added, labels missing (`label_sparsity`) or wrong. Validation and test
    see the graph as it is (OpenFGL)"""
    noise_level: Annotated[Share, InKey(default=False)] = 0.1
    """share of features, edges or labels; for `feature_noise` the standard deviation (OpenFGL)"""
    noisy_clients: Annotated[float, InKey(default=False), Field(gt=0, le=1)] = 1.0
    """share of clients with noise, at least one"""
    split: Annotated[dict[str, Any] | None, InKey(ever=False)] = None
    """what differs from the key `split` here, such as `{method: masks}`"""
    partition: Annotated[dict[str, Any] | None, InKey(ever=False)] = None
    """what differs from the key `partition` here, such as `{method: random}`; parts that are
    clients have `given`"""
    path: Annotated[Text | None, InKey(ever=False)] = None
    """[your graph](../docs/guide/own-data.md): a file or folder, relative to the working folder.
    Its content is in the key"""
    synthetic: Annotated[Synthetic | None, InKey(default=False)] = None
    """makes a random graph instead"""


class SplitOptions(Parameters):
    """Which nodes train, validate and test."""

    method: Annotated[str, AfterValidator(_splitter)] = "random"
    """`random`: from all nodes. `class_balanced`: as many training nodes of each class (code).
    `within_clients`: the same shares of each class at each client (OpenFGL). `masks`: as in your
    files. Or a plugin's"""
    train: Fraction = 0.6
    """share of training nodes (FedDEP, FedSage)"""
    val: Fraction = 0.2
    """share of validation nodes; the rest are test nodes (FedDEP, FedSage)"""
    unseen: Annotated[bool, InKey(default=False)] = False
    """whether test nodes and their edges are missing in training, for an inductive test"""

    def shares(self) -> dict[str, float]:
        """Shares of ``train``, ``val`` and ``test`` nodes; they sum to 1."""
        test = round(1 - self.train - self.val, 9)
        return {"train": self.train, "val": self.val, "test": test}


class PartitionOptions(Parameters):
    """How nodes are divided among clients.  An option that the method does not read is not in the
    key.
    """

    method: Annotated[str, AfterValidator(_partitioner)] = "louvain"
    """`louvain`: communities (FedDEP, FedSage). `random`: equal parts. `dirichlet`: unequal shares
    of each class (Li et al. 2022). `shards`: few classes a client (McMahan et al. 2017). `metis`:
    equal parts with few edges between them. `overlap`: each of five clients draws half of a METIS
    part (FED-PUB). `given`: as the data say. Or a plugin's"""
    delta: Annotated[Natural, InKey(methods=("louvain",))] = 20
    """slack: larger communities than n/M − `delta` are cut to that size; a client takes some below
    n/M + `delta` nodes (code)"""
    engine: Annotated[Literal["python-louvain", "igraph"] | None, InKey(methods=("louvain",))] = (
        None
    )
    """what finds communities; `igraph` is many times faster and finds others; `null`:
    `python-louvain` up to 20,000 nodes (code: `python-louvain`)"""
    beta: Annotated[float, Field(ge=0.001, le=10**6), InKey(methods=("dirichlet",))] = 1.0
    """concentration β; the smaller, the fewer classes a client has"""
    shards: Annotated[int, Field(ge=1, le=1000), InKey(methods=("shards",))] = 2
    """pieces a client, cut from the nodes in order of their classes (McMahan et al.)"""


class Block(Parameters):
    """Runs: every combination of what it names.  What it leaves out is as in the first main
    table.
    """

    settings: Entries | None = None
    """settings by name, each with what to change"""
    datasets: Entries | None = None
    """datasets likewise"""
    splits: Entries | None = None
    """values of `split.method`, such as `within_clients: {train: 0.2}`; `null`: those of the study,
    else the dataset's"""
    partitions: Entries | None = None
    """values of `partition.method` likewise, such as `dirichlet: {beta: [0.1, 1]}`"""
    methods: Entries | None = None
    """methods likewise; `null`: those of the setting's table"""
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
    """a second, stricter margin that pages print as well"""
    declared: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    """day of both, in quotes; pages say whether runs are older"""


class Search(Parameters):
    """Hyperparameters of methods, chosen on each dataset by validation among equally many
    trials.
    """

    setting: Text | dict[Text, Text]
    """where trials start; the protocol of its name says what is tried. Datasets may differ:
    `{minesweeper: "field,metric=roc_auc", default: field}`"""
    datasets: Names
    """its datasets; with several, methods are tuned out of the box, too"""
    methods: list[Name] = Field(min_length=1)
    """its methods; those that need edges between clients are left out where there are none"""
    clients: ClientCount = 10
    """number of clients M; parts that are clients have their number"""
    trials: Annotated[int, Field(ge=2, le=10**4)] = 16
    """trials of a method on a dataset, among them the setting as it is, the authors' values and
    FedAvg's"""
    seed: Seed = 0
    """seed of the draw of trials; the second search of the reference has the next"""
    seeds: Seeds | None = None
    """seeds of final runs, none in `search_seeds`; `null`: the key `seeds`"""


class Study(Parameters):
    """A question beside the main tables: a file of a folder of `studies/`, with a table and a
    figure of its own in `results/NAME/`.
    """

    name: Name
    """name of its file and of its folder of results"""
    kind: Name
    """which table and figure are made of the runs ([kinds](#studies)), or a folder
    `studies/GROUP/NAME` with code of its own"""
    title: str = ""
    """heading of its table and figure"""
    question: str = ""
    """what it asks"""
    score: Literal["validation", "global_validation"] = "validation"
    """what a `grid` ranks by: accuracy of validation nodes on their clients' subgraphs, or on the
    global graph"""
    studies: list[Name] = Field(default_factory=list)
    """names of studies whose runs it takes as well, as the kind `pooled` does"""
    search_seeds: Seeds | None = None
    """seeds of runs that choose hyperparameters, for `tuned` and `search`; a search has 20, 21 and
    22 by default"""
    search: Search | None = None
    """a search of hyperparameters, in place of `runs`"""
    splits: Entries | None = None
    """splits of all blocks that name none"""
    partitions: Entries | None = None
    """partitions likewise"""
    runs: list[Block] = Field(default_factory=list)
    """blocks of runs"""
    options: dict[str, Any] = Field(default_factory=dict)
    """further options of the kind, such as `reference`, the method that others are compared with"""


class Plugins(Parameters):
    """The plugins, which are loaded before the rest of the configuration is read: it may name their
    encoders.
    """

    plugins: Annotated[list[Text], InKey(ever=False), AfterValidator(_unique)] = Field(
        default_factory=list
    )
    """Python files with [methods](../docs/guide/own-method.md) or [other
    parts](../docs/guide/own-parts.md) of yours, relative to the working folder. They are executed;
    what uses them has their content in its key"""


class Configuration(Plugins):
    """The whole configuration."""

    output: Annotated[Text, InKey(ever=False)] = "results"
    """folder that everything is written to"""
    records: Annotated[Records, InKey(ever=False)] = Records()
    """published runs"""
    data: Annotated[Data, InKey(ever=False)] = Data()
    """sources of raw files"""
    device: Annotated[Literal["auto", "cpu", "cuda"], InKey(ever=False)] = "auto"
    """`auto`: a GPU where there is one; `cuda`: a GPU or an error"""
    trainings_per_gpu: Annotated[int, InKey(ever=False), Field(ge=1, le=1024)] = 1
    """training jobs that share a GPU and its memory"""
    threads: Annotated[int, InKey(ever=False), Field(ge=1, le=1024)] = 1
    """threads of a training job; more jobs gain more. Equal bytes are promised for equal threads"""
    memory: Annotated[Memory, InKey(ever=False)] = Memory()
    """memory of jobs"""
    margin: Annotated[Margin, InKey(ever=False)] = Margin()
    """differences that count as none"""
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    """graphs by name, each with its options or `{}`; names that are not
    [known](../docs/guide/data.md) need `path` or `synthetic`"""
    clients: Clients
    """numbers of clients M (FedDEP, FedSage: 3, 5, 10)"""
    seeds: Seeds
    """a run for each; it determines split, partition, initial weights and every draw (FedDEP: three
    repetitions)"""
    split: SplitOptions = SplitOptions()
    """training, validation and test nodes"""
    partition: PartitionOptions = PartitionOptions()
    """division among clients"""
    settings: Annotated[dict[Name, TrainingConfig], Field(min_length=1)]
    """sets of training options by name"""
    methods: dict[Name, dict[str, Any]] = Field(default_factory=dict)
    """parameters of methods, where not the defaults; one may depend on the dataset: `embedding:
    {cora: 128, default: 64}`"""
    tables: Annotated[list[Table], InKey(ever=False), Field(min_length=1)]
    """the main tables, one a setting"""
    studies: Annotated[list[Study | Name], InKey(ever=False)] = Field(default_factory=list)
    """further questions: folders of `studies/`, names of files without `.yaml`, or studies written
    out"""
