"""The plan: which runs and partitions there are."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.experiment.plan import Run, one_run
from feddep.utils.errors import ConfigError, PartitionError
from graphs import PLANNED_CONFIG

TABLES = [
    {"setting": "quick", "methods": ["global", "fedavg"]},
    {"setting": "slow", "methods": ["local"], "datasets": ["tiny"]},
]
RAW = {**PLANNED_CONFIG, "tables": TABLES[:1]}


def test_a_run_has_its_options_and_a_name_for_tables():
    config = validate(RAW)
    run = one_run(
        config,
        "feddep,prototypes=3",
        5,
        2,
        dataset="cora,labelled=0.1",
        split="within_clients,train=0.3",
        partition="dirichlet,beta=0.5",
    )
    place = "cora,labelled=0.1,split=within_clients,split_train=0.3,partition=dirichlet"
    assert run.path == f"quick/{place},partition_beta=0.5/m5/feddep,prototypes=3/seed2"
    specified = run.specification
    assert specified["partition"] == {"clients": 5, "method": "dirichlet", "beta": 0.5}
    assert specified["split"] == {"train": 0.3, "val": 0.2, "test": 0.5}
    assert specified["dataset"]["split"] == "within_clients"
    assert (specified["dataset"]["labelled"], specified["method"]["prototypes"]) == (0.1, 3)
    whole = one_run(config, "global").specification
    assert (whole["partition"], "split" in whole["dataset"]) == (None, False)


def test_splits_and_partitions_are_axes_of_a_block():
    block = {
        "datasets": {"cora": {}},
        "splits": {"random": {"train": [0.5, 0.6]}, "class_balanced": {}},
        "partitions": {"metis": {}, "dirichlet": {"beta": [0.1, 1.0]}},
        "methods": {"fedavg": {}},
        "clients": [3],
        "seeds": [0],
    }
    config = validate({**RAW, "studies": [{"name": "c", "kind": "sweep", "runs": [block]}]})
    found = plan.study_runs(config, "c")
    assert len({run.key for run in found}) == len(found) == 3 * 3
    assert {run.place.label for run in found if run.split.label == "random"} == {
        "cora,partition=metis",
        "cora,partition=dirichlet",
        "cora,partition=dirichlet,partition_beta=0.1",
    }
    # What a study gives holds for blocks that give nothing.
    axes = {"partitions": {"metis": {}}, "splits": {"class_balanced": {}}}
    study = {"name": "c", "kind": "sweep", **axes, "runs": [{}, {"partitions": {"random": {}}}]}
    runs = plan.study_runs(validate({**RAW, "studies": [study]}), "c")
    assert {run.partition.label for run in runs} == {"metis", "random"}
    assert {run.split.label for run in runs} == {"class_balanced"}
    for wrong in ({"datasets": {"cora": {"split": "masks"}}}, {"splits": {"masks": {}}}):
        with pytest.raises(ConfigError):
            validate({**RAW, "studies": [{"name": "c", "kind": "sweep", "runs": [wrong]}]})


def test_the_main_tables():
    config = validate({**RAW, "tables": [TABLES[1], TABLES[0]]})
    # slow: 1 dataset, 2 numbers of clients, 2 seeds; quick: 2 datasets, 2 seeds, Global once and
    # FedAvg for each M
    assert len(plan.runs(config)) == len(set(plan.runs(config))) == 1 * 2 * 2 + 2 * 2 * (1 + 2)
    assert list(
        dict.fromkeys((str(run.setting), str(run.method)) for run in plan.runs(config))
    ) == [
        ("slow", "local"),
        ("quick", "global"),
        ("quick", "fedavg"),
    ]
    assert list(plan.graphs(config)) == ["tiny", "cora"]
    divided = [(str(run.dataset), run.clients, run.seed) for run in plan.partitions(config)]
    assert set(divided) == set(itertools.product(("cora", "tiny"), (3, 5), (0, 1)))
    assert len(divided) == 8


def test_a_dataset_that_is_several_graphs_is_its_partition():
    def planned(clients: list[int], **options: Any) -> list[Run]:
        return plan.partitions(
            validate({**RAW, "datasets": {"webkb": options}, "clients": clients, "seeds": [0]})
        )

    assert [(run.partition.name, run.clients) for run in planned([3])] == [("given", 3)]
    config = validate(
        {**RAW, "datasets": {"webkb": {}, "cora": {}}, "partition": {"method": "random"}}
    )
    names = [
        one_run(config, "fedavg", 3, dataset=name).partition.name for name in ("webkb", "cora")
    ]
    assert names == ["given", "random"]
    assert len(planned([3, 5], partition={"method": "metis"})) == 2
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
    assert [run.clients for run in plan.runs(config) if run.method.name == "global"] == counts


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
            "datasets": {"cora": {"partition": {"method": "overlap"}}},
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


def test_noise_is_at_clients_of_methods_that_can_be_tested_apart() -> None:
    def planned(method: str, **options: Any) -> list[Run]:
        raw = {
            **RAW,
            "datasets": {"cora": options},
            **{"clients": [5], "seeds": [0]},
            "tables": [{"setting": "quick", "methods": [method]}],
        }
        return plan.all_runs(validate(raw))

    assert [run.clients for run in planned("global")] == [None]
    assert [run.clients for run in planned("global", noise="label_noise")] == [5]
    (run,) = planned("fedavg", split={"unseen": True}, noise="topology_noise", noise_level=0.3)
    assert run.specification["split"] == {"train": 0.6, "val": 0.2, "test": 0.2, "unseen": True}
    assert run.specification["dataset"]["noise_level"] == 0.3
    assert planned("feddep", noise="label_sparsity")
    for options in ({"noise": "feature_noise"}, {"split": {"unseen": True}}):
        with pytest.raises(ConfigError, match="feddep "):
            planned("feddep", **options)
    with pytest.raises(ConfigError, match="overlap"):
        planned("fedavg", partition={"method": "overlap"}, noise="label_noise")


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


def told(run: Run) -> tuple[Any, ...]:
    """The same of a run of the plan."""
    setting, data = run.setting, run.dataset
    of_setting = setting.name, setting.options["rounds"], setting.options["dropout"]
    of_data = data.name, data.options["labelled"], data.options["features"]
    return (*of_setting, *of_data, run.clients, run.method.label, run.seed)


@given(st.lists(BLOCKS, min_size=1, max_size=3))
def test_a_study_is_every_combination_of_what_its_blocks_name(blocks: list[dict[str, Any]]):
    study = {"name": "c", "kind": "sweep", "runs": blocks}
    config = validate({**RAW, "tables": TABLES, "studies": [study]})
    found = plan.study_runs(config, "c")
    assert len(set(found)) == len(found)
    assert {told(run) for run in found} == set().union(*map(slow_runs, blocks))
    assert len({told(run) for run in found}) == len(found)
    assert plan.all_runs(config) == list(dict.fromkeys([*plan.runs(config), *found]))


def test_a_study_with_code_of_its_own_is_made_by_its_rules(tmp_path: Any, monkeypatch: Any):
    monkeypatch.chdir(tmp_path)
    config = validate({**RAW, "studies": [{"name": "c", "kind": "mine", "runs": [{"seeds": [8]}]}]})
    assert {run.seed for run in plan.all_runs(config)} == {0, 1, 8}
    (tmp_path / "studies" / "group" / "mine").mkdir(parents=True)
    (tmp_path / "studies" / "group" / "mine" / "measure.py").touch()
    assert {run.seed for run in plan.all_runs(config)} == {0, 1}
    assert {run.seed for run in plan.study_runs(config, "c")} == {8}
