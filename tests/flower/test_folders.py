"""A participant's folder holds what is its own, and nothing else."""

import shutil

import pytest
import torch
from flower_tasks import cut, small_task

from feddep.flower import FederationError, folders
from feddep.flower.folders import Federation, client_folder, read_part, server_folder
from feddep.utils.errors import DataError
from feddep.utils.files import read_json, write_json


def test_the_server_gets_no_data(tmp_path):
    task = small_task()
    federation = cut(task, tmp_path)
    assert [path.name for path in server_folder(tmp_path).iterdir()] == ["federation.json"]
    server = federation.protocol()
    assert server.task.graph.num_nodes == 0
    assert server.task.setting == task.setting
    torch.testing.assert_close(
        server.new_model().state_dict(), task.new_model().state_dict(), rtol=0, atol=0
    )


def test_the_folder_of_another_client_or_federation_is_refused(tmp_path):
    federation = cut(small_task(), tmp_path)
    shutil.copy(
        client_folder(tmp_path, 0) / "graph.safetensors",
        client_folder(tmp_path, 1) / "graph.safetensors",
    )
    with pytest.raises(DataError):
        read_part(client_folder(tmp_path, 1), federation, 1)
    other = cut(small_task(), tmp_path / "other")
    with pytest.raises(DataError):
        read_part(client_folder(tmp_path, 2), other, 2)


@pytest.mark.parametrize("nodes", [{}, {"nodes": [1, 2, 3], "more": 1}])
def test_a_description_with_other_entries_is_refused(tmp_path, nodes):
    cut(small_task(), tmp_path)
    file = server_folder(tmp_path) / "federation.json"
    described = read_json(file)
    del described["nodes"]
    write_json(file, {**described, **nodes})
    with pytest.raises(DataError):
        Federation.load(server_folder(tmp_path))


@pytest.mark.parametrize("method", [{"name": "fedgnn"}, {"name": "feddep", "encoder": "federated"}])
def test_what_processes_cannot_train_is_refused(tmp_path, method):
    with pytest.raises(FederationError):
        folders.cut(small_task(), method, tmp_path)
    assert not list(tmp_path.iterdir())
