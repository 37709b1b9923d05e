"""A small leaderboard that all tests here share."""

import pytest

from small_board import Board


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return Board(tmp_path_factory.mktemp("board"))
