"""Untrained poolings: what is refused before anything is run."""

from __future__ import annotations

from methods.pooling import PoolingMethod
from tests.support.errors import raises_input_error


def test_a_layer_that_the_model_has_not_is_told_before_the_run() -> None:
    there, beyond = (
        PoolingMethod(PoolingMethod.configure({"pooling": f"layer:{k}:cls"})) for k in (4, 10)
    )
    there.check(None)
    with raises_input_error(file="embedded:mini-bert", key="pooling"):
        beyond.check(None)
