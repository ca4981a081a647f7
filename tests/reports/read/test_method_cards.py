"""The cards of methods, as reports read them."""

import subprocess
import sys

import pytest

from harness import registry
from reports.read.method_cards import read_card

SHIPPED = [
    name for name in registry.names(registry.METHODS) if registry.is_shipped(registry.METHODS, name)
]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_card_that_is_read_is_that_of_the_method(name: str) -> None:
    assert read_card(name) == registry.load(registry.METHODS, name).card


def test_a_method_that_is_not_installed_has_no_card() -> None:
    assert read_card("no_such_method") is None


def test_a_card_of_this_package_is_read_without_torch() -> None:
    read = "from reports.read.method_cards import read_card; print(read_card('simcse').title)"
    ask = f"import sys; {read}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "SimCSE (unsupervised)\nFalse\n"
