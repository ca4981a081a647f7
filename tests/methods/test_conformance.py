"""Every installed method keeps the promises of the interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.method import DEFAULT_BASE_MODEL
from harness.testing import assert_method
from methods.pooling import PoolingMethod
from tests.support.bases import narrow_bert


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", registry.names(registry.METHODS))
def test_conformance(name: str, word_vectors: Path) -> None:
    # The gradient paradigm has no objective of its own: its loss need not fall where the vectors
    # are random.
    base_model = DEFAULT_BASE_MODEL if name == "gradient_paradigm" else narrow_bert()
    config = {"vectors": str(word_vectors)} if name in ("static", "infersent") else None
    assert_method(name, config=config, base_model=base_model)


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    # the base model has no pooler of its own, so cls_pooler is none of them
    *(
        ("pooling", values)
        for name, values in PoolingMethod.presets.items()
        if name != "cls_pooler"
    ),
    ("scd", {"terms": "self_contrast"}),
    ("scd", {"terms": "decorrelation", "projector": (32, 32, 32)}),
    ("barlow_twins", {"projector": (32, 32, 32), "view": "shuffle", "shuffle": 0.5}),
]


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("name", "config"), VARIANTS)
def test_conformance_of_other_configurations(name: str, config: dict[str, Any]) -> None:
    assert_method(name, config=config, base_model=narrow_bert())


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", ["pooling", "simcse"])
def test_conformance_where_every_text_is_read_twice(name: str) -> None:
    assert_method(name, config={"pooling": "echo"}, base_model=narrow_bert())
