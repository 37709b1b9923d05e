"""Files appear whole or not at all, and those that cannot be used are named."""

import os
import re
import stat

import numpy as np
import pytest
from safetensors.numpy import save_file

from feddep.utils.errors import DataError
from feddep.utils.files import (
    atomic_path,
    canonical_json,
    read_arrays,
    read_json,
    write_arrays,
    write_json,
    write_text,
)


def test_the_file_appears_at_the_end(tmp_path):
    target = tmp_path / "new" / "folder" / "file.txt"
    with atomic_path(target) as path:
        path.write_text("all of it")
        assert (path.parent, path.suffix) == (target.parent, target.suffix)
        assert not target.exists()
    assert target.read_text() == "all of it"
    assert os.listdir(target.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("before", [[], ["file.txt"]])
def test_an_error_leaves_what_was_there(tmp_path, error, before):
    for name in before:
        (tmp_path / name).write_text("old")

    def fail():
        with atomic_path(tmp_path / "file.txt") as path:
            path.write_text("half of the new")
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == before
    assert [(tmp_path / name).read_text() for name in before] == ["old"] * len(before)


def test_two_writers_of_one_file_leave_each_other_alone(tmp_path):
    with atomic_path(tmp_path / "file.json") as path:
        path.write_text("first")
        write_text(tmp_path / "file.json", "second")
    assert (tmp_path / "file.json").read_text() == "first"


def test_text_is_utf8_with_unix_line_ends_and_readable_as_the_umask_says(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file.txt", "ε\n")
    finally:
        os.umask(before)
    assert (tmp_path / "file.txt").read_bytes() == b"\xce\xb5\n"
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_not_a_number_is_refused(tmp_path, number):
    for refuse in (canonical_json, lambda value: write_json(tmp_path / "value.json", value)):
        with pytest.raises(ValueError, match="JSON"):
            refuse({"accuracy": [1.0, number]})
    assert os.listdir(tmp_path) == []


def test_json_does_not_depend_on_the_order_of_keys(tmp_path):
    first, second = {"b": 1, "a": {"d": 2.5, "c": None}}, {"a": {"c": None, "d": 2.5}, "b": 1}
    write_json(tmp_path / "first.json", first)
    write_json(tmp_path / "second.json", second)
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    assert canonical_json(first) == canonical_json(second) == '{"a":{"c":null,"d":2.5},"b":1}'


def test_arrays_round_trip(tmp_path):
    arrays = {
        "numbers": np.arange(5, dtype=np.int64),
        "table": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # not contiguous
        "empty": np.empty((0, 2), dtype=np.int32),
    }
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, arrays, "value")
    loaded, written = read_arrays(path), path.read_bytes()
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].dtype == array.dtype
    write_arrays(path, dict(reversed(arrays.items())), "value")
    assert path.read_bytes() == written


def test_the_key_is_checked_where_one_is_given(tmp_path):
    path, table = tmp_path / "a.safetensors", tmp_path / "a.json"
    write_arrays(path, {"numbers": np.arange(5)}, "right")
    write_json(table, {"a": [1.5, None]}, "right")
    assert read_arrays(path, "right").keys() == read_arrays(path).keys() == {"numbers"}
    assert read_json(table, "right") == {"a": [1.5, None]}
    assert read_json(table).keys() == {"a", "key", "sha256"}
    for read, file in ((read_arrays, path), (read_json, table)):
        with pytest.raises(DataError):
            read(file, "wrong")
    write_arrays(path, {"numbers": np.arange(5)})
    with pytest.raises(DataError):
        read_arrays(path, "right")


def test_a_file_without_a_digest_is_to_be_made_again(tmp_path):
    path, table = tmp_path / "a.safetensors", tmp_path / "a.json"
    save_file({"numbers": np.arange(5)}, path, {"key": "right"})
    with pytest.raises(DataError, match=re.escape(str(path))):
        read_arrays(path, "right")
    for content in ({"key": "right", "a": 1}, {}, [], None):
        write_json(table, content)
        with pytest.raises(DataError, match=re.escape(str(table))):
            read_json(table, "right")


@pytest.mark.parametrize(("write", "read"), [(write_json, read_json), (write_arrays, read_arrays)])
def test_a_flipped_bit_is_found(tmp_path, write, read):
    path = tmp_path / "file"
    write(path, {"numbers": np.arange(5) if read is read_arrays else [1.5, None]}, "key")
    content, whole = path.read_bytes(), read(path, "key")
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            np.testing.assert_equal(read(path, "key"), whole)
        except DataError:
            continue


@pytest.mark.parametrize("read", [read_json, read_arrays])
def test_missing_and_damaged_files_are_named(tmp_path, read):
    path = tmp_path / "file"
    write_arrays(path, {"numbers": np.arange(5)})
    whole = path.read_bytes()
    for content in (None, b"", b'{"a": 1', b"\xff\xfe{}", b"[" * 100_000, whole[:5], whole[:-3]):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DataError, match=re.escape(str(path))):
            read(path)
