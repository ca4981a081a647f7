"""Notes for optuna-dashboard, where it is installed: what a study is about, and why a trial has no value."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.files.printable import markdown_text
from studies.definition.study import Study

if TYPE_CHECKING:
    import optuna


def note_study(stored: optuna.Study, study: Study, slots: int) -> None:
    """What is searched and how, and how the best trial is confirmed."""
    name = shlex.quote(study.name)
    lines = [
        f"# {markdown_text(study.title or study.name)}",
        *([markdown_text(study.description)] if study.description else []),
        f"{slots} trials of method `{study.method}`, each of {study.steps or 'as many as its config says'} updates at "
        f"most, on {markdown_text(study.base_model)}; sampler {study.sampler}, pruner {study.pruner}.",
        f"Values are {markdown_text(' and '.join(study.objective_names))}, as correlations or shares, not times 100; "
        f"seeds {', '.join(map(str, study.seeds))}.",
        "The best value was chosen among all trials, and is too good by that. Seeds that chose nothing say how much: "
        f"`harness study best {name} --held-out`.",
    ]
    _note(stored, "\n\n".join(lines))


def note_reason(trial: optuna.Trial, reason: str) -> None:
    """Why a trial has no value, or fewer seeds than others."""
    if reason:
        _note(trial, markdown_text(reason))


def _note(about: optuna.Study | optuna.Trial, text: str) -> None:
    """Write a note, unless there is one: a person may have written it."""
    if find_spec("optuna_dashboard") is None:
        return
    from optuna_dashboard import get_note, save_note

    if not get_note(about):
        save_note(about, text)
