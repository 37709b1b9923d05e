"""What a configuration may say, as models with defaults.  The docstring below a field is its entry in ``config/README.md``.

Snakemake merges mappings and replaces lists where several configurations are given.  So mappings define (datasets, settings,
methods), and lists choose (clients, seeds, tables, studies).
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

import feddep
from feddep.training.config import TrainingConfig
from feddep.utils.parameters import ClientCount, Natural, Parameters, Positive, Share


def _unique(values: Sequence[Any]) -> Sequence[Any]:
    if len(set(values)) < len(values):
        raise ValueError("no entry may occur twice")
    return values


_PROJECT = Path(feddep.__file__).resolve().parents[1]
_SOURCE = ("benchmarks", "config", "docs", "feddep", "tests", "workflow")
"""Folders of the project that nothing may be written to; nor may it be to hidden ones, such as .git."""
_MADE = (
    *("audit", "benchmarks", "figures", "graphs", "logs", "measurements", "partitions", "raw", "report", "runs", "splits"),
    *("steps", "studies", "tables"),
)
"""Folders that the workflow makes below ``output``."""


def _safe_path(path: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._/+=@,][A-Za-z0-9._/+=@,~-]*", path):
        raise ValueError("a path of letters, digits and ._/+=@,~- is allowed, not beginning with - or ~")
    if not Path(path).is_absolute() and os.path.normpath(path).split(os.sep)[0] == "..":
        raise ValueError("a relative path must not lead out of the working folder; an absolute one may")
    place = Path(os.path.realpath(path))
    for root in {Path(os.path.realpath(".")), _PROJECT}:
        if place == root or root.is_relative_to(place):
            raise ValueError("the project's own folder, or one around it, is not allowed; choose a folder in it or elsewhere")
        if place.is_relative_to(root):
            first = place.relative_to(root).parts[0].lower()
            if first in _SOURCE or first.startswith("."):
                raise ValueError(f"it lies in {first}, a folder of the source; choose another")
    if any(len(part) > 255 for part in place.parts):
        raise ValueError("a name in a path has at most 255 characters")
    if any(os.path.exists(part) and not os.path.isdir(part) for part in (place, *place.parents)):
        raise ValueError("a folder is needed, and this is, or lies below, a file")
    return path


def check_mirror(place: str) -> str:
    """The place as it is; ValueError if it is neither a folder nor an http(s) URL."""
    if not place.strip() or not place.isprintable():
        raise ValueError("a folder or URL is needed, of printable characters")
    if "://" in place and not place.startswith(("http://", "https://")):
        raise ValueError("a folder, or a URL that begins with http:// or https://, is allowed")
    return place


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("one line of printable characters is allowed")
    return text


def _some_path(path: str) -> str:
    if not path.strip():
        raise ValueError("the path of a file or folder is needed")
    return _one_line(path)


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
"""A name that fits in a path."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Any integer that a random generator can be seeded with."""
FolderPath = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_safe_path)]
"""A folder to write to: relative paths stay in the working folder, and no path is one of the source."""
Mirror = Annotated[str, StringConstraints(max_length=1000), AfterValidator(check_mirror)]
"""A folder or an http(s) URL."""
SourcePath = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_some_path)]
"""A file or folder to read from, wherever it lies; no command has it on its command line."""
Title = Annotated[str, StringConstraints(max_length=200), AfterValidator(_one_line)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Degree = Annotated[float, Field(ge=0, le=100)]
Concentration = Annotated[float, Field(ge=0.001, le=10**6)]
"""β of a symmetric Dirichlet distribution."""
PartitionMethod = Literal["louvain", "random", "dirichlet", "metis"]
LouvainEngine = Literal["python-louvain", "igraph"]
Clients = Annotated[list[ClientCount], Field(min_length=1), AfterValidator(_unique)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_unique)]
Names = Annotated[list[str], Field(min_length=1), AfterValidator(_unique)]
MethodNames = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_unique)]
Entries = Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
"""Options to change by the name of an entry; a list of values takes each of them."""


class Records(Parameters):
    """Published records."""

    directory: FolderPath = "results/records"
    """folder of the published records: one small file a run, in git. *Not in the key.*"""
    use: bool = True
    """take a run's result from its record where one has the run's key, instead of training. *Not in the key.*"""
    strict: bool = False
    """use a record only if the code that computes it is, comments and docstrings aside, what it was when the record was made or
    verified; otherwise train anew. *Not in the key.*"""


class Data(Parameters):
    """Sources of raw files."""

    mirror: Mirror | None = None
    """a folder or URL with the raw files, tried before the public sources; `null`: the environment variable `FEDDEP_DATA_MIRROR`,
    else no mirror. Raw files are verified wherever they come from. *Not in the key.*"""


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

    nodes: Annotated[int, Field(ge=4, le=2 * 10**6)] = 240
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
    """share of the nodes that have no neighbours; the degrees above are those of the others. *Not in the key* where it is 0"""
    count_exponent: Annotated[float, Field(ge=1, le=100)] | None = None
    """exponent α of the words' counts, which are at least k with probability k^−α: counts with a heavy tail; `null`: 1 for each
    word of a node. *Not in the key* where it is `null`"""


class Dataset(Parameters):
    """A graph to train on."""

    features: Literal["raw", "row", "minmax"] = "raw"
    """`raw`: as they are in the files (code, for Cora, CiteSeer and PubMed); `minmax`: each column scaled to 0 … 1 (code, for
    MSAcademic); `row`: each node's features sum to 1, as much other work has it (ours; stalls with the SGD of FedDEP)"""
    labelled: Annotated[float, Field(gt=0, le=1)] | None = None
    """share of all nodes whose label may be trained on, at most `split.train`; `null`: all of `split.train`. The nodes of a
    smaller share are among those of a larger one"""
    partition: PartitionMethod | None = None
    """instead of `partition.method`; so runs of a study may differ in how a graph is divided, as `cora,partition=random`. `null`,
    here and in the next three: as the key `partition` says"""
    partition_delta: Natural | None = None
    """instead of `partition.delta`"""
    partition_engine: LouvainEngine | None = None
    """instead of `partition.engine`"""
    partition_beta: Concentration | None = None
    """instead of `partition.beta`"""
    path: SourcePath | None = None
    """a graph of your own ([docs/own-data.md](../docs/own-data.md)): a file `.npz` or `.pt`, or a folder with tables of nodes and
    edges; relative paths begin at the working folder. *Not in the key*, but the content of the files is"""
    synthetic: Synthetic | None = None
    """makes the graph from a formula instead of from files: a planted-partition graph with bags of words, for tests"""


class SplitShares(Parameters):
    """Shares of the nodes; they must sum to 1."""

    train: Fraction = 0.6
    """training nodes (FedDEP and FedSage)"""
    val: Fraction = 0.2
    """validation nodes"""
    test: Fraction = 0.2
    """test nodes"""


class PartitionOptions(Parameters):
    """How nodes are divided among clients.  An option that the method does not read is not in the key."""

    method: PartitionMethod = "louvain"
    """`louvain`: communities, dealt to clients (FedDEP and FedSage); `random`: equal shares of the nodes, at random; `dirichlet`:
    skewed labels, of each class shares from a Dirichlet distribution (Li et al. 2022); `metis`: equal shares with few edges
    between them. *Not in the key* where it is `louvain`"""
    delta: Natural = 20
    """of `louvain`: communities above n/M − `delta` nodes are cut into pieces of that size, and pieces are dealt to a client as
    long as it stays below n/M + `delta` nodes (code)"""
    engine: LouvainEngine = "python-louvain"
    """of `louvain`: what finds communities; `python-louvain` (code), or `igraph`, which is faster and finds others. *Not in the
    key* where it is `python-louvain`"""
    beta: Concentration = 1.0
    """of `dirichlet`: concentration β; the smaller, the fewer classes a client has"""


class Block(Parameters):
    """Runs: every combination of what it names.  What it leaves out is as in the first main table."""

    settings: Entries | None = None
    """settings by name, each with what to change"""
    datasets: Entries | None = None
    """datasets likewise"""
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
    methods: Names | None = None
    """its rows; `null`: every entry of `methods`"""
    datasets: Names | None = None
    """its datasets; `null`: every entry of `datasets`"""


class Study(Parameters):
    """Runs beside the main tables, with a table and a figure of their own in `results/studies/NAME/`."""

    name: Name
    """name of its folder"""
    kind: Literal["sweep", "curves", "grid", "paired", "headroom", "recovery", "privacy", "tradeoff", "tuned"]
    """what is made of the runs, see below"""
    title: Title = ""
    """heading of its table and figure"""
    score: Literal["validation", "global_validation"] = "validation"
    """what a grid ranks by: accuracy of the clients' `validation` nodes on their own, possibly mended, subgraphs, or of the same
    nodes on the global graph, classified as its test nodes are (`global_validation`)"""
    search_seeds: Seeds | None = None
    """seeds of the runs that a study of the kind `tuned` chooses hyperparameters by"""
    runs: Annotated[list[Block], Field(min_length=1)]
    """the runs; a block's keys are those of the next table"""


class Audit(Parameters):
    """What is attacked: one cell, a few rounds of training.  `snakemake results/tables/audit.md`."""

    dataset: str | None = None
    """`null`: Cora where it is among the datasets of the first table, else its first"""
    clients: ClientCount | None = None
    """`null`: 5 where it is among `clients`, else the first"""
    rounds: Positive = 10
    """rounds of training whose messages are attacked"""
    membership: MethodNames = (
        *("local", "fedavg", "fedgnn", "fedgraph", "fedgsl", "fedsage_plus"),
        *("feddep_wo_dgen", "feddep_wo_proto", "feddep_wo_nfdp", "feddep"),
    )
    """methods whose messages are searched for edges"""
    canaries: MethodNames = ("feddep_wo_nfdp",)
    """methods whose ε is bounded from below"""
    properties: MethodNames = ("feddep_wo_nfdp",)
    """methods from whose prototypes properties of clients are inferred"""
    reconstruction: MethodNames = ("feddep",)
    """methods from whose prototypes features are reconstructed"""


class Configuration(Parameters):
    """The whole configuration."""

    output: FolderPath = "results"
    """folder that everything is written to. *Not in the key.*"""
    records: Records = Records()
    """published records"""
    data: Data = Data()
    """sources of raw files"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: a GPU where there is one; `cpu`; `cuda`: a GPU, or an error. *Not in the key*, but in each result's provenance"""
    jobs_per_gpu: Annotated[int, Field(ge=1, le=1024)] = 1
    """training jobs that share a GPU, on a machine that runs the workflow itself; a cluster shares its own. *Not in the key*"""
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    """threads of one training job. On graphs of this size more jobs at a time gain more than more threads. *Not in the key*, but
    in the provenance: the same bytes are promised for the same machine and thread count"""
    memory: Memory = Memory()
    """memory of jobs"""
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    """graphs by name, each with its options (`{}` for the defaults); a name that is no known dataset needs `path` or
    `synthetic`"""
    clients: Clients
    """numbers of clients M (FedDEP and FedSage, Table 2: 3, 5, 10)"""
    seeds: Seeds
    """one run for each; a seed determines split, partition, initial weights and every draw. Three repetitions as in FedDEP;
    FedSage has five"""
    split: SplitShares = SplitShares()
    """shares of the nodes"""
    partition: PartitionOptions = PartitionOptions()
    """division among clients"""
    settings: Annotated[dict[Name, TrainingConfig], Field(min_length=1)]
    """named sets of hyperparameters"""
    methods: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)]
    """methods by name, each with its own parameters (`{}` for the defaults). A parameter may have a value for each dataset,
    and one for the others: `embedding: {cora: 128, citeseer: 64, default: 128}`"""
    plugins: Annotated[list[SourcePath], AfterValidator(_unique)] = Field(default_factory=list)
    """Python files with methods of your own ([docs/own-method.md](../docs/own-method.md)), which are executed; relative
    paths begin at the working folder. *Not in the key*, but the content of a file is in the keys of its methods"""
    tables: Annotated[list[Table], Field(min_length=1)] | None = None
    """the main tables, one a setting, whose numbers are never mixed; `null`: one for each setting, with everything"""
    studies: list[Study] = Field(default_factory=list)
    """studies beside the main tables"""
    quality: list[Block] = Field(default_factory=list)
    """runs whose FedDEP generators are compared with guesses that need no training; needs local GNNs and prototypes"""
    label_shortcut: list[Block] = Field(default_factory=list)
    """runs of FedDEP whose prototypes are read for labels, and whose classifiers are given other embeddings than they were
    trained with; needs trained generators and classifiers, and trains local GNNs on halves of the training nodes"""
    neighbourhoods: list[Block] = Field(default_factory=list)
    """runs whose mended neighbourhoods are compared with the true ones (FedSage, Appendix D, Table 1 and Figure 1); for
    methods that generate features: `fedsage_plus`, `fedsage_plus_shared`, `locsage_plus`; needs trained generators"""
    label_distributions: list[Block] = Field(default_factory=list)
    """runs whose clients' labels, and whose models' predictions, are counted (FedSage, Figure 4); for methods that train a
    plain GraphSAGE; needs trained classifiers"""
    degree_histograms: list[Block] = Field(default_factory=list)
    """runs whose graphs' degrees are counted with noise, private for edges (VESPER, Figure 3); any method, as none is trained;
    one seed is one draw of noise"""
    vertical_attacks: list[Block] = Field(default_factory=list)
    """runs of VESPER's methods that are attacked (VESPER, Figure 4): which nodes was a model trained on, and which edges does
    party B find in what it is sent; trains what it attacks"""
    audit: Audit = Audit()
    """attacks on what leaves clients"""

    @model_validator(mode="after")
    def _check_folders(self) -> "Configuration":
        output, records = (Path(os.path.realpath(path)) for path in (self.output, self.records.directory))
        below = records.relative_to(output).parts[0].lower() if output in records.parents else None
        if output == records or records in output.parents or below in _MADE:
            raise ValueError(
                f"output is {self.output} and records.directory is {self.records.directory}; records must lie elsewhere than "
                "results, or in a folder of their own below output"
            )
        return self

    @model_validator(mode="after")
    def _check_names(self) -> "Configuration":
        names = [study.name for study in self.studies]
        if len(set(names)) < len(names):
            raise ValueError(f"studies has the name {next(name for name in names if names.count(name) > 1)} twice")
        return self
