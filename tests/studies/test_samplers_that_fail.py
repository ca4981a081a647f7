"""A sampler of another package that fails in any way is one line; trials that ended are saved."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.samplers import RandomSampler

from harness import registry
from harness.errors import RunError
from tests.support.small_studies import CHEAP, search

SPACE = {"dimension": {"low": 2, "high": 8}}

pytestmark = pytest.mark.usefixtures("few_pairs", "no_report")


def _draw(answer: Callable[[int], Any]) -> Callable[..., Any]:
    """A sampler that draws so from the second trial on."""

    class Own(RandomSampler):
        def sample_independent(self, study: Any, trial: Any, *more: Any) -> Any:
            return 4 if trial.number == 0 else answer(trial.number)

        def infer_relative_search_space(self, *_: Any) -> Any:
            return {}

    return lambda study, seed: Own()


def _raise(error: BaseException) -> Any:
    raise error


class _FailsAfter(RandomSampler):
    def after_trial(self, *_: Any) -> None:
        raise KeyError("mine")


BROKEN: dict[str, Callable[..., Any]] = {
    "none": lambda study, seed: None,
    "another thing": lambda study, seed: "tpe",
    "made with an error": lambda study, seed: _raise(ValueError("why")),
    "made with an exit": lambda study, seed: sys.exit(0),
    "draws with an error": _draw(lambda _: _raise(RuntimeError("why"))),
    "exits": _draw(lambda _: sys.exit(0)),
    "ends the process": _draw(lambda _: os._exit(0)),
    "draws nothing": _draw(lambda _: None),
    "draws a text": _draw(lambda _: "many"),
    "draws beyond the space": _draw(lambda _: 10**9),
    "fails when a trial has ended": lambda study, seed: _FailsAfter(),
}


NEVER_DRAW = ("none", "another thing", "made with an error", "made with an exit")


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_one_error_and_what_has_ended_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(registry._added, registry.SAMPLERS.entry_points, {"own": BROKEN[name]})
    keys = {**CHEAP, "sampler": "own", "trials": 2, "space": SPACE}
    with pytest.raises(RunError, match='sampler "own"'):
        search(tmp_path, keys)
    records = list((tmp_path / "runs").glob("*/record.json"))
    assert len(records) == (0 if name in NEVER_DRAW else 1)
    monkeypatch.setitem(
        registry._added, registry.SAMPLERS.entry_points, {"own": _draw(lambda _: 6)}
    )
    states = [trial.state for trial in search(tmp_path, keys).stored.trials]
    assert states.count(optuna.trial.TrialState.COMPLETE) == 2
