"""How trials ended, as stored: studies of earlier versions are read, and what is written is what they hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import optuna
import pytest

from studies.run.storage import default_url, load, open_storage
from studies.run.trial_result import TrialResult, TrialSeconds, has_result, result_of
from studies.run.trials import line_about

FROZEN = Path(__file__).parents[1] / "frozen" / "work"
KEYS = ["runs", "seeds", "seed_values", "status", "reason", "answered", "label", "seconds"]


def test_a_study_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """The lines of the journal are the reference."""
    shutil.copy(FROZEN / "studies.journal", tmp_path)
    written = [json.loads(line) for line in (tmp_path / "studies.journal").read_text().splitlines()]
    results = {line["trial_id"]: line["user_attr"]["about"] for line in written if "about" in line.get("user_attr", {})}
    url = default_url(tmp_path)
    (summary,) = optuna.study.get_all_study_summaries(open_storage(url))
    trials = load(open_storage(url), summary.study_name, url).get_trials(deepcopy=False)
    assert len(results) == len(trials) > 0
    for trial in trials:
        about = results[trial.number]
        assert list(about) == KEYS
        assert has_result(trial)
        assert result_of(trial).model_dump() == about
        assert line_about(trial) == f"{about['label']}: {100 * about['seed_values'][0][0]:.2f}"


def test_what_is_written_has_the_keys_that_studies_hold() -> None:
    study = optuna.create_study()
    trial = study.ask()
    TrialResult(runs=["a"], seeds=[1], seed_values=[[0.5]], status="finished", seconds=TrialSeconds(whole=2)).write(
        trial
    )
    study.tell(trial, 0.5)
    (ended,) = study.trials
    assert list(ended.user_attrs["about"]) == KEYS
    assert list(ended.user_attrs)[-1] == "about"  # after what people read
    assert result_of(ended).seconds == TrialSeconds(whole=2.0)


@pytest.mark.parametrize("reason", ["its worker ended 3 times without a result", ""])
def test_a_trial_without_a_result_failed_for_the_reason_of_its_slot(reason: str) -> None:
    study = optuna.create_study()
    study.enqueue_trial({}, user_attrs={"reason": reason} if reason else None)
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    (ended,) = study.trials
    assert not has_result(ended)
    result = result_of(ended)
    assert (result.status, result.reason, result.runs, result.seconds.training) == ("failed", reason, [], 0.0)
