"""How many numbers a client of a method sends in a round, beside losses and validation counts."""

from typing import Any

import pytest

from method_tasks import counted, run_on, task_of

CLASSES, WIDTH, LAYERS = 4, 16, 2
SENT: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("fedpub", {"compared": "embeddings"}, {"extra": WIDTH}),
    ("fediih", {"factors": 3}, {"extra": 3 * WIDTH}),
    ("fedtgp", {}, {"model": CLASSES * WIDTH + CLASSES}),
    ("fedstar", {}, {"model": 33 * WIDTH + LAYERS * (WIDTH + 1) * WIDTH}),
    ("fedstar_local", {}, {}),
    ("s2fgl", {}, {"extra": CLASSES * WIDTH + CLASSES}),
]
"""A method with parameters, and the numbers of those kinds of messages that are its own."""


@pytest.mark.parametrize(("name", "options", "expected"), SENT)
def test_a_client_sends_so_many_numbers_a_round(
    name: str, options: dict[str, Any], expected: dict[str, int]
):
    given = task_of(name, encoder="gcn", full_batch=True)
    sent = counted(run_on(given, name, **options).communication, "extra", *(expected or ["model"]))
    rounds = given.setting.rounds
    found = {kind: size for (client, way, kind), size in sent.items() if (client, way) == (0, "up")}
    assert found == {kind: (rounds, 4 * rounds * size) for kind, size in expected.items()}
