"""Recipes for base models that came after the papers, and the words that several methods' recipes have for sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.recipes import Recipe

SEARCHED = "searched: the best of 12 trials by the embedded dev set (docs/mini-recipes.md)"
EARLIER = "searched on a smaller embedded dev set (three learning rates, 33 training steps)"
UNTUNED = "ours: simcse's preset mini, at 3e-5; not searched for this method"
REHEARSAL = "for rehearsals: the searched values of this method's preset mini; not searched for this preset"


def later_models(bert_base: Mapping[str, Any], dropout: Mapping[str, Any] | None = None) -> dict[str, Recipe]:
    """Family -> a recipe of ours, from the values on BERT-base.

    Args:
        dropout: the rates to state for ModernBERT, whose checkpoints have none; None: the method needs none.
    """
    ours = "ours: the values of BERT-base; untested at full size"
    stated = ", the dropout rates stated as ModernBERT's checkpoints have none" if dropout else ""
    modern = Recipe({**bert_base, **(dropout or {})}, f"ours: the values of BERT-base{stated}; untested at full size")
    return {
        "bert-base-multilingual": Recipe(bert_base, ours),
        "xlm-roberta-base": Recipe(bert_base, ours),
        "modernbert-base": modern,
    }


def alike(values: Mapping[str, Any], source: str, *families: str) -> dict[str, Recipe]:
    """Family -> the same recipe, for an author who trains all of them alike."""
    return dict.fromkeys(families, Recipe(values, source))
