"""Scores that others made: a table in a file or a pandas frame, or the results of another tool.

Every source becomes one frame with the columns `COLUMNS` and `PROVENANCE`: one line is the score of
one run of a row on a task, or on a single example of a task. What an entry must fulfil is checked
here, once, for all who read scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from harness.files.tables import clean, is_table, read_table, to_numbers
from reports.read.score_logs import Line, holds_scores, read_log, reader_of

if TYPE_CHECKING:
    import pandas as pd

Source: TypeAlias = "str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame]"

COLUMNS = {
    "row": "needed: what is compared, such as a model",
    "seed": "which run of the row; without it every row has one run",
    "task": "without it all scores are of one task",
    "example": "an id, the same for all rows; without it a score is that of the whole task",
    "score": "needed: a number; of an example 1 for right and 0 for wrong, or any other score of it",
    "target": "the gold value of the example, such as of a pair of sentences: the task's score is then a correlation",
    "metric": "of score and target: spearman (without it), pearson, f1 or ap",
    "scale": "of the task: 1 or 100, the best score; none for scores without bounds, such as perplexity",
    "lower_is_better": "of the task: true for errors and perplexity (without it: false)",
}
PROVENANCE = ("split", "revision", "version", "metrics", "place")
"""Columns of the frame that a table does not have: of results of mteb their split, revision of the
data, version of mteb and metrics that equal the main score; of every line its file and line."""
METRICS = ("", "spearman", "pearson", "f1", "ap")
SCALES = {"1": 1.0, "100": 100.0, "none": float("inf")}
_NAMES_OF_ROW = ("model", "system", "method", "name", "run", "encoder")
_FACTOR = 20  # between scores of 0 to 1 and of 0 to 100, whatever the task
_EXPORT = {"record", "status", "aggregation", "value"}  # columns of all-scores.csv of a report


def read_scores(source: Source) -> pd.DataFrame:
    """Read scores as one frame with the columns `COLUMNS` and `PROVENANCE`.

    Columns of text that are not known are filled with "". Scores are divided by the scale of their
    task, so that 1 is the best score, and lower is never better; scores without bounds are divided
    by 100. `attrs["notes"]` has lines about what was found, such as runs that look like copies.

    Args:
        source: a frame or a file (`.csv`, `.tsv`, `.jsonl`, `.parquet`) with these columns, or
            all-scores.csv of a report; a folder of such files or of result files of mteb; the
            sample logs of lm-evaluation-harness (`samples_*.jsonl`) or the logs of Inspect
            (`*.eval`, `*.json`), one file or a folder. Several of them are read as one.

    Raises:
        InputError: nothing that can be read, a column is missing, a line has no number, scores of a
            task on two scales or of two splits, revisions or metrics; with file, line and column.
    """
    import pandas as pd

    sources: list[Any] = list(source) if isinstance(source, list | tuple) else [source]
    notes: list[str] = []
    parts = [_read_source(one, notes) for one in sources]
    frame = pd.concat(parts, ignore_index=True)
    _check_duplicates(frame)
    for task in frame["task"].unique():
        _check_task(task, frame[frame["task"] == task], notes)
    _apply_scale(frame, notes)
    notes += _find_copies(frame)
    notes += _find_names_alike(frame)
    frame.attrs["notes"] = notes
    return frame


def holds_results(folder: Path) -> bool:
    """True if a folder has files of scores, by their names or columns."""
    for file in sorted(folder.rglob("*")):
        if reader_of(file) is not None or (is_table(file) and _is_score_table(file)):
            return True
    return False


def _read_source(source: str | Path | pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _check_table(read_table(source), "frame")
    path = Path(source)
    if not path.is_dir() and is_table(path) and reader_of(path) is None:
        return _check_table(read_table(path), str(path))
    if not path.is_dir():
        lines = list(read_log(path)) if reader_of(path) is not None else []
        if not lines:
            raise _nothing_found(path)
        return _check_logs(lines, path)
    return _read_folder(path, notes)


def _read_folder(folder: Path, notes: list[str]) -> pd.DataFrame:
    """Read all tables and logs below a folder; other files in it are ignored."""
    import pandas as pd

    parts = []
    lines: list[Line] = []
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        if reader_of(file) is not None:
            if holds_scores(file):
                lines += read_log(file)
        elif is_table(file):
            if _is_score_table(file):
                parts.append(_check_table(read_table(file), str(file)))
            else:
                notes.append(f"{file.name} is not read: it has no columns row and score")
    if lines:
        parts.append(_check_logs(lines, folder))
    if not parts:
        raise _nothing_found(folder)
    return pd.concat(parts, ignore_index=True)


def _nothing_found(path: Path) -> InputError:
    return InputError(
        f"no scores found; expected a CSV or Parquet file with the columns {', '.join(COLUMNS)}, "
        "a folder of mteb's results, sample logs of lm-evaluation-harness (samples_*.jsonl) or "
        "logs of Inspect (*.eval)",
        file=path,
    )


def _is_score_table(file: Path) -> bool:
    try:
        names = _lower_names(list(read_table(file).columns))
    except InputError:
        return False
    return {"row", "score"} <= set(names) or set(names) >= _EXPORT


def _lower_names(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _check_table(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a table of text as a frame of scores, with numbers in `score` and `target`.

    Raises:
        InputError: with file, line and column.
    """
    import pandas as pd

    table = table.set_axis(_lower_names(list(table.columns)), axis=1)
    if set(table.columns) >= _EXPORT:
        table = _read_export(table)
    _check_columns(list(table.columns), where)

    frame = pd.DataFrame(index=table.index)
    for name in COLUMNS:
        frame[name] = table[name] if name in table.columns else ""
    frame["score"] = to_numbers(frame, "score", where)
    given = frame["target"] != ""
    targets = pd.Series(float("nan"), index=frame.index)
    targets[given] = to_numbers(frame[given], "target", where)
    frame["target"] = targets
    frame["seed"] = [_clean_seed(seed) for seed in frame["seed"]]
    for name in PROVENANCE:
        frame[name] = ""
    frame["place"] = [f"{where}, line {line}" for line in frame.index]

    for line in frame.index[frame["row"] == ""]:
        raise InputError("expected a name", file=f"{where}, line {line}", key='column "row"')
    _check_words(frame, "metric", METRICS, where)
    _check_words(frame, "scale", ("", *SCALES), where)
    _check_words(frame, "lower_is_better", ("", "true", "false"), where)
    return frame.reset_index(drop=True)


def _check_columns(names: list[str], where: str) -> None:
    for needed in ("row", "score"):
        if needed in names:
            continue
        alike = [name for name in names if name in _NAMES_OF_ROW]
        if needed == "row" and alike:
            message = f'no column "row", but "{alike[0]}"'
            raise InputError(message, file=where, remedy=f'rename "{alike[0]}" to "row"')
        unknown = [name for name in names if name not in COLUMNS]
        guess = nearest(unknown[0], [needed]) if unknown else ""
        if guess:
            raise InputError(f'unknown column "{unknown[0]}"{guess}', file=where)
        remedy = f"expected {', '.join(COLUMNS)} (row and score are needed)"
        if needed == "score" and len(unknown) > 1:
            remedy = (
                "a table with a column a task becomes long by pandas.melt(frame, id_vars=['row', "
                "'seed'], var_name='task', value_name='score')"
            )
        raise InputError(f'no column "{needed}"', file=where, remedy=remedy)
    for name in names:
        if name not in COLUMNS:
            known = ", ".join(COLUMNS)
            guess = nearest(name, list(COLUMNS))
            raise InputError(f'unknown column "{name}"{guess}; known: {known}', file=where)


def _check_words(frame: pd.DataFrame, column: str, known: Sequence[str], where: str) -> None:
    frame[column] = frame[column].str.lower()
    for line, word in frame[column].items():
        if word not in known:
            message = f"expected {', '.join(filter(None, known))}, not {word!r}"
            raise InputError(message, file=f"{where}, line {line}", key=f'column "{column}"')


def _clean_seed(seed: str) -> str:
    """Return a seed as text; "1" and "1.0", as spreadsheets and frames have it, are the same."""
    whole = seed.removesuffix(".0")
    return whole if whole.lstrip("-").isdigit() else seed


def _read_export(table: pd.DataFrame) -> pd.DataFrame:
    """Return all-scores.csv of a report as a table of scores: of each task its first metric."""
    import pandas as pd

    table = table[table["status"] == "finished"]
    first: dict[str, tuple[str, str]] = {}
    for task, metric, aggregation in zip(
        table["task"], table["metric"], table["aggregation"], strict=True
    ):
        first.setdefault(task, (metric, aggregation))
    main = [
        first[task] == (metric, aggregation)
        for task, metric, aggregation in zip(
            table["task"], table["metric"], table["aggregation"], strict=True
        )
    ]
    table = table[main]
    row = table["row"]
    if table["base_model"].nunique() > 1:
        row = row + " · " + table["base_model"]
    columns = {"row": row, "seed": table["seed"], "task": table["task"], "score": table["value"]}
    return pd.DataFrame({**columns, "scale": "1"}, index=table.index)


def _check_logs(lines: list[Line], path: Path) -> pd.DataFrame:
    """Return lines of other tools' results as a frame of scores."""
    import pandas as pd

    # Predictions replace the score of the whole task that a result file has.
    predicted = {(line["row"], line["task"]) for line in lines if "example" in line}
    kept = []
    for line in lines:
        if "example" in line or (line["row"], line["task"]) not in predicted:
            kept.append(line)

    frame = pd.DataFrame(kept)
    for name in (*COLUMNS, *PROVENANCE):
        if name not in frame.columns:
            frame[name] = float("nan") if name == "target" else ""
    for name in ("row", "seed", "task", "example", "metric", "scale", "lower_is_better"):
        frame[name] = [clean(value) for value in frame[name].fillna("")]
    for name in PROVENANCE:
        frame[name] = frame[name].fillna("")
    frame["place"] = [place or str(path) for place in frame["place"]]
    return frame[[*COLUMNS, *PROVENANCE]]


def _check_duplicates(frame: pd.DataFrame) -> None:
    """Check that a run has one score of a task or example.

    Raises:
        InputError: it has two, with both places.
    """
    keys = ["row", "seed", "task", "example"]
    repeated = frame.duplicated(keys)
    if not repeated.any():
        return
    second = frame[repeated].iloc[0]
    same = (frame[keys] == second[keys]).all(axis=1)
    first = frame[same].iloc[0]
    what = ", ".join(f"{name} {second[name]}" for name in keys if second[name])
    raise InputError(
        f"a second score of {what}; expected one (the first: {first['place']})",
        file=second["place"],
    )


def _check_task(task: str, part: pd.DataFrame, notes: list[str]) -> None:
    """Check that the scores of a task can be compared.

    Raises:
        InputError: they are of two splits, revisions or metrics, or out of the range of a metric.
    """
    name = f'task "{task}"' if task else "the scores"
    for column, what in (("split", "splits"), ("revision", "revisions of the data")):
        groups = part[part[column] != ""].drop_duplicates(column)
        if len(groups) > 1:
            one, two = groups.iloc[0], groups.iloc[1]
            raise InputError(
                f"{name} has scores of two {what}: {one['row']} of {one[column]} "
                f"({one['place']}), {two['row']} of {two[column]}",
                file=two["place"],
                remedy="score both on the same one, or leave one out",
            )
    versions = sorted(set(part["version"]) - {""})
    if len(versions) > 1:
        notes.append(f"{name} was scored by several versions of mteb: {', '.join(versions)}")

    shared: set[str] | None = None
    for _, line in part[part["metrics"] != ""].iterrows():
        metrics = set(line["metrics"].split())
        if shared is not None and not shared & metrics:
            raise InputError(
                f"{name}: the main score of {line['row']} equals {' or '.join(sorted(metrics))}, "
                f"and that of other rows {' or '.join(sorted(shared))}",
                file=line["place"],
                remedy="score all rows by the same metric",
            )
        shared = metrics if shared is None else shared & metrics

    for column in ("metric", "scale", "lower_is_better"):
        words = part.drop_duplicates(column)
        if len(words) > 1:
            message = f'{name} has two values of "{column}"'
            raise InputError(message, file=words.iloc[1]["place"], key=f'column "{column}"')
    metric = part["metric"].iloc[0]
    if metric in ("f1", "ap"):
        wrong = part[~part["target"].isin([0.0, 1.0])]
        if len(wrong):
            target = wrong.iloc[0]["target"]
            message = f'metric "{metric}" needs targets of 0 and 1, not {target:g}'
            raise InputError(message, file=wrong.iloc[0]["place"], key='column "target"')
    without = part[part["target"].isna()]
    if 0 < len(without) < len(part):
        message = f"{name}: some examples have a target, this one has none"
        raise InputError(message, file=without.iloc[0]["place"], key='column "target"')


def _apply_scale(frame: pd.DataFrame, notes: list[str]) -> None:
    """Divide scores by the scale of their task, and turn those of which lower is better."""
    for task in frame["task"].unique():
        here = (frame["task"] == task) & frame["target"].isna()
        part = frame[here]
        if part.empty:
            continue
        name = f'task "{task}"' if task else "the scores"
        scale = _find_scale(name, part)
        frame.loc[here, "score"] = part["score"] / (100.0 if scale == float("inf") else scale)
        frame.loc[here, "scale"] = f"{scale:g}"
        if part["lower_is_better"].iloc[0] == "true":
            frame.loc[here, "score"] *= -1
            notes.append(f"scores of {name} are shown negative, since lower is better")


def _find_scale(name: str, part: pd.DataFrame) -> float:
    """Return the best score of a task: 1, 100, or infinity where scores have no bounds.

    Raises:
        InputError: rows have scores on two scales, or a score is out of range.
    """
    stated = part["scale"].iloc[0]
    highest = part["score"].abs().groupby([part["row"], part["seed"]], sort=False).max()
    if stated:
        scale = SCALES[stated]
    else:
        scale = 1.0 if highest.max() <= 1 else 100.0
        small = highest[(highest <= 1) & (highest > 0)]
        if scale == 100.0 and len(small) and highest.max() >= _FACTOR * small.max():
            row, seed = small.index[0]
            other = highest.idxmax()[0]
            here = part[(part["row"] == row) & (part["seed"] == seed)]
            raise InputError(
                f"{name}: row {row} has {small.iloc[0]:g}, while row {other} has {highest.max():g}",
                file=here["place"].iloc[0],
                key='column "score"',
                remedy='give all in one scale, 0 to 1 or 0 to 100, or state it in a column "scale"',
            )
        if 1 < highest.max() <= 2:
            worst = part[part["score"].abs() == highest.max()].iloc[0]
            raise InputError(
                f"{name}: scores up to {highest.max():g} are neither on a scale of 0 to 1 nor, "
                "it seems, of 0 to 100",
                file=worst["place"],
                key='column "score"',
                remedy='state it in a column "scale": 1, 100 or none',
            )
    beyond = part[part["score"].abs() > scale * (1 + 1e-9)]
    if len(beyond):
        worst = beyond.iloc[0]
        raise InputError(
            f"{name}: row {worst['row']} has {worst['score']:g}, expected -{scale:g} to {scale:g}",
            file=worst["place"],
            key='column "score"',
            remedy='correct it, or state "none" in a column "scale" if scores have no bounds',
        )
    return scale


def _find_copies(frame: pd.DataFrame) -> list[str]:
    """Return a note for each row with runs that are equal in every score.

    Scores of fewer than four digits are equal by chance too often to be marked.
    """
    notes = []
    for row, part in frame.groupby("row", sort=False):
        seen: dict[tuple[float, ...], str] = {}
        copies = []
        for seed, run in part.groupby("seed", sort=False):
            ordered = run.sort_values(["task", "example"])
            scores = tuple(ordered["score"])
            if all(_digits(score) < 4 for score in scores) and len(scores) < 20:
                continue
            if scores in seen:
                copies.append(f"{seen[scores]} and {seed}")
            seen.setdefault(scores, str(seed))
        if copies:
            runs = join_some(copies, 4)
            notes.append(f"runs {runs} of {row} are equal in every score, so they may be copies")
    return notes


def _find_names_alike(frame: pd.DataFrame) -> list[str]:
    """Return a note for each two rows whose names differ in upper and lower case alone."""
    notes = []
    first: dict[str, str] = {}
    for row in frame["row"].unique():
        other = first.setdefault(row.casefold(), row)
        if other != row:
            notes.append(f'rows "{other}" and "{row}" differ in upper and lower case alone')
    return notes


def _digits(score: float) -> int:
    """Return the number of significant digits of a score."""
    return len(f"{abs(score):.12g}".replace(".", "").strip("0"))
