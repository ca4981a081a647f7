"""Records as tidy pandas frames: one row an observation, words as categories in the order of the
comparison's table, numbers as int64 or float64.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.results.record import Record, Score
from harness.results.store import RunFolder

if TYPE_CHECKING:
    import pandas as pd

RUN = ("row", "method", "base_model", "seed", "run")
"""Columns about a run, which begin all frames of runs: label of the row, in the order of the table;
the method; what the row starts from; the seed, int64; id of the run, the name of its folder.
"""
SCORES = (*RUN, "supervision", *Score.model_fields)
"""One row a score: after `RUN` "supervision", as untrained or supervised, and the fields of
`Score`. "value" is not times 100; "protocol" is the id of all that defines the number, "comparable"
the same without what belongs to the
method: unlike ids are unlike measurements.
"""
PAIRS = (*RUN, "task", "source", "split", "subset", "pair", "gold", "score", "text1", "text2")
"""One row a scored pair: after `RUN` its task, source and split, the part of the task, as MSRpar of
STS12, its number there, the score that people gave, the cosine of the two vectors, and ids of the
sentences (`harness.results.text_ids`).
"""
CURVES = (*RUN, "step", "kind", "quantity", "value")
"""One row a number of a training log: after `RUN` training steps made; train, dev, or early (as
dev, for the collapse guard alone); loss, spearman, learning_rate ...; and the number.
"""
COSTS = (*RUN, "status", "steps")
"""One row a run: after `RUN` how it ended, the training steps made (missing where nothing was
trained), and one column
a cost of the records: train_seconds, encode_seconds, peak_memory_bytes, parameters ... (float64).
"""
_PLAIN = {
    "seed",
    "value",
    "n",
    "step",
    "pair",
    "gold",
    "score",
    "text1",
    "text2",
    "outcome",
    "target",
}


def scores(records: Iterable[Record]) -> pd.DataFrame:
    """One row a score of a run: the columns of `SCORES`.

    >>> found = harness.load(work)
    >>> scores(found.records).columns.tolist()[:4]
    ['row', 'method', 'base_model', 'seed']
    """
    return _tidy(
        [
            {**_run(record), "supervision": record.supervision, **score.model_dump()}
            for record in records
            for score in record.scores
        ],
        SCORES,
    )


def scores_of_one(scores: Sequence[Score], model: str) -> pd.DataFrame:
    """One row a score of one model: those columns of `SCORES` that are not about runs, after
    "model".

    >>> found = harness.load(work)
    >>> scores_of_one(found.records[0].scores, "mine")["model"].unique().tolist()
    ['mine']
    """
    by_row = (*RUN, "supervision")
    columns = ["model", *(name for name in SCORES if name not in by_row)]
    lines = [{"model": model, **score.model_dump()} for score in scores]
    return _tidy(lines, columns)


def costs(records: Iterable[Record]) -> pd.DataFrame:
    """One row a run: the columns of `COSTS`.

    >>> costs(harness.load(work).records)["status"].tolist()
    ['finished', 'finished']
    """
    lines = []
    for r in records:
        if not r.unavailable:
            lines.append(
                {
                    **_run(r),
                    "status": r.status,
                    "steps": r.training.get("steps"),
                    **r.cost,
                }
            )
    columns = dict.fromkeys(COSTS)
    for line in lines:
        columns |= dict.fromkeys(line)
    numbers = [name for name in columns if name not in (*RUN, "status")]
    frame = _tidy(lines, list(columns), plain={*_PLAIN, *numbers})
    return frame.astype(dict.fromkeys(numbers, "float64"))


def curves(workdir: Path, records: Iterable[Record]) -> pd.DataFrame:
    """One row a number of the training log of a run: the columns of `CURVES`.

        >>> len(curves(work, harness.load(work).records))  # nothing was trained
        0

    Raises:
        InputError: a damaged log.
    """
    lines = []
    for record in records:
        for line in RunFolder(workdir, record.id).curves():
            for name, value in line.items():
                if name not in ("step", "kind") and isinstance(value, int | float):
                    lines.append(
                        {
                            **_run(record),
                            "step": line["step"],
                            "kind": line["kind"],
                            "quantity": name,
                            "value": float(value),
                        }
                    )
    return _tidy(lines, CURVES).astype({"step": "int64", "value": "float64"})


def pairs(workdir: Path, records: Iterable[Record]) -> pd.DataFrame:
    """One row a scored pair of sentences of a run: the columns of `PAIRS`; text ids are missing in
    old runs.

    >>> pairs(work, harness.load(work).records).groupby("row", observed=True).size().to_dict()
    {'cls': 1035, 'mean': 1035}
    """
    kept = []
    for r in records:
        folder = RunFolder(workdir, r.id)
        if r.status == "finished" and folder.examples_file.exists():
            kept.append(r)
    files = [RunFolder(workdir, record.id).pairs() for record in kept]
    return _of_files(kept, files, list(PAIRS))


def outcomes(workdir: Path, records: Iterable[Record]) -> pd.DataFrame:
    """One row an example of another score than a correlation of pairs: `RUN` and
    `harness.results.outcomes.COLUMNS`.

    >>> len(outcomes(work, harness.load(work).records))  # correlations alone
    0
    """
    from harness.results.outcomes import COLUMNS

    kept = [r for r in records if r.status == "finished"]
    return _of_files(
        kept,
        [RunFolder(workdir, record.id).outcomes() for record in kept],
        [*RUN, *COLUMNS],
    )


def _of_files(
    records: Sequence[Record],
    files: Sequence[pd.DataFrame],
    columns: list[str],
) -> pd.DataFrame:
    """The tables that runs keep as one, without the tasks of other comparisons that score the same
    runs.
    """
    import pandas as pd

    parts = []
    for record, file in zip(records, files, strict=True):
        tasks = {f"{score.source}:{score.task}" for score in record.scores}
        task_of_row = file["source"] + ":" + file["task"]
        own = file[task_of_row.isin(tasks)]
        parts.append(own.assign(**_run(record)))
    joined = pd.concat(
        [part for part in parts if len(part)] or [pd.DataFrame(columns=columns)], ignore_index=True
    )
    return _categories(joined.reindex(columns=columns), _PLAIN)


def _run(record: Record) -> dict[str, Any]:
    values = {}
    for name in RUN:
        if name != "run":
            values[name] = getattr(record, name)
    return {**values, "run": record.id}


def _tidy(
    lines: list[dict[str, Any]],
    columns: Sequence[str],
    plain: set[str] = _PLAIN,
) -> pd.DataFrame:
    import pandas as pd

    return _categories(pd.DataFrame(lines, columns=list(columns)), plain)


def _categories(frame: pd.DataFrame, plain: set[str]) -> pd.DataFrame:
    """Words as categories in the order in which they are met."""
    import pandas as pd

    for name in frame.columns:
        if name not in plain:
            frame[name] = pd.Categorical(
                frame[name], categories=frame[name].drop_duplicates().dropna()
            )
    return frame
