"""Table 1 measured: operations against counts by hand, bytes against ledgers, and both against what the remarks claim."""

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from feddep import config, frameworks, mending, overhead, seeding
from feddep.__main__ import main
from feddep.datasets.synthetic import planted_partition
from feddep.errors import ConfigError
from feddep.generation import GeneratorTraining, LossWeights, nearest_in
from feddep.neighbour_generation.training import NeighGenTrainer
from feddep.overhead import SCHEMES, Line, measure
from feddep.partition import Partition, louvain
from feddep.problem import Problem
from feddep.reporting.overhead import markdown
from feddep.settings import Setting
from feddep.splits import random_split
from feddep.steps import make_all
from feddep.storage import write_json
from feddep.watching.dgen import Watched, spent_on_distances
from graphs import random_graph

DGEN = {"prototypes": 4, "embedding": 6, "pretraining_epochs": 1, "generator_epochs": 2, "hidden_from": "all"}
NEIGHGEN = {"embedding": 6, "generator_width": 8, "generator_batch": 16, "local_epochs": 1, "federated_epochs": 2}
SMALL = {"feddep": DGEN, "feddep_wo_proto": DGEN, "fedsage_plus": NEIGHGEN}
EPOCHS = 2
SHARE = {"train": 0.6, "val": 0.2, "test": 0.2}
NAMES = [scheme.framework for scheme in SCHEMES]


def problem_of(clients: int = 3) -> Problem:
    graph = planted_partition(120, 4, 12, 32, 6.0, 1.0, 8, 0.8, 0)
    setting = Setting("sgd", 0.5, 0.0, 16, 3, 2, 1, 2, 16, 0.2)
    return Problem("overhead", graph, random_split(120, SHARE, 0), louvain(graph, clients, 0, 5), setting, 0)


@cache
def measured(name: str, clients: int = 3, **changes: Any) -> tuple[Problem, list[Line]]:
    """A run with all its steps made, and what is measured on it."""
    module, problem = frameworks.load(name), problem_of(clients)
    parameters = module.Parameters(**{**SMALL[name], **changes})
    problem = dataclasses.replace(problem, made=make_all(problem, parameters, module.steps(parameters)))
    scheme = next(scheme for scheme in SCHEMES if scheme.framework == name)
    return problem, measure(scheme, name, problem, parameters)


def number(lines: list[Line], quantity: str, client: int | None = None) -> Line:
    return next(line for line in lines if (line.quantity, line.client) == (quantity, client))


def test_a_search_costs_what_counting_by_hand_gives():
    n, slots, d = 3, 2, 4
    others = [torch.rand(k, d) for k in (5, 7)]
    points, chosen = torch.rand(n, slots, d), torch.rand(n, slots) < 0.5
    search = Watched(nearest_in(others))
    torch.testing.assert_close(search(points, chosen), nearest_in(others)(points, chosen))
    by_hand = 0
    for k in (5, 7):
        by_hand += k * d + k * d  # squares of the candidates, and their sums
        by_hand += 2 * n * slots * d * k  # inner products of every point and candidate
        by_hand += n * slots * k * 3  # doubled, taken from the squares, the least of a row sought
    assert search.operations == [by_hand]
    assert search.generated == [pytest.approx(float(chosen.sum()) / n)]


@pytest.mark.parametrize("others", [1, 2, 4])
def test_distances_cost_what_counting_by_hand_gives(others):
    n, slots, d = 3, 2, 4
    how = GeneratorTraining(1, "sgd", 0.1, 1.0, "generated", "paper", LossWeights())
    chosen = torch.ones(n, slots, dtype=torch.bool)
    each, slot = n * slots * d, n * slots
    forward = each + each + each  # differences, squares, and their sums over coordinates
    forward += slot + slot + 3  # those that count, their sum; divided by n, weighted, added to the loss
    backward = 2 + slot  # weight and n, those that count
    backward += 3 * each  # of a square: the power, twice it, times the gradient
    total = others * (forward + backward) + (others - 1) * each  # gradients of the same embeddings are added up
    assert spent_on_distances(torch.rand(n, slots, d), chosen, torch.rand(others, n, slots, d), how) == total


@pytest.mark.parametrize(
    ("name", "where"), [("feddep", mending), ("feddep_wo_proto", mending), ("fedsage_plus", NeighGenTrainer)]
)
def test_it_watches_the_training_that_the_step_does(name, where, monkeypatch):
    """The generators that are watched end with the very weights of the step's: they generate the same."""
    done: list[list[torch.Tensor]] = []
    mend = where.mend

    def recording(*args: Any) -> Any:
        result = mend(*args)
        done.append(list(result.values() if isinstance(result, dict) else result))
        return result

    monkeypatch.setattr(where, "mend", recording)
    measured.__wrapped__(name)
    clients = len(done) // 2
    assert clients == 3
    for made, watched in zip(done[:clients], done[clients:], strict=True):
        assert all(torch.equal(tensor, again) for tensor, again in zip(made, watched, strict=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clients", [1, 3])
def test_bytes_are_those_of_the_ledgers_and_our_formulas_give_them_exactly(name, clients):
    problem, lines = measured(name, clients)
    stages = [stage for stage in ("prototypes", "generator") if stage in problem.made]
    sent = sum(row["bytes"] for stage in stages for row in problem.made[stage].ledger)
    total, epoch = number(lines, "bytes_total"), number(lines, "bytes_epoch")
    assert total.measured == sent / (clients if name == "feddep" else sum(nodes_of(name, problem)))
    assert total.measured == pytest.approx(total.ours_value)
    assert epoch.measured == pytest.approx(epoch.ours_value)
    assert epoch.measured == (0 if name == "feddep" else total.measured / EPOCHS)


def nodes_of(name: str, problem: Problem) -> list[int]:
    """Number of nodes that an update of each client generates for: those that are not hidden, or a batch of them."""
    sizes = [len(nodes) for nodes in owned(problem)]
    return [16] * len(sizes) if name == "fedsage_plus" else [size - round(0.5 * size) for size in sizes]


def owned(problem: Problem) -> list[Any]:
    assert problem.partition is not None
    return [problem.partition.nodes(i) for i in range(problem.partition.num_clients)]


def test_the_papers_formulas_by_hand():
    wo_proto, ours = measured("feddep_wo_proto")[1], measured("feddep")[1]
    n, m, slots, d, c, epochs = 120, 3, 5, 6, 4, 2
    assert number(wo_proto, "operations").paper_value == n * slots * d
    assert number(wo_proto, "bytes_epoch").paper_value == 4 * m * slots * d
    assert number(wo_proto, "bytes_total").paper_value == 4 * epochs * m * slots * d
    sage = measured("fedsage_plus")[1]
    weights = (6 + 1) + (6 * 256 + 256) + (256 * 8 + 8) + 5 * (8 * 32 + 32)  # dGen, two layers of fGen, and one for each slot
    assert number(sage, "operations").paper_value == pytest.approx(n * number(sage, "sought").measured * 32)
    assert number(sage, "bytes_epoch").paper_value == 4 * m * weights * d
    assert number(sage, "bytes_total").paper_value == 4 * epochs * m * weights * d
    assert number(ours, "operations").paper_value == m * c**2 * d
    assert number(ours, "bytes_epoch").paper_value == 0
    assert number(ours, "bytes_total").paper_value == 4 * m * c * d


def test_what_prototypes_cost_grows_with_their_number_and_not_with_its_square():
    spent = [number(measured("feddep", prototypes=count)[1], "operations").measured for count in (4, 8, 12)]
    assert spent[2] - spent[1] == pytest.approx(spent[1] - spent[0])
    assert spent[1] > spent[0]


def test_what_is_spent_does_not_depend_on_what_is_generated():
    kept, dropped = (measured("feddep_wo_proto", bernoulli_rate=rate, **GENERATING)[1] for rate in (1.0, 0.0))
    assert number(kept, "generated").measured > number(dropped, "generated").measured == 0
    for quantity in ("sought", "operations", "bytes_epoch", "bytes_total"):
        assert number(kept, quantity).measured == number(dropped, quantity).measured


GENERATING = {"generator_optimizer": "adam", "generator_learning_rate": 0.02, "generator_epochs": 20}


@pytest.mark.parametrize("name", NAMES)
def test_a_mean_is_one_over_all_nodes_and_a_part_is_less_than_the_whole(name):
    problem, lines = measured(name)
    nodes = nodes_of(name, problem)
    for quantity in ("sought", "operations", "all_operations"):
        each = [number(lines, quantity, client).measured for client in range(3)]
        mean = sum(size * value for size, value in zip(nodes, each, strict=True)) / sum(nodes)
        assert number(lines, quantity).measured == pytest.approx(mean)
    for client in (None, 0, 1, 2):
        assert 0 < number(lines, "operations", client).measured < number(lines, "all_operations", client).measured


@pytest.mark.parametrize("change", [{"generator_epochs": 0}, {"cross_weight": 0.0}])
def test_where_nothing_is_learned_from_others_there_is_nothing_to_measure(change):
    with pytest.raises(ConfigError, match=r"generator_epochs is .* and cross_weight is .*; both must be above 0"):
        measured("feddep", **change)


def test_neighgen_needs_federated_epochs():
    with pytest.raises(ConfigError, match="federated_epochs is 0; it must be above 0"):
        measured("fedsage_plus", federated_epochs=0)


def test_the_page_has_formulas_remarks_and_clients():
    from feddep.plan import Run

    lines = [line for name in NAMES for line in measured(name)[1]]
    page = markdown(Run("quick", "tiny", 3, "", 0), lines)
    assert all(scheme.remark in page for scheme in SCHEMES)
    assert r"| FedDEP           | operations, of a node in an update | M C² d_z " in page
    assert page.count("| all    |") == len(SCHEMES)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags of the stage, and the files that they name, for a made-up graph."""
    raw = {
        "output": "results",
        "records": {"directory": "records", "use": False},
        "datasets": {"tiny": {"synthetic": {"nodes": 60, "communities": 6, "seed": 0}}},
        "clients": [2],
        "seeds": [0],
        "settings": {"quick": {"rounds": 1, "batch_size": 16, "hidden": 8}},
        "frameworks": {name: {**SMALL[name], "embedding": 4} for name in NAMES},
    }
    write_json(tmp_path / "config.json", config.validate(raw))
    graph = random_graph(60, 150, seed=1)
    graph.save(tmp_path / "graph.safetensors")
    random_split(60, SHARE, 0).save(tmp_path / "split.safetensors")
    Partition(seeding.generator(0, "owners").permutation(60) % 2, 2).save(tmp_path / "partition.safetensors")
    named = [f"--{name}={tmp_path / name}.safetensors" for name in ("graph", "split", "partition")]
    run = ["--dataset=tiny", "--setting=quick", "--clients=2", "--seed=0", f"--config={tmp_path / 'config.json'}"]
    return ["overhead", *run, *named]


def test_the_stage_writes_the_same_bytes_again(files, tmp_path):
    for name in ("first", "again"):
        flags = [f"--framework={framework}" for framework in [*NAMES, "feddep,prototypes=2"]]
        assert main([*files, *flags, f"--output={tmp_path / name}"]) == 0
    for name in ("overhead.csv", "overhead.md"):
        text = (tmp_path / "first" / name).read_text(encoding="utf-8")
        assert text == (tmp_path / "again" / name).read_text(encoding="utf-8")
        assert "feddep,prototypes=2" in text or "FedDEP,prototypes=2" in text
    header = (tmp_path / "first" / "overhead.csv").read_text().splitlines()[0]
    assert header.startswith("dataset,clients,setting,seed,framework,client,quantity,of,measured,paper,paper_value,ours")


def test_a_framework_without_an_entry_is_a_clear_error(files, tmp_path, capsys):
    assert main([*files, "--framework=fedavg", f"--output={tmp_path}"]) == 1
    assert "--framework is fedavg; the table has entries for fedsage_plus, feddep_wo_proto, feddep" in capsys.readouterr().err


def test_every_scheme_is_a_framework():
    assert set(NAMES) <= set(frameworks.available())
    assert torch.float32.itemsize == overhead.BYTES
