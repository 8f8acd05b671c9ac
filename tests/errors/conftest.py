"""`--update` writes the expected texts anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the messages of tests/errors/cases anew")
