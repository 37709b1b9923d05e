"""KEY=VALUE of a command line."""

from typing import Any

import pytest

from feddep.utils.errors import ConfigError
from feddep.utils.parameters import key_values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20", 20),
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("-0.5", -0.5),
        ("true", True),
        ("null", None),
        ("[5, 2]", [5, 2]),
        ("adam", "adam"),
        ("010", "010"),  # an octal number elsewhere
        ("yes", "yes"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_values(text: str, value: Any):
    found = key_values([f"key={text}"])
    assert found == {"key": value}
    assert type(found["key"]) is type(value)


@pytest.mark.parametrize("pair", ["rounds", "=3", "", "rounds=3"])
def test_what_is_no_pair(pair: str):
    with pytest.raises(ConfigError):
        key_values(["rounds=3", pair])
