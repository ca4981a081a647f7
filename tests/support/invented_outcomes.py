"""Invented runs of classification tasks with the outcome of every example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.results.facts import KEY
from harness.results.outcomes import outcomes_frame
from harness.results.record import Record
from harness.results.store import RunFolder, join_examples
from harness.results.text_ids import text_ids
from harness.tasks.senteval.transfer import TRANSFER
from tests.support import synthetic

EXAMPLES = 300


def add_transfer(
    made: synthetic.Invented,
    label: str,
    seed: int,
    right: float,
    *,
    tasks: Sequence[str] = TRANSFER,
    outcomes: bool = True,
    facts: Mapping[str, tuple[float, float]] | None = None,
    supervision: str = "unsupervised",
) -> Record:
    """Add a run that is right on about that share of the examples of every task; what all runs find
    hard is the same.

    `facts`: chance and majority of tasks. Every third text is there twice.
    """
    import pandas as pd

    record = made.add(label, seed, tasks=(), curves=False, geometry=False, supervision=supervision)
    scores = []
    frames = []
    for place, task in enumerate(tasks):
        hard = np.random.default_rng(place).uniform(size=EXAMPLES)
        own = np.random.default_rng([seed, place, len(label), int(1000 * right)])
        difficulty = 0.7 * hard + 0.3 * own.uniform(size=EXAMPLES)
        correct = (difficulty < right).astype(float)
        accuracy = correct.mean()
        scores.append(
            synthetic.score(task, "transfer", "senteval", "accuracy", accuracy, n=EXAMPLES)
        )
        texts = [f"{task} {number - (number % 3 == 2)}" for number in range(EXAMPLES)]
        frame = outcomes_frame(
            task=task,
            source="senteval",
            split="test",
            metric="accuracy",
            outcome=correct,
            unit=text_ids(texts),
        )
        frames.append(frame)
    record = made.extend(record, scores)
    folder = RunFolder(made.workdir, record.id)
    if outcomes:
        examples = join_examples(None, pd.concat(frames, ignore_index=True))
        assert examples is not None
        folder.write_examples(examples)
    if facts:
        figures = {}
        for task, (chance, majority) in facts.items():
            about = {"unit": "", "metric": "accuracy", "chance": chance, "majority": majority}
            figures[task] = {KEY: about}
        folder.write_details({"figures": figures})
    return record
