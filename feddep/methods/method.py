"""Declarations of methods: methods, the rows of a table, and steps, what is computed before a
classifier is trained.

A declaration names its function as ``"module:function"``; it is imported when it is called, so that
planning needs no PyTorch.
"""

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from feddep.nn.encoder_names import ENCODERS, SMOOTHED
from feddep.training.config import Evaluation
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import Parameters
from feddep.utils.spaces import Space

if TYPE_CHECKING:
    from torch import Tensor

    from feddep.training.task import RunResult, Task


@dataclass(frozen=True, eq=False)
class StepResult:
    """Result of a step.

    Attributes:
        tensors: by name, such as ``client0.embeddings``.  Those of all clients are together:
            whoever reads another client's has to send it across the boundary first.
        communication: what crossed the boundary meanwhile (rows of
            :class:`~feddep.federation.communication.CommunicationLog`).
    """

    tensors: "dict[str, Tensor]"
    communication: list[dict[str, Any]] = field(default_factory=list)

    def of_clients(self, name: str) -> "list[Tensor]":
        """The tensors ``client0.NAME``, ``client1.NAME`` … in the order of clients."""
        found: list[Tensor] = []
        while (key := f"client{len(found)}.{name}") in self.tensors:
            found.append(self.tensors[key])
        return found


def by_client(**tensors: "Sequence[Tensor]") -> "dict[str, Tensor]":
    """Tensors under the names that :meth:`StepResult.of_clients` looks for, from a sequence of one
    a client for each name.
    """
    return {
        f"client{i}.{name}": tensor
        for name, sequence in tensors.items()
        for i, tensor in enumerate(sequence)
    }


def _lower(*parameters: str) -> str:
    """Remedy where training with the setting's optimiser diverges."""
    return f"lower {', '.join(['learning_rate', *parameters])} or weight_decay"


@dataclass(frozen=True)
class Step:
    """A computation whose result is cached, and all that the result depends on.

    Attributes:
        name: tells it from every other step, such as ``feddep.generator``.
        stage: ``pretrain``, ``prototypes`` or ``generator``; where its files lie, and how tables
            call it.
        function: ``"module:function"``, called with the task, an instance of ``parameters`` and the
            results of ``needs`` by stage; returns a :class:`StepResult`.
        parameters: the method's parameters that it may read: a base class of the method's own
            class.
        setting: the fields of the setting that it may read.
        needs: stages whose results it reads.
        revision: raised when its numbers change.
    """

    name: str
    stage: str
    function: str
    parameters: type[Parameters]
    setting: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    revision: int = 1

    def run(
        self, task: "Task", parameters: Parameters, results: Mapping[str, StepResult]
    ) -> StepResult:
        """Compute the step, which sees nothing but what it declares.

        Raises:
            DivergenceError: if training diverges; the sentence says where, and what may help.
        """
        from feddep.training.divergence import divergence_named

        restricted = task.setting.restricted(self.setting, f"step {self.name}")
        inner = dataclasses.replace(task, setting=restricted, on_round=None)
        remedy = (
            _lower()
            if "learning_rate" in self.setting
            else "other features may help (key datasets.NAME.features)"
        )
        with divergence_named(f"step {self.name} of {task.name}", remedy, task.graph.features):
            return load(self.function)(
                inner,
                self.parameters.of(parameters),
                {stage: results[stage] for stage in self.needs},
            )


BUILT_IN_ENCODERS: tuple[str, ...] = tuple(name for name in ENCODERS if name not in SMOOTHED)
"""For a method that trains all classifiers of this package that have a layer a hop."""
_OTHERS = "any of plugins and MODULE.CLASS"
ANY_ENCODER: tuple[str, ...] = (*ENCODERS, _OTHERS)
"""For a method that trains whatever classifier the setting names, one of a plugin or by its dotted
name too."""


CROSS_CLIENT_EDGES = "cross-client edges known"
"""The assumption (:attr:`Method.assumes`) of a method that asks for neighbours at other clients by
their ids.
"""
CLASS_SHARES = "class shares shared"
"""The assumption of a method whose messages tell, exactly or nearly, how many of a client's nodes
are of each class.
"""
ORACLE = "oracle"
"""The assumption of a method that is given what no client could know."""


_DIVERGE = ("generator_learning_rate", "sigma", "clip", "noise")
"""Parameters of methods that make training diverge where they are too large."""


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes:
        name: its key in the configuration and in paths.
        title: its name in tables and figures.
        parameters: class of its parameters.
        function: ``"module:function"``, called with the task, the parameters and the results of the
            steps by stage; trains the classifier and returns a
            :class:`feddep.training.task.RunResult`.
        steps: from the parameters to what is computed before; by default nothing.
        partitioned: whether it works on clients' subgraphs, or on the whole graph.
        assumes: what it needs or gives away beyond FedAvg, in the words of docs/methods/index.md.
        encoders: the setting's encoders that it can train.
        full_batch: whether it can train on all nodes at once, as the setting may ask for.
        mini_batch: whether it can train on sampled mini-batches.
        absence: whether clients may be absent from rounds, as the setting's `participation` and
            `lost_updates` may ask for; a method without rounds of messages does not read them.
        new_clients: whether it has a model for a client that has never sent anything, where
            clients may be absent.
        tested_apart: whether it can be tested on another graph than it is trained on, as where
            features or edges are noisy, or test nodes unseen (:mod:`feddep.graph.noise`).
        sampled: the encoders that it can train on these, where it is not all of ``encoders``.
        check: raises a :class:`ConfigError` where its parameters do not go with the encoder.
        evaluation: who is judged unless the setting says that owners are: ``global``, or, for a
            model a client, ``local_before`` or ``local_after`` the local steps of a round
            (:data:`feddep.training.config.Evaluation`).  The round is chosen by the validation of
            the same models.
        search: what a search of its parameters tries (:mod:`feddep.utils.spaces`); the others keep
            their defaults.
        training: values of the setting that a search tries, where it cannot train with others; the
            first in place of another.
        published: parameters that its authors publish beside the defaults; a search tries them too.
        as_fedavg: parameters with which it is FedAvg, where it has any; a search tries them too.
        revision: raised when the numbers of its classifier's training change.
        look: how figures draw it: a colour, which a family of methods shares, and its number in
            the family, by which shade, marker and dash differ; by default by its name.
    """

    name: str
    title: str
    parameters: type[Parameters]
    function: str
    steps: Callable[[Any], Sequence[Step]] = lambda parameters: ()
    partitioned: bool = True
    assumes: tuple[str, ...] = ()
    encoders: tuple[str, ...] = ("sage",)
    full_batch: bool = False
    mini_batch: bool = True
    absence: bool = False
    new_clients: bool = True
    tested_apart: bool = False
    sampled: tuple[str, ...] | None = None
    check: Callable[[Any, str], None] = lambda parameters, encoder: None
    evaluation: Evaluation = "global"
    search: Space = field(default_factory=dict, hash=False)
    training: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)
    published: Sequence[Mapping[str, Any]] = field(default=(), hash=False)
    as_fedavg: Mapping[str, Any] | None = field(default=None, hash=False)
    revision: int = 1
    look: tuple[str, int] | None = None

    def check_setting(self, setting: Mapping[str, Any], parameters: Parameters) -> None:
        """Make sure that with these parameters it can train with a setting, given by all of its
        fields.

        Raises:
            ConfigError: if it cannot.
        """
        encoder, full_batch = setting["encoder"], setting["full_batch"]
        if (encoder if encoder in ENCODERS else _OTHERS) not in self.encoders:
            raise ConfigError(
                f"encoder is {encoder} (key settings), but {self.name} knows "
                f"{', '.join(self.encoders)} only"
            )
        if full_batch and not self.full_batch:
            raise ConfigError(
                f"full_batch is true (key settings), but {self.name} trains on sampled mini-batches"
            )
        if not full_batch and not self.mini_batch:
            raise ConfigError(
                f"full_batch is false (key settings), but {self.name} trains on all nodes at once"
            )
        if (setting["participation"] < 1 or setting["lost_updates"]) and not self.absence:
            raise ConfigError(
                f"participation is below 1 or lost_updates above 0 (key settings), but {self.name} "
                "needs every client in every round"
            )
        if setting["new_clients"] and not (self.absence and self.new_clients):
            raise ConfigError(
                f"new_clients is {setting['new_clients']} (key settings), but {self.name} has no "
                "model for clients that send nothing"
            )
        if setting["new_clients"] and setting["evaluation"] != "owners":
            raise ConfigError(
                f"new_clients is {setting['new_clients']}, which needs evaluation owners (key "
                f"settings), but it is {setting['evaluation']}"
            )
        if not full_batch and self.sampled is not None and encoder not in self.sampled:
            raise ConfigError(
                f"encoder is {encoder} and full_batch is false (key settings), but on sampled "
                f"mini-batches {self.name} knows {', '.join(self.sampled)} only"
            )
        self.check(parameters, encoder)

    def check_overlap(self) -> None:
        """Make sure that it can train clients that overlap: no edge is between two of them, as a
        node may be at both.

        Raises:
            ConfigError: if it cannot.
        """
        if {CROSS_CLIENT_EDGES, ORACLE} & set(self.assumes):
            raise ConfigError(
                f"{self.name} needs edges between clients, but clients that overlap (partition: "
                "overlap) have none"
            )

    def check_tested_apart(self) -> None:
        """Make sure that it can be tested on another graph than it is trained on.

        Raises:
            ConfigError: if it cannot.
        """
        if not self.tested_apart:
            raise ConfigError(
                f"{self.name} is tested on the graph that it is trained on; noise of features or "
                "topology (key datasets) and unseen test nodes (key split) need two"
            )

    def run(self, task: "Task", parameters: Parameters) -> "RunResult":
        """Compute the steps that are not at hand, train the classifier, and add up what crossed the
        boundary.

        Raises:
            ConfigError: if it cannot train with the setting, on clients that overlap or on another
                graph than it is tested on, or returns something else than a history of all rounds.
            DivergenceError: if training diverges; the sentence says in which round, and what to
                lower.
        """
        self.check_setting(task.setting.model_dump(), parameters)
        if task.partition is not None and not task.partition.is_disjoint:
            self.check_overlap()
        if task.graph.tested is not None:
            self.check_tested_apart()
        from feddep.federation.communication import merged
        from feddep.training.divergence import divergence_named

        results = run_steps(task, parameters, self.steps(parameters))
        task = dataclasses.replace(
            task,
            evaluation="owners" if task.setting.evaluation == "owners" else self.evaluation,
            shared=self.evaluation == "global",
        )
        own = [key for key in _DIVERGE if key in type(parameters).model_fields]
        with divergence_named(self.name, _lower(*own), task.graph.features):
            result: RunResult = load(self.function)(task, parameters, results)
        self._check(result, task)
        communication = merged(
            *(step.communication for step in results.values()), result.communication
        )
        return dataclasses.replace(result, communication=communication, constant=task.constant)

    def _check(self, result: Any, task: "Task") -> None:
        from feddep.training.task import RunResult

        if not isinstance(result, RunResult):
            raise ConfigError(
                f"{self.name} returned {type(result).__name__}; a method returns a RunResult"
            )
        recorded = len(result.history.losses)
        if recorded != task.setting.rounds:
            raise ConfigError(
                f"{self.name} recorded {recorded} rounds; it must record {task.setting.rounds}"
            )
        if task.evaluation == "owners" != result.history.evaluation:
            raise ConfigError(
                f"evaluation is owners (key settings), but {self.name} returned no owners' counts"
            )


def run_steps(task: "Task", parameters: Parameters, steps: Sequence[Step]) -> dict[str, StepResult]:
    """The result of each step by its stage: as it came with the task, or computed now."""
    results: dict[str, StepResult] = {}
    for step in steps:
        given = task.step_results.get(step.stage)
        results[step.stage] = step.run(task, parameters, results) if given is None else given
    return results


def load(function: str) -> Callable[..., Any]:
    """The function that ``"module:function"`` names."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)
