"""Files of predictions: what is written is read, and nothing else is believed."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep import api
from feddep.judging import judge, predictions
from feddep.utils.errors import DataError
from small_board import SEEDS, Board, right

GOOD: dict[str, Any] = {
    "format": np.int16(1),
    "graph": np.str_("0123456789abcdef"),
    "seeds": np.array([0, 1], dtype=np.int16),
    "split": np.array(["0123456789abcdef"] * 2),
    "y_pred": np.zeros((2, 5), dtype=np.int16),
}
Change = Callable[[dict[str, Any]], object]
FORMS: dict[str, Change] = {
    "unknown member": lambda arrays: arrays.update(labels=np.zeros(5)),
    "missing member": lambda arrays: arrays.pop("split"),
    "object": lambda arrays: arrays.update(graph=np.array([{}], dtype=object)),
    "float classes": lambda arrays: arrays.update(y_pred=np.zeros((2, 5))),
    "wide classes": lambda arrays: arrays.update(y_pred=np.zeros((2, 5), dtype=np.int64)),
    "other byte order": lambda arrays: arrays.update(y_pred=np.zeros((2, 5), dtype=">i2")),
    "a column": lambda arrays: arrays.update(y_pred=np.zeros((2, 5, 1), dtype=np.int16)),
    "a seed too few": lambda arrays: arrays.update(y_pred=np.zeros((1, 5), dtype=np.int16)),
    "other scores": lambda arrays: arrays.update(y_score=np.zeros((2, 4), dtype=np.float32)),
    "format 2": lambda arrays: arrays.update(format=np.int16(2)),
    "bomb": lambda arrays: arrays.update(y_pred=np.zeros((2, 5 * 10**7), dtype=np.int16)),
}


def content(**changes: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **{**GOOD, **changes})
    return stream.getvalue()


def refused(file: Path) -> None:
    with pytest.raises(DataError) as error:
        predictions.read(file)
    assert str(error.value).splitlines()[0].startswith(str(file))


@pytest.mark.parametrize("change", FORMS.values(), ids=FORMS)
def test_what_has_another_form(change: Change, tmp_path: Path):
    arrays = dict(GOOD)
    change(arrays)
    np.savez_compressed(tmp_path / "mini.npz", allow_pickle=True, **arrays)
    assert (tmp_path / "mini.npz").stat().st_size < predictions.MOST_BYTES
    refused(tmp_path / "mini.npz")


def test_two_members_of_one_name(tmp_path: Path):
    file, member = tmp_path / "mini.npz", io.BytesIO()
    file.write_bytes(content())
    np.save(member, np.ones((2, 5), dtype=np.int16))
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("y_pred.npy", member.getvalue())
    refused(file)


def test_what_is_no_file_or_a_large_one(tmp_path: Path):
    refused(tmp_path)
    refused(tmp_path / "missing.npz")
    (tmp_path / "large.npz").write_bytes(bytes(predictions.MOST_BYTES + 1))
    refused(tmp_path / "large.npz")


@given(
    changes=st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 3),
)
def test_a_damaged_file_is_refused_or_the_same(
    changes: list[tuple[int, int]], cut: int, tmp_path_factory: pytest.TempPathFactory
):
    whole = bytearray(content())
    for place, byte in changes:
        whole[place % len(whole)] = byte
    file = tmp_path_factory.mktemp("damaged") / "mini.npz"
    file.write_bytes(bytes(whole[: len(whole) - cut]))
    try:
        found = predictions.read(file)
    except DataError:
        assert changes or cut
        return
    assert {*found} == {*GOOD}
    assert all(np.array_equal(found[name], GOOD[name]) for name in GOOD)


ELSEWHERE: dict[str, dict[str, Any]] = {
    "other seeds": {"seeds": np.array([0, 1, 3], dtype=np.int16)},
    "another order": {"seeds": np.array([2, 1, 0], dtype=np.int16)},
    "another graph": {"graph": np.str_("0123456789abcdef")},
    "another division": {"split": np.array(["0123456789abcdef"] * 3)},
    "more nodes": {"y_pred": np.zeros((3, 151), dtype=np.int16)},
    "a class too much": {"y_pred": np.full((3, 150), 3, dtype=np.int16)},
    "not predicted": {"y_pred": np.full((3, 150), -1, dtype=np.int16)},
    "needless scores": {"y_score": np.zeros((3, 150), dtype=np.float32)},
}


@pytest.mark.parametrize("changes", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_is_of_another_division(changes: dict[str, Any], board: Board, tmp_path: Path):
    file = board.predict(tmp_path, right(1))
    assert judge.score_seeds(file, board.runs, board.trainer)["test"].tolist() == [1.0] * len(SEEDS)
    np.savez_compressed(file, **{**np.load(file), **changes})
    with pytest.raises(DataError):
        judge.score_seeds(file, board.runs, board.trainer)


def test_scores_are_needed_and_finite_where_nodes_are_ranked(board: Board, tmp_path: Path):
    division, said = dict(np.load(board.divisions / "0.npz")), {0: np.zeros(150, dtype=int)}
    ranks = {0: np.linspace(0, 1, 150)}
    api.save_predictions(tmp_path / "mini.npz", board.divisions, said, ranks)
    found = predictions.read(tmp_path / "mini.npz")
    assert np.allclose(found["y_score"], ranks[0])
    found["y_score"][0, division["val"][0]] = np.nan
    for arrays in (found, {name: found[name] for name in GOOD}):
        with pytest.raises(DataError):
            predictions.check(Path("f"), arrays, 0, division, True)
    with pytest.raises(DataError):
        api.save_predictions(tmp_path / "mini.npz", board.divisions, said, {1: ranks[0]})


@pytest.mark.parametrize(
    "said",
    [
        {},
        {7: np.zeros(150, dtype=int)},
        {0: np.zeros(150)},
        {0: np.zeros((150, 1), dtype=int)},
        {0: np.zeros(149, dtype=int)},
        {0: np.full(150, 70_000)},
        {0: np.zeros(150, dtype=int), 1: np.zeros(149, dtype=int)},
    ],
)
def test_what_cannot_be_saved(said: dict[int, Any], board: Board, tmp_path: Path):
    with pytest.raises(DataError):
        api.save_predictions(tmp_path / "mini.npz", board.divisions, said)
    assert not any(tmp_path.iterdir())
