"""Spelled names: what differs from an entry can be read off the name, and the name from what differs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep import variants
from feddep.errors import ConfigError

VALUES = st.one_of(
    st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["all", "dec"])
)


@given(st.dictionaries(st.sampled_from(["depth", "rate", "kind"]), VALUES))
def test_what_is_spelled_is_read(changes):
    spelled = variants.spell("feddep", changes)
    assert variants.read(spelled) == ("feddep", changes)
    assert variants.base(spelled) == "feddep"


def test_names_are_readable():
    changes = {"prototypes": 3, "bernoulli_rate": 0.5, "clustering": "dec", "labelled": None}
    assert variants.spell("feddep", changes) == "feddep,prototypes=3,bernoulli_rate=0.5,clustering=dec,labelled=null"
    assert variants.spell("fedavg", {}) == "fedavg"


@pytest.mark.parametrize("spelled", ["feddep,prototypes", "feddep,", "feddep,depth=1,depth=2"])
def test_what_cannot_be_read_is_named(spelled):
    with pytest.raises(ConfigError, match="key=value"):
        variants.read(spelled)


def test_lists_take_each_of_their_values():
    found = list(variants.combinations({"a": [1, 2], "b": "x", "c": [True, None]}))
    assert found == [{"a": a, "b": "x", "c": c} for a in (1, 2) for c in (True, None)]
    assert list(variants.combinations({})) == [{}]
