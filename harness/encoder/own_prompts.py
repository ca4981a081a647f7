"""The prompts of a model's own configuration, and which are put before its texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from harness.encoder.foreign import ForeignEncoder
from harness.errors import InputError
from harness.files.reading import read_json
from harness.sources import resolve_model
from harness.sources.remote.hub import hub_file

CONFIG = "config_sentence_transformers.json"


def own_prompts(name: str) -> dict[str, str]:
    """Key -> text as the makers of a model have written them, without empty ones; none where they wrote none.

    Args:
        name: a hub id, a folder or embedded:NAME.
    """
    resolved = resolve_model(name)
    file = Path(resolved) / CONFIG
    if not Path(resolved).is_dir():
        try:
            file = hub_file(resolved, CONFIG, kind="model")
        except InputError:  # most models have no such file
            return {}
    found = read_json(file).get("prompts") if file.is_file() else None
    return {str(key): str(text) for key, text in found.items() if text} if isinstance(found, dict) else {}


def chosen_prompts(
    name: str, model: Any, own: Mapping[str, str], asked: Mapping[str, str] | Literal["own"] | None
) -> tuple[dict[str, str] | None, list[str]]:
    """The prompts for the texts of tasks, and the keys of a model's own that are not used.

    A model that sentence-transformers runs puts its default prompt before every text; not any more, once others are
    asked for.

    Raises:
        InputError: the model has none of its own, or leaves prompts out of its pooling.
    """
    foreign = isinstance(model, ForeignEncoder)
    if asked is None:
        default = model.default_prompt if foreign else ""
        return None, [key for key, text in own.items() if text != default]
    if asked == "own" and not own:
        raise InputError(f'prompts "own": {name} has none in its {CONFIG}; give them, as {{"STS": "query: "}}')
    if foreign:
        model.without_prompt(name)
    return dict(own if asked == "own" else asked), []
