"""Numbers do not move unless a revision does: what keeps the content keys honest."""

import json

import pytest

from feddep.methods import registry
from golden import golden_results

pytestmark = pytest.mark.slow
GOLDEN = json.loads(golden_results.FILE.read_text())
CASES = golden_results.cases()


def test_every_method_and_step_has_a_case():
    assert set(GOLDEN["cases"]) == set(CASES), (
        "write the golden results anew: python tests/golden/golden_results.py"
    )
    covered = {method for method, _, _ in CASES.values()}
    assert covered == set(registry.built_in())
    steps = {
        step.name
        for name, case in registry.built_in().items()
        for step in case.steps(case.parameters())
    }
    assert steps <= {name for case in GOLDEN["cases"].values() for name in case["revisions"]}


@pytest.mark.parametrize("label", CASES)
def test_numbers_move_only_with_a_revision(label: str):
    found = golden_results.compute(*CASES[label])
    golden = golden_results.numbers(GOLDEN["cases"][label])
    assert found["revisions"] == golden["revisions"], (
        "write the golden results anew: python tests/golden/golden_results.py"
    )
    if golden_results.machine() == golden_results.made_at(GOLDEN, label):
        assert found == golden, (
            f"the numbers of {label} have moved: raise the revision of what you changed"
        )
    else:
        # Elsewhere sums are added in another order, and an answer or a rounded number may tip:
        # compare what hardly can.
        assert found["result"]["sent"] == golden["result"]["sent"]
        assert found["result"]["curve"]["loss"] == pytest.approx(
            golden["result"]["curve"]["loss"], rel=0.05
        )
