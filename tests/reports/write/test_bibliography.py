"""Every shipped method has an entry, and a report's file holds those of its methods and tools."""

from __future__ import annotations

import re

from harness import registry
from reports.write.latex import bibliography

CONTROLS = {"random", "pretrained"}  # no paper's methods


def test_every_method_has_an_entry() -> None:
    loaded = {
        name: registry.load(registry.METHODS, name) for name in registry.names(registry.METHODS)
    }
    methods = {
        name for name, method in loaded.items() if method.__module__.startswith("methods.")
    } - CONTROLS
    assert "%" not in bibliography(methods)


def test_entries_are_those_of_methods_and_tools() -> None:
    text = bibliography(["simcse", "simcse_supervised", "unknown"])
    keys = re.findall(r"^@\w+\{(.*),$", text, re.MULTILINE)
    assert keys == [
        "gao-etal-2021-simcse",
        "reimers-gurevych-2019-sbert",
        "conneau-kiela-2018-senteval",
        "muennighoff-etal-2023-mteb",
        "wolf-etal-2020-transformers",
        "akiba-etal-2019-optuna",
    ]
    assert "% unknown: not installed here" in text
    assert "keywords" not in text
    assert text.count("{") == text.count("}")
