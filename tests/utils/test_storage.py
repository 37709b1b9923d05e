"""Files appear whole or not at all, and damaged ones are named."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.utils.errors import DataError
from feddep.utils.storage import atomic_path, canonical_json, read_arrays, read_json, write_arrays, write_json, write_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_the_file_appears_at_the_end(tmp_path):
    target = tmp_path / "new" / "folder" / "file.txt"
    with atomic_path(target) as scratch:
        scratch.write_text("all of it")
        assert scratch.parent == target.parent
        assert scratch.suffix == target.suffix
        assert not target.exists()
    assert target.read_text() == "all of it"
    assert os.listdir(target.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_nothing_behind(tmp_path, error):
    def fail():
        with atomic_path(tmp_path / "file.txt") as scratch:
            scratch.write_text("half of")
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []


def test_an_error_leaves_the_old_file(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")

    def fail():
        with atomic_path(target) as scratch:
            scratch.write_text("half of the new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


KILLED = """
import os, signal, sys
from feddep.utils.storage import atomic_path

with atomic_path(sys.argv[1]) as scratch:
    scratch.write_text("half of")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("name", ["file.json", "file", "[a]*.tar.gz"])
def test_what_a_killed_process_left_is_removed(tmp_path, name):
    for other in (f".{name}.swp", f".other{name}.abcdefgh", f"{name}.12345678"):
        (tmp_path / other).touch()
    others = sorted(os.listdir(tmp_path))
    subprocess.run([sys.executable, "-c", KILLED, tmp_path / name], check=False)
    assert len(os.listdir(tmp_path)) == len(others) + 1
    write_text(tmp_path / name, "whole")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, name])


def test_two_writers_of_one_file_leave_each_other_alone(tmp_path):
    with atomic_path(tmp_path / "file.json") as scratch:
        scratch.write_text("first")
        write_text(tmp_path / "file.json", "second")
    assert (tmp_path / "file.json").read_text() == "first"


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o640


def test_text_is_utf8_with_unix_line_ends(tmp_path):
    write_text(tmp_path / "file.txt", "ε\n")
    assert (tmp_path / "file.txt").read_bytes() == b"\xce\xb5\n"


@given(value=JSON)
def test_json_round_trip(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(path, value)
    assert read_json(path) == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_a_number_is_refused(tmp_path, number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "value.json", {"accuracy": [1.0, number]})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(number)
    assert os.listdir(tmp_path) == []


def test_json_does_not_depend_on_the_order_of_keys(tmp_path):
    first, second = {"b": 1, "a": {"d": 2.5, "c": None}}, {"a": {"c": None, "d": 2.5}, "b": 1}
    write_json(tmp_path / "first.json", first)
    write_json(tmp_path / "second.json", second)
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    assert canonical_json(first) == canonical_json(second) == '{"a":{"c":null,"d":2.5},"b":1}'


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"\xff\xfe{}"])
def test_damaged_json(tmp_path, content):
    (tmp_path / "value.json").write_bytes(content)
    with pytest.raises(DataError, match=r"value\.json is not valid JSON"):
        read_json(tmp_path / "value.json")


def test_arrays_round_trip(tmp_path):
    arrays = {
        "numbers": np.arange(5, dtype=np.int64),
        "table": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # not contiguous
        "empty": np.empty((0, 2), dtype=np.int32),
    }
    write_arrays(tmp_path / "arrays.safetensors", arrays)
    loaded = read_arrays(tmp_path / "arrays.safetensors")
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].dtype == array.dtype


def test_same_arrays_same_bytes(tmp_path):
    arrays = {"b": np.arange(3), "a": np.ones(2, dtype=np.float32)}
    write_arrays(tmp_path / "first.safetensors", arrays, "value")
    write_arrays(tmp_path / "second.safetensors", dict(reversed(arrays.items())), "value")
    assert (tmp_path / "first.safetensors").read_bytes() == (tmp_path / "second.safetensors").read_bytes()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: data[:5], lambda data: b"", lambda data: b"x" * len(data)]
)
def test_damaged_arrays(tmp_path, damage):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, {"numbers": np.arange(5)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"arrays\.safetensors is damaged"):
        read_arrays(path)


@pytest.mark.parametrize("read", [read_json, read_arrays])
def test_missing_file(tmp_path, read):
    with pytest.raises(DataError, match="absent does not exist; run the stage that writes it"):
        read(tmp_path / "absent")
