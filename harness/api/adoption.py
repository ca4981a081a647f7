"""The end of a comparison with an `incumbent`: the decision, and the better model in DIR/best."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import HarnessError
from harness.files.atomic import write_atomic
from harness.machine.environment import pick_device
from harness.machine.progress import describe_duration
from harness.method import FitContext, Method
from harness.results.model_card import write_card
from harness.results.record import Record
from harness.results.store import RunFolder
from harness.runs.execute import make_method, read_dev
from harness.runs.experiment import Experiment
from harness.runs.inputs import load_dev
from reports.decide.adoption import decide
from reports.decide.question import question_of
from reports.load import read_comparison

BEST = "best"  # folder of the better model
DECISION = "decision.json"


def conclude(workdir: Path, experiment: Experiment, records: list[Record]) -> str:
    """Decide whether to keep the incumbent, save a better model, and return the answer.

    WORKDIR/best has the model, or is removed; WORKDIR/decision.json has the numbers.

    Raises:
        InputError: nothing can be compared.
    """
    results = read_comparison(workdir, experiment.name)
    question = question_of(results, "")
    scores = score_on_dev(workdir, experiment, records)
    adoption = decide(results, question, experiment.incumbent, scores)
    best = workdir / BEST
    shutil.rmtree(best, ignore_errors=True)
    text = adoption.text
    if adoption.decision == "adopt":
        record = next(one for one in records if one.id == adoption.run)
        text = f"{text}, {describe_training(record)}; {_save(workdir, record, best)}."
        finished = (one for one in records if one.status == "finished")
        old = next(one for one in finished if one.row == experiment.incumbent)
        text += describe_dimensions(open_run(workdir, record), open_run(workdir, old))
    text += describe_budget(experiment, records)
    kept = {
        "decision": adoption.decision,
        "text": text,
        "row": adoption.row,
        "run": adoption.run,
    }
    decision = json.dumps({**kept, **adoption.data}, indent=1)
    write_atomic(workdir / DECISION, decision + "\n")
    return text


def _save(workdir: Path, record: Record, folder: Path) -> str:
    """Save the model of a run, and return where it is: vectors of a file or an endpoint have no
    weights here.
    """
    if not record.spec.trained and not open_run(workdir, record).has_weights:
        return f"nothing is saved: the weights of {record.spec.base_model} are not here"
    save_run(workdir, record, folder)
    return f"saved in {folder}"


def describe_dimensions(new: Method, old: Method) -> str:
    """Return a sentence where vectors of the better model have another length, which an index of the
    old ones does not take; empty where they have the same, or one of the models is elsewhere.
    """
    lengths = []
    for method in (new, old):
        if not method.has_weights or method.transductive:
            return ""
        lengths.append(np.shape(method.encode("A sentence."))[-1])
    if lengths[0] == lengths[1]:
        return ""
    return f" Its vectors have {lengths[0]:,} dimensions, not {lengths[1]:,}."


def describe_budget(experiment: Experiment, records: list[Record]) -> str:
    """Return a line on what trained rows were given; empty where none was trained by steps, or each
    had another number of them.
    """
    trained = [record for record in records if record.training.get("planned_steps")]
    steps = {record.training["planned_steps"] for record in trained}
    if len(steps) != 1:
        return ""
    seconds = sum(record.seconds for record in records)
    line = f"\nEach trained row had {steps.pop():,} training steps"
    line += f"; all {len(records)} runs took {describe_duration(seconds)}"
    sentences = experiment.budget.sentences
    longest = max((record.corpus or {}).get("count") or 0 for record in trained)
    if sentences is None or longest <= sentences:  # all of the text was read
        return f"{line}."
    return f"{line}. For more: --set budget.sentences={10 * sentences}"


def describe_training(record: Record) -> str:
    """Return steps, passes over the text and time of a run."""
    steps = record.training.get("steps")
    seconds = record.cost.get("train_seconds", 0.0)
    if not steps:
        return f"fitted without training steps in {describe_duration(seconds)}"
    length = f"{steps:,} training steps"
    seen = record.cost.get("corpus_sentences_seen", 0.0)
    count = (record.corpus or {}).get("count")
    if count and seen:
        passes = seen / count
        length += f" ({passes:.1f} passes over {count:,} texts)"
    return f"{length}, {describe_duration(seconds)}"


def save_run(workdir: Path, record: Record, folder: Path) -> None:
    """Save the model of a run with its card."""
    if record.spec.trained:
        shutil.copytree(RunFolder(workdir, record.id).model, folder)
    else:
        open_run(workdir, record).save(folder)
    write_card(folder, record)


def score_on_dev(workdir: Path, experiment: Experiment, records: list[Record]) -> dict[str, float]:
    """Return run id -> score on the dev set, of the finished runs: all are scored, also those whose
    training selects nothing.
    """
    selection = experiment.selection()
    if selection is None:
        return {}
    dev = None
    for record in records:
        dev = read_dev(record.spec)
        if dev is not None:
            break
    dev = dev or load_dev(selection)
    device = pick_device(experiment.device)
    scores: dict[str, float] = {}
    for record in records:
        if record.status != "finished" or record.id in scores:
            continue
        try:
            method = open_run(workdir, record)
            encode = partial(method.encode, device=device)
            scores[record.id] = dev.score(encode)
        except HarnessError:  # its weights were not kept, or a file has no vectors of these texts
            continue
    return scores


def open_run(workdir: Path, record: Record) -> Any:
    """Return the fitted method of a run.

    Raises:
        HarnessError: its weights are not there.
    """
    method = make_method(record.spec)
    if not record.spec.trained:
        return method.fit(None, FitContext(seed=record.spec.random_seed))
    return type(method).load(RunFolder(workdir, record.id).model)
