"""The plan: which runs and partitions there are."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.config.loading import Config, entry, validate
from feddep.experiment import plan
from feddep.experiment.plan import PartitionSpec, Run
from feddep.utils.errors import ConfigError, PartitionError
from graphs import PLANNED_CONFIG

TABLES = [
    {"setting": "quick", "methods": ["global", "fedavg"]},
    {"setting": "slow", "methods": ["local"], "datasets": ["tiny"]},
]
RAW = {**PLANNED_CONFIG, "tables": TABLES[:1]}


def test_the_partition_of_a_run():
    assert Run("quick", "cora,labelled=0.1", 5, "fedavg", 2).partition == PartitionSpec(
        "cora", 5, 2
    )
    assert Run("quick", "cora", None, "global", 0).partition is None
    skewed = Run(
        "quick", "cora,labelled=0.1,partition=dirichlet,partition_beta=0.5", 5, "fedavg", 2
    ).partition
    assert skewed == PartitionSpec("cora,partition=dirichlet,partition_beta=0.5", 5, 2)


def test_the_main_tables():
    config = validate({**RAW, "tables": [TABLES[1], TABLES[0]]})
    # slow: 1 dataset, 2 numbers of clients, 2 seeds; quick: 2 datasets, 2 seeds, Global once and
    # FedAvg for each M
    assert len(plan.runs(config)) == len(set(plan.runs(config))) == 1 * 2 * 2 + 2 * 2 * (1 + 2)
    assert list(dict.fromkeys((run.setting, run.method) for run in plan.runs(config))) == [
        ("slow", "local"),
        ("quick", "global"),
        ("quick", "fedavg"),
    ]
    assert plan.datasets(config) == ["tiny", "cora"]
    every = {
        PartitionSpec(name, clients, seed)
        for name in ("cora", "tiny")
        for clients in (3, 5)
        for seed in (0, 1)
    }
    assert set(plan.partitions(config)) == every
    assert len(plan.partitions(config)) == 8


def test_a_dataset_that_is_several_graphs_is_its_partition():
    def planned(clients: list[int], **options: str) -> list[PartitionSpec]:
        return plan.partitions(
            validate({**RAW, "datasets": {"webkb": options}, "clients": clients, "seeds": [0]})
        )

    assert planned([3]) == [PartitionSpec("webkb", 3, 0)]
    config = validate(
        {**RAW, "datasets": {"webkb": {}, "cora": {}}, "partition": {"method": "random"}}
    )
    assert [entry(config, "datasets", name)["partition"] for name in ("webkb", "cora")] == [
        "given",
        "random",
    ]
    assert entry(config, "datasets", "webkb,partition=metis")["partition"] == "metis"
    assert len(planned([3, 5], partition="metis")) == 2
    with pytest.raises(ConfigError, match=r"clients is 5\b.*3 graphs"):
        planned([3, 5])
    tables = [{"setting": "quick", "methods": ["fedgcn"]}]
    with pytest.raises(ConfigError, match=r"fedgcn needs .* webkb"):
        plan.all_runs(
            validate({**RAW, "datasets": {"webkb": {}}, "clients": [3], "tables": tables})
        )


@pytest.mark.parametrize(("evaluation", "counts"), [("method", [None]), ("owners", [3, 5])])
def test_a_model_of_the_whole_graph_has_clients_where_they_judge_it(
    evaluation: str, counts: list[int | None]
) -> None:
    config = validate(
        {
            **RAW,
            "datasets": {"cora": {}},
            "seeds": [0],
            "settings": {"quick": {"evaluation": evaluation}},
        }
    )
    assert [run.clients for run in plan.runs(config) if run.method == "global"] == counts


def test_the_area_under_the_roc_curve_is_for_two_classes() -> None:
    def planned(dataset: str) -> list[Run]:
        return plan.all_runs(
            validate(
                {**RAW, "datasets": {dataset: {}}, "settings": {"quick": {"metric": "roc_auc"}}}
            )
        )

    assert planned("tolokers")
    with pytest.raises(ConfigError, match=r"metric is roc_auc .* cora has 7"):
        planned("cora")


def test_clients_that_overlap_are_five_a_part_and_have_no_edges_between_them() -> None:
    def planned(clients: list[int], method: str) -> list[Run]:
        raw = {
            **RAW,
            "datasets": {"cora": {"partition": "overlap"}},
            "seeds": [0],
            "clients": clients,
        }
        return plan.all_runs(
            validate({**raw, "tables": [{"setting": "quick", "methods": ["global", method]}]})
        )

    assert [run.clients for run in planned([5, 10], "fedavg")] == [None, 5, 10]
    with pytest.raises(PartitionError, match=r"clients is 3\b.* 5 "):
        planned([3], "fedavg")
    for method in ("fedgcn", "fedgnn", "fedavg_oracle", "feddep_oracle"):
        with pytest.raises(ConfigError, match=f"{method} .*overlap"):
            planned([5], method)


NAMES: dict[str, list[Any]] = {
    "settings": ["quick", "slow"],
    "datasets": ["cora", "tiny"],
    "methods": ["global", "fedavg", "feddep", "feddep,depth=1"],
}
OPTIONS: dict[str, dict[str, list[Any]]] = {
    "settings": {"rounds": [50, 99, [1, 50]], "dropout": [0.0]},
    "datasets": {"labelled": [None, 0.1, [0.1, 0.2]], "features": ["row"]},
    "methods": {},
}


def entries(section: str) -> st.SearchStrategy[dict[str, Any]]:
    options = st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(values) for key, values in OPTIONS[section].items()}
    )
    return st.dictionaries(st.sampled_from(NAMES[section]), options, min_size=1, max_size=3)


BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        **{section: entries(section) for section in NAMES},
        "clients": st.sampled_from([[2], [5, 3]]),
        "seeds": st.sampled_from([[7], [0, 9]]),
    },
)


def slow_runs(block: dict[str, Any]) -> set[tuple[Any, ...]]:
    """What a block asks for, written out: options of setting and dataset, M, method, seed."""
    tables = {table["setting"]: table for table in TABLES}
    found = set()
    for setting, changes in block.get("settings", {"quick": {}}).items():
        for dataset, data in block.get(
            "datasets", {name: {} for name in tables[setting].get("datasets", ["cora", "tiny"])}
        ).items():
            for method in block.get("methods", tables[setting]["methods"]):
                counts = [None] if method == "global" else block.get("clients", RAW["clients"])
                for clients, seed in itertools.product(counts, block.get("seeds", RAW["seeds"])):
                    for one in expanded(
                        {"rounds": 50 if setting == "quick" else 99, "dropout": 0.5, **changes}
                    ):
                        for other in expanded({"labelled": None, "features": "raw", **data}):
                            found.add(
                                (
                                    setting,
                                    *one.values(),
                                    dataset,
                                    *other.values(),
                                    clients,
                                    method,
                                    seed,
                                )
                            )
    return found


def expanded(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Each choice of one value where there are several."""
    choices = [{}]
    for key, value in options.items():
        choices = [
            {**each, key: one}
            for each in choices
            for one in (value if isinstance(value, list) else [value])
        ]
    return choices


def told(config: Config, run: Run) -> tuple[Any, ...]:
    """The same of a run of the plan."""
    setting, data = entry(config, "settings", run.setting), entry(config, "datasets", run.dataset)
    names = run.setting.partition(",")[0], run.dataset.partition(",")[0]
    options = [setting["rounds"], setting["dropout"]], [data["labelled"], data["features"]]
    return (names[0], *options[0], names[1], *options[1], run.clients, run.method, run.seed)


@given(st.lists(BLOCKS, min_size=1, max_size=3))
def test_a_study_is_every_combination_of_what_its_blocks_name(blocks: list[dict[str, Any]]):
    study = {"name": "c", "kind": "sweep", "runs": blocks}
    config = validate({**RAW, "tables": TABLES, "studies": [study]})
    found = plan.study_runs(config, "c")
    assert len(set(found)) == len(found)
    assert {told(config, run) for run in found} == set().union(*map(slow_runs, blocks))
    assert len({told(config, run) for run in found}) == len(found)
    assert plan.all_runs(config) == list(dict.fromkeys([*plan.runs(config), *found]))


def test_a_study_with_code_of_its_own_is_made_by_its_rules(tmp_path: Any, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    config = validate({**RAW, "studies": [{"name": "c", "kind": "mine", "runs": [{"seeds": [8]}]}]})
    assert {run.seed for run in plan.all_runs(config)} == {0, 1, 8}
    (tmp_path / "studies" / "group" / "mine").mkdir(parents=True)
    (tmp_path / "studies" / "group" / "mine" / "measure.py").touch()
    assert {run.seed for run in plan.all_runs(config)} == {0, 1}
    assert {run.seed for run in plan.study_runs(config, "c")} == {8}
