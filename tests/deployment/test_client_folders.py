"""A participant's folder holds what is its own, and nothing else."""

import shutil

import numpy as np
import pytest
from flower_tasks import cut, federation_of, small_task

from feddep.deployment import DeploymentError, client_folders
from feddep.deployment.client_folders import Federation, client_folder, read_part, server_folder
from feddep.utils.errors import DataError


@pytest.fixture
def task():
    return small_task()


def test_each_client_gets_its_subgraph(task, tmp_path):
    cut(task, tmp_path)
    federation = Federation.load(server_folder(tmp_path))
    assert federation == federation_of(task)
    for number, (graph, split) in enumerate(task.subgraphs()):
        own_graph, own_split = read_part(client_folder(tmp_path, number), federation, number)
        assert own_graph.fingerprint == graph.fingerprint
        assert all(np.array_equal(getattr(own_split, part), getattr(split, part)) for part in ("train", "val", "test"))


def test_the_server_gets_no_data(task, tmp_path):
    cut(task, tmp_path)
    assert [path.name for path in server_folder(tmp_path).iterdir()] == ["federation.json"]
    server = Federation.load(server_folder(tmp_path)).server_task()
    assert server.graph.num_nodes == 0
    assert server.setting == task.setting
    for name, tensor in task.new_model().state_dict().items():
        assert tensor.equal(server.new_model().state_dict()[name])


def test_the_folder_of_another_client_is_refused(task, tmp_path):
    cut(task, tmp_path)
    shutil.copy(client_folder(tmp_path, 0) / "graph.safetensors", client_folder(tmp_path, 1) / "graph.safetensors")
    with pytest.raises(DataError, match="stale"):
        read_part(client_folder(tmp_path, 1), federation_of(task), 1)


def test_other_methods_are_refused(task, tmp_path):
    with pytest.raises(
        DeploymentError, match="the method fedgnn cannot be trained by processes; allowed: fedavg, feddep, fedsage_plus"
    ):
        client_folders.cut(task, federation_of(task, "fedgnn"), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_encoder_that_all_train_together_is_refused(task, tmp_path):
    federation = federation_of(task, "feddep")
    federation.specification["method"]["encoder"] = "common"
    with pytest.raises(DeploymentError, match="encoder is common; where processes train feddep, it must be local"):
        client_folders.cut(task, federation, tmp_path)
