"""What a configuration may say, as models with defaults.  The docstring below a field is its entry in ``config/README.md``.

Snakemake merges mappings and replaces lists where several configurations are given.  So mappings define (datasets, settings,
frameworks), and lists choose (clients, seeds, tables, studies).
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from feddep.training.setting import Setting
from feddep.utils.parameters import ClientCount, Natural, Parameters, Positive, Share


def _unique(values: Sequence[Any]) -> Sequence[Any]:
    if len(set(values)) < len(values):
        raise ValueError("no entry may occur twice")
    return values


def _safe_path(path: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._/+=@,~-]+", path) or path.startswith("-"):
        raise ValueError("a path of letters, digits and ._/+=@,~- is allowed, not beginning with -")
    return path


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
"""A name that fits in a path."""
Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Any integer that a random generator can be seeded with."""
FolderPath = Annotated[str, AfterValidator(_safe_path)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Degree = Annotated[float, Field(ge=0, le=100)]
Clients = Annotated[list[ClientCount], Field(min_length=1), AfterValidator(_unique)]
Seeds = Annotated[list[Seed], Field(min_length=1), AfterValidator(_unique)]
Names = Annotated[list[str], Field(min_length=1), AfterValidator(_unique)]
FrameworkNames = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_unique)]
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

    mirror: str | None = None
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


class Dataset(Parameters):
    """A graph to train on."""

    features: Literal["raw", "row", "minmax"] = "raw"
    """`raw`: as they are in the files (code, for Cora, CiteSeer and PubMed); `minmax`: each column scaled to 0 … 1 (code, for
    MSAcademic); `row`: each node's features sum to 1, as much other work has it (ours; stalls with the SGD of FedDEP)"""
    labelled: Annotated[float, Field(gt=0, le=1)] | None = None
    """share of all nodes whose label may be trained on, at most `split.train`; `null`: all of `split.train`. The nodes of a
    smaller share are among those of a larger one"""
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
    """How Louvain communities are dealt to clients."""

    delta: Natural = 20
    """communities above n/M − `delta` nodes are cut into pieces of that size, and pieces are dealt to a client as long as it
    stays below n/M + `delta` nodes (code)"""


class Block(Parameters):
    """Runs: every combination of what it names.  What it leaves out is as in the first main table."""

    settings: Entries | None = None
    """settings by name, each with what to change"""
    datasets: Entries | None = None
    """datasets likewise"""
    frameworks: Entries | None = None
    """frameworks likewise; by default the rows of the main table of the setting"""
    clients: Clients | None = None
    """numbers of clients M"""
    seeds: Seeds | None = None
    """seeds"""


class Table(Parameters):
    """A main table."""

    setting: str
    """its setting"""
    frameworks: Names | None = None
    """its rows; `null`: every entry of `frameworks`"""
    datasets: Names | None = None
    """its datasets; `null`: every entry of `datasets`"""


class Study(Parameters):
    """Runs beside the main tables, with a table and a figure of their own in `results/studies/NAME/`."""

    name: Name
    """name of its folder"""
    kind: Literal["sweep", "curves", "grid", "paired", "headroom", "privacy"]
    """what is made of the runs, see below"""
    title: str = ""
    """heading of its table and figure"""
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
    membership: FrameworkNames = (
        *("local", "fedavg", "fedgnn", "fedgraph", "fedgsl", "fedsage_plus"),
        *("feddep_wo_dgen", "feddep_wo_proto", "feddep_wo_nfdp", "feddep"),
    )
    """frameworks whose messages are searched for edges"""
    canaries: FrameworkNames = ("feddep_wo_nfdp",)
    """frameworks whose ε is bounded from below"""
    properties: FrameworkNames = ("feddep_wo_nfdp",)
    """frameworks from whose prototypes properties of clients are inferred"""
    reconstruction: FrameworkNames = ("feddep",)
    """frameworks from whose prototypes features are reconstructed"""


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
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    """threads of one training job. On graphs of this size more jobs at a time gain more than more threads. *Not in the key*, but
    in the provenance: the same bytes are promised for the same machine and thread count"""
    memory: Memory = Memory()
    """memory of jobs"""
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    """graphs by name, each with its options (`{}` for the defaults); a name that is no known dataset needs `synthetic`"""
    clients: Clients
    """numbers of clients M (FedDEP and FedSage, Table 2: 3, 5, 10)"""
    seeds: Seeds
    """one run for each; a seed determines split, partition, initial weights and every draw. Three repetitions as in FedDEP;
    FedSage has five"""
    split: SplitShares = SplitShares()
    """shares of the nodes"""
    partition: PartitionOptions = PartitionOptions()
    """division among clients"""
    settings: Annotated[dict[Name, Setting], Field(min_length=1)]
    """named sets of hyperparameters"""
    frameworks: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)]
    """frameworks by name, each with its own parameters (`{}` for the defaults). A parameter may have a value for each dataset:
    `embedding: {cora: 128, citeseer: 64}`"""
    tables: Annotated[list[Table], Field(min_length=1)] | None = None
    """the main tables, one a setting, whose numbers are never mixed; `null`: one for each setting, with everything"""
    studies: list[Study] = Field(default_factory=list)
    """studies beside the main tables"""
    quality: list[Block] = Field(default_factory=list)
    """runs whose FedDEP generators are compared with guesses that need no training; needs local GNNs and prototypes"""
    neighbourhoods: list[Block] = Field(default_factory=list)
    """runs whose mended neighbourhoods are compared with the true ones (FedSage, Appendix D, Table 1 and Figure 1); for
    frameworks that generate features: `fedsage_plus`, `fedsage_plus_shared`, `locsage_plus`; needs trained generators"""
    label_distributions: list[Block] = Field(default_factory=list)
    """runs whose clients' labels, and whose models' predictions, are counted (FedSage, Figure 4); for frameworks that train a
    plain GraphSAGE; needs trained classifiers"""
    audit: Audit = Audit()
    """attacks on what leaves clients"""

    @model_validator(mode="after")
    def _check_names(self) -> "Configuration":
        names = [study.name for study in self.studies]
        if len(set(names)) < len(names):
            raise ValueError(f"studies has the name {next(name for name in names if names.count(name) > 1)} twice")
        return self
