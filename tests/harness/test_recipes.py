"""Presets by family of base model: which values a name means, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.recipes import (
    Presets,
    Recipe,
    RecipeFile,
    Recipes,
    iterate_presets,
    preset_names,
    recipe_of,
)
from harness.runs.experiment import Experiment
from harness.runs.rows import resolve_rows
from tests.support.configurations import ROBERTA, folder_of
from tests.support.errors import raises_input_error

PRESETS: Presets = {
    "paper": Recipes(
        {
            "bert-base": Recipe({"rate": 3e-5}, "Table 1"),
            "roberta-base": Recipe({"rate": 1e-5, "batch": 512}, "§ 4"),
        },
        shared={"batch": 64, "bucket": 1},
        aliases={"paper-roberta": "roberta-base"},
    ),
    "plain": {"rate": 1.0},
}


def recipe(name: str, family: str | None = None, base_model: str | None = None) -> Recipe:
    return recipe_of(PRESETS, name, family=family, base_model=base_model, where="row 1")


def refusal(name: str, family: str | None = None, base_model: str | None = None) -> str:
    with raises_input_error() as error:
        recipe(name, family, base_model)
    return str(error.value)


def test_a_familys_own_values_beat_the_shared_ones() -> None:
    assert recipe("paper", "bert-base") == Recipe(
        {"rate": 3e-5, "batch": 64, "bucket": 1}, "Table 1"
    )
    assert recipe("paper", "roberta-base") == Recipe(
        {"rate": 1e-5, "batch": 512, "bucket": 1}, "§ 4"
    )


def test_the_base_models_configuration_decides_unless_a_family_is_named(tmp_path: Path) -> None:
    base = folder_of(tmp_path, ROBERTA)
    assert recipe("paper", base_model=base).source == "§ 4"
    assert recipe("paper", "bert-base", base).source == "Table 1"


def test_an_alias_means_its_family_and_no_other(tmp_path: Path) -> None:
    base = folder_of(tmp_path, ROBERTA)
    assert (
        recipe("paper-roberta")
        == recipe("paper-roberta", base_model=base)
        == recipe("paper", "roberta-base")
    )
    told = refusal("paper-roberta", base_model="embedded:mini-bert")
    assert "not for mini, the family of embedded:mini-bert" in told
    assert 'preset = "paper"' in told
    assert 'family = "roberta-base"' in told


def test_a_preset_is_never_applied_to_another_family() -> None:
    told = refusal("paper", base_model="embedded:mini-bert")
    assert (
        "no values for mini, the family of embedded:mini-bert, but for bert-base, roberta-base"
        in told
    )
    assert 'preset = "default"' in told
    assert 'family = "roberta-base"' in refusal("paper", "roberta-768x2"), (
        "the nearest of the same type"
    )
    assert "depends on the base model" in refusal("paper")


def test_default_and_plain_presets_are_for_every_base_model() -> None:
    # No such model is there: its configuration is not read where nothing depends on it.
    assert recipe("default", base_model="no/where").values == {}
    assert recipe("plain", base_model="no/where").values == {"rate": 1.0}


def test_an_unknown_preset_names_the_known_ones() -> None:
    assert 'unknown preset "papper" (did you mean "paper"?)' in refusal("papper")
    assert "known: paper, paper-roberta, plain, default" in refusal("x")
    assert preset_names(PRESETS) == ["paper", "plain", "paper-roberta"]


def experiment(**values: Any) -> Experiment:
    methods = [{"method": "scd", "preset": "paper", **values.pop("row", {})}]
    return Experiment.parse({"name": "t", "methods": methods, **values}, "file")


def test_a_row_is_resolved_for_each_base_model(tmp_path: Path) -> None:
    base = folder_of(tmp_path, ROBERTA)
    rows = resolve_rows(experiment(base_models=["embedded:mini-bert", base]), "file")
    assert [(row.base_model, row.config.off_diagonal_weight) for row in rows] == [  # type: ignore[attr-defined]
        ("embedded:mini-bert", 0.068),
        (base, 0.028),
    ]


def test_a_family_can_be_named_for_a_row_or_for_all() -> None:
    for settings in ({"family": "bert-base"}, {"row": {"family": "bert-base"}, "family": "mini"}):
        (row,) = resolve_rows(experiment(**settings), "file")
        assert row.config.off_diagonal_weight == 0.013  # type: ignore[attr-defined]


def test_aliases_are_names_of_nothing_else() -> None:
    for name in registry.names(registry.METHODS):
        names = preset_names(registry.load(registry.METHODS, name).presets)
        assert len(names) == len(set(names)), f"{name}: a name twice among {names}"
        assert "default" not in names


def test_every_recipe_says_where_it_stands() -> None:
    for name in registry.names(registry.METHODS):
        method = registry.load(registry.METHODS, name)
        for preset, family in iterate_presets(method.presets):
            if family is not None:
                assert method.recipe(preset, family).source.strip(), f"{name}: {preset} on {family}"


FILE = """
[card]
title = "Mine"
published = ["mine.csv:Mine"]

[paper]
source = "Table 1"
aliases = { paper-roberta = "roberta-base" }
values = { batch = 64, steps = 10 }
bert-base = { rate = 3e-5 }
"roberta-base, roberta-large" = { rate = 1e-5, source = "script" }
modernbert-base = { like = "bert-base", dropout = 0.1, source = "ours" }

[code]
values = { like = "paper", batch = 32 }
bert-base = { like = "paper" }
mini = { rate = 1e-4, empty = ["steps"] }

[plain.values]
rate = 1.0
"""


def recipe_file(folder: Path, text: str) -> RecipeFile:
    (folder / "sources.toml").write_text('script = "run.sh of the authors"')
    (folder / "mine.toml").write_text(text)
    return RecipeFile(folder / "mine.toml")


def test_a_file_says_what_python_would_say(tmp_path: Path) -> None:
    assert recipe_file(tmp_path, FILE).card == {"title": "Mine", "published": ("mine.csv:Mine",)}
    roberta = Recipe({"rate": 1e-5}, "run.sh of the authors")
    bert = Recipe({"rate": 3e-5}, "Table 1")
    paper = {
        "bert-base": bert,
        "roberta-base": roberta,
        "roberta-large": roberta,
        "modernbert-base": Recipe({"rate": 3e-5, "dropout": 0.1}, "ours"),
    }
    assert dict(recipe_file(tmp_path, FILE)) == {
        "paper": Recipes(paper, {"batch": 64, "steps": 10}, {"paper-roberta": "roberta-base"}),
        "code": Recipes(
            {"bert-base": bert, "mini": Recipe({"rate": 1e-4, "steps": None})},
            {"batch": 32, "steps": 10},
        ),
        "plain": {"rate": 1.0},
    }


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("paper = 3", "paper"),
        ("[paper]\nbert-base = 3", "paper.bert-base"),
        ("[paper]\naliases = 3", "paper.aliases"),
        ("[paper]\nsource = 3", "paper.source"),
        ("[paper]\nbert-base = { empty = 3 }", "paper.bert-base.empty"),
        ('[paper]\nbert-base = { like = "mini" }', None),
        ("[paper", None),
    ],
)
def test_a_fault_in_a_file_is_one_line_with_file_and_key(
    tmp_path: Path, text: str, key: str | None
) -> None:
    with raises_input_error(file=tmp_path / "mine.toml", key=key):
        list(recipe_file(tmp_path, text))
