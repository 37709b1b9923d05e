"""What tables read of results and statistics, and what a list of renames may hold, as schemas."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from feddep.utils.parameters import Share
from feddep.utils.schemas import Schema


class Sent(Schema):
    """Bytes of messages of one kind."""

    kind: str
    bytes: Annotated[int, Field(ge=0)]


class BestAndLast(Schema):
    """A share of nodes at the round that is best on validation, and after the last."""

    best: Share
    last: Share


class Client(Schema):
    """What is reported of a client with a model of its own."""

    accuracy: BestAndLast


class Curve(Schema):
    """Lists over the rounds, of one length."""

    round: Annotated[list[int], Field(min_length=1)]
    loss: list[float]
    validation: list[Share]
    test: list[Share]

    @model_validator(mode="after")
    def _of_one_length(self) -> "Curve":
        if {len(self.loss), len(self.validation), len(self.test)} != {len(self.round)}:
            raise ValueError("there is not one value for each round")
        return self


class Result(Schema):
    """What a run measured, see :func:`feddep.training.summary.summary`."""

    accuracy: BestAndLast
    validation: BestAndLast
    global_validation: BestAndLast | None = None
    own: BestAndLast | None = None
    local_before: BestAndLast | None = None
    local_after: BestAndLast | None = None
    best_round: int | list[int]
    clients: list[Client]
    curve: Curve
    communication: list[Sent]
    specification: dict[str, Any] = Field(default_factory=dict)


class Provenance(Schema):
    """What is shown of a result's provenance; any of it may be missing."""

    code: str | None = None
    data_fingerprint: str = ""
    seconds: float = 0.0
    seconds_before: dict[str, float] = Field(default_factory=dict)
    seconds_by_round: list[float] = Field(default_factory=list)
    time: str | None = None


class Metrics(Schema):
    """The metrics.json of a run, or its record."""

    key: str
    result: Result
    provenance: Provenance


class RenamedMethod(Schema):
    """What became of a method's name and options."""

    name: str | None = None
    options: dict[str, str] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)


class Renames(Schema):
    """What settings and methods were called before, see :func:`feddep.experiment.migration.migrated`."""

    model_config = ConfigDict(extra="forbid")

    setting: dict[str, str] = Field(default_factory=dict)
    methods: dict[str, RenamedMethod] = Field(default_factory=dict)


class GraphStatistics(Schema):
    """Statistics of a graph that the table of partitions shows."""

    nodes: int
    edges: int
    features: int
    classes: int


class PartitionStatistics(Schema):
    """Statistics of a partition that the table of partitions shows."""

    mean_client_nodes: float
    mean_client_edges: float
    missing_edges: int
    cut_nodes: int
