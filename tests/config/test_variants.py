"""Spelled names: what differs from an entry can be read off the name, and the name from what
differs.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.config import entries, variants
from feddep.config.loading import validate
from feddep.utils.errors import ConfigError
from graphs import MINIMAL_CONFIG

CONFIG = validate(MINIMAL_CONFIG)
VALUES = st.one_of(
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["all", "dec"]),
)


@given(st.dictionaries(st.sampled_from(["depth", "rate", "kind"]), VALUES))
def test_what_is_spelled_is_read(changes):
    spelled = variants.format_name("feddep", changes)
    assert variants.read(spelled) == ("feddep", changes)
    assert variants.base(spelled) == "feddep"


def test_lists_take_each_of_their_values():
    found = list(variants.combinations({"a": [1, 2], "b": "x", "c": [True, None]}))
    assert found == [{"a": a, "b": "x", "c": c} for a in (1, 2) for c in (True, None)]
    assert list(variants.combinations({})) == [{}]


@pytest.mark.parametrize(
    "spelled",
    ["feddep,prototypes", "feddep,", "feddep,depth=1,depth=2", "feddep,depth=[1]", "feddep,depth="],
)
def test_what_cannot_be_read_is_refused(spelled: str):
    with pytest.raises(ConfigError):
        variants.read(spelled)


SPELLED = st.one_of(
    st.text(alphabet='feddepqicktny,=[]{}:"-.0123456789', max_size=40),
    st.builds(
        lambda name, key, value: f"{name},{key}={value}",
        st.sampled_from(["feddep", "quick", "tiny"]),
        st.sampled_from(["prototypes", "rounds", "labelled", "embedding", "synthetic"]),
        st.sampled_from(
            [
                "1",
                "1.0",
                "1e999",
                "NaN",
                "true",
                "null",
                "[1]",
                '{"tiny": 2}',
                "9" * 5000,
                '"2"',
                "",
            ]
        ),
    ),
)


@given(SPELLED)
def test_any_spelled_name_is_an_entry_or_refused(spelled: str):
    for section in ("datasets", "settings", "methods"):
        try:
            entry = entries.one(CONFIG, section, spelled)
        except ConfigError:
            continue
        assert set(entry.options) >= set(CONFIG[section].get(variants.base(spelled), {}))
