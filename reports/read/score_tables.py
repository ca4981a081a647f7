"""Scores that others made: a table in a file or a pandas frame, or the results of another tool.

Every source becomes one frame with the columns `COLUMNS` and `PROVENANCE`: one line is the score of
one run of a row on a task, or on a single example of a task. What an entry must fulfil is checked
here, once, for all who read scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from harness.files.tables import clean_name, is_table, read_table, to_numbers
from reports.read.score_logs import (
    LARGEST_SCORE,
    DamagedJson,
    Line,
    holds_scores,
    name_filters,
    read_log,
    reader_of,
    tell_models_apart,
)

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
    "metric": "the name of the score, one for a task; of score and target spearman (without it), pearson, f1 or ap",
    "scale": "of the task: 1 or 100, the best score; none for scores without bounds, such as perplexity",
    "lower_is_better": "of the task: true for errors and perplexity (without it: false)",
    "split": "of the task's data, such as test; one for all rows",
    "revision": "of the task's data; one for all rows",
    "version": "of mteb or what else scored; noted where rows have several",
}
_NAMES = (
    "row",
    "seed",
    "task",
    "metric",
    "scale",
    "lower_is_better",
    "split",
    "revision",
    "version",
)
PROVENANCE = ("metrics", "file", "place")
"""Columns of the frame that a table does not have: of results of mteb the metrics that equal the
main score; of every line its file (logs of a folder count as one), and its file and line."""
METRICS = ("", "spearman", "pearson", "f1", "ap")
SCALES = {"1": 1.0, "100": 100.0, "none": float("inf")}
# Of these lower is better, and there are no bounds, whether or not a table says so.
_ERRORS = frozenset(
    [
        "perplexity",
        "ppl",
        "word_perplexity",
        "byte_perplexity",
        "bits_per_byte",
        "loss",
        "nll",
        "mse",
        "rmse",
        "mae",
    ]
)
_NAMES_OF_ROW = ("model", "system", "method", "name", "run", "encoder")
_DIGITS = 4  # runs with equal scores of so many digits may be copies
_MANY = 20  # scores of examples: runs that are equal in all of them may be copies
_HISTORY = "gate.jsonl"  # of `harness gate`, which lies next to scores
_DESCRIPTIVE = ("geometry", "layers", "compression", "efficiency")  # suites
# Metric and aggregation that the table of a task shows, as in reports.stats.suite_targets.
_MAIN_SCORES = (
    ("accuracy", ""),
    ("spearman", "all"),
    ("spearman", ""),
    ("recall", "mean of six recalls"),
)
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
        _fill_statements(frame, task)
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
        lines = list(read_log(path, path.parent)) if reader_of(path) is not None else []
        if not lines:
            raise _nothing_found(path)
        return _check_logs(lines, path, notes)
    return _read_folder(path, notes)


def _read_folder(folder: Path, notes: list[str]) -> pd.DataFrame:
    """Read all tables and logs below a folder; tables and JSON files that are none are noted."""
    import pandas as pd

    parts = []
    lines: list[Line] = []
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        if file.name == _HISTORY:
            continue
        if reader_of(file) is not None:
            try:
                if holds_scores(file):
                    lines += read_log(file, folder)
            except DamagedJson as error:
                notes.append(f"{file.name} is not read: {error.message}")
        elif is_table(file):
            if _is_score_table(file):
                parts.append(_check_table(read_table(file), str(file)))
            else:
                notes.append(f"{file.name} is not read: it has no columns row and score")
    if lines:
        parts.append(_check_logs(lines, folder, notes))
    if not parts:
        raise _nothing_found(folder)
    return pd.concat(parts, ignore_index=True)


def _nothing_found(path: Path) -> InputError:
    return InputError(
        "no scores found; expected a CSV, TSV, JSON Lines or Parquet file (.csv, .tsv, .jsonl, "
        f".parquet) with the columns {', '.join(COLUMNS)}, "
        "a folder of mteb's results, sample logs of lm-evaluation-harness (samples_*.jsonl) or "
        "logs of Inspect (*.eval)",
        file=path,
    )


def _is_score_table(file: Path) -> bool:
    try:
        names = _lower_names(list(read_table(file).columns))
    except InputError:  # a damaged one is refused where it is read, if it names these columns
        with file.open("rb") as stream:
            start = stream.read(200).lower()
        return b"row" in start and b"score" in start
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
    for name in _NAMES:
        frame[name] = _replace_each(frame[name], clean_name)
    frame["seed"] = _replace_each(frame["seed"], _clean_seed)
    for name in PROVENANCE:
        frame[name] = ""
    frame["file"] = where
    frame["place"] = [f"{where}, line {line}" for line in frame.index]

    for line in frame.index[frame["row"] == ""]:
        raise InputError("expected a name", file=f"{where}, line {line}", key='column "row"')
    for line in frame.index[given]:
        if frame["metric"][line] not in METRICS:
            message = (
                f"with targets expected {', '.join(METRICS[1:])}, not {frame['metric'][line]!r}"
            )
            raise InputError(message, file=f"{where}, line {line}", key='column "metric"')
    _check_words(frame, "scale", ("", *SCALES), where)
    frame["lower_is_better"] = frame["lower_is_better"].replace({"1": "true", "0": "false"})
    _check_words(frame, "lower_is_better", ("", "true", "false"), where)
    return frame.reset_index(drop=True)


def _replace_each(texts: pd.Series[str], change: Callable[[str], str]) -> pd.Series[str]:
    """Return texts changed, each distinct one computed once: names repeat on every line."""
    return texts.map({text: change(text) for text in texts.unique()})


def _check_columns(names: list[str], where: str) -> None:
    lacking = [name for name in ("row", "score") if name not in names]
    if lacking:
        raise _describe_lacking(names, lacking, where)
    for name in names:
        if name not in COLUMNS:
            known = ", ".join(COLUMNS)
            guess = nearest(name, list(COLUMNS))
            raise InputError(f'unknown column "{name}"{guess}; known: {known}', file=where)


def _describe_lacking(names: list[str], lacking: list[str], where: str) -> InputError:
    """Return the error of a table that lacks a column, with what would mend it."""
    unknown = [name for name in names if name not in COLUMNS]
    called = next((name for name in unknown if name in _NAMES_OF_ROW), None)
    others = [name for name in unknown if name != called]
    steps = []
    if "row" in lacking and called:
        steps.append(f'rename "{called}" to "row"')
    elif others and (guess := nearest(others[0], lacking)):
        return InputError(f'unknown column "{others[0]}"{guess}', file=where, remedy="rename it")
    if "score" in lacking and len(others) > 1:
        steps.append(
            f"make one line of each score of {join_some(others, 4)} (the table is wide), by "
            "pandas.melt(frame, id_vars=['row', 'seed'], var_name='task', value_name='score')"
        )
    return InputError(
        f'no column "{lacking[0]}", but {join_some(names, 8)}; expected {", ".join(COLUMNS)} (row '
        "and score are needed)",
        file=where,
        remedy="; ".join(steps) or f'call a column "{lacking[0]}"',
    )


def _check_words(frame: pd.DataFrame, column: str, known: Sequence[str], where: str) -> None:
    frame[column] = frame[column].str.lower()
    for line, word in frame[column].items():
        if word not in known:
            message = f"expected {', '.join(filter(None, known))}, not {word!r}"
            raise InputError(message, file=f"{where}, line {line}", key=f'column "{column}"')


def _clean_seed(seed: str) -> str:
    """Return a seed as text; "1" and "1.0", as spreadsheets and frames have it, are the same."""
    whole = re.fullmatch(r"([+-]?)0*([0-9]+)(\.0*)?", seed)
    if whole is None:
        return seed
    return f"-{whole[2]}" if whole[1] == "-" else whole[2]


def _read_export(table: pd.DataFrame) -> pd.DataFrame:
    """Return all-scores.csv of a report as a table of scores: of each task what its table shows.

    Suites that describe a model, such as geometry, rank nothing and are left out.
    """
    import pandas as pd

    table = table[table["status"] == "finished"]
    if "split" in table.columns:
        table = table[table["split"] != "dev"]
    if "suite" in table.columns:
        table = table[~table["suite"].isin(_DESCRIPTIVE)]
    kinds = pd.Series(list(zip(table["metric"], table["aggregation"], strict=True)), table.index)
    task = _name_apart(table, "task", "source")
    is_main = pd.Series(data=False, index=table.index)
    for _, of_task in kinds.groupby(task, sort=False):
        known = list(of_task)
        main = next((kind for kind in _MAIN_SCORES if kind in known), known[0])
        is_main[of_task.index] = of_task == main
    columns = {
        "row": _name_apart(table, "row", "base_model"),
        "seed": table["seed"],
        "task": task,
        "score": table["value"],
    }
    return pd.DataFrame({**columns, "scale": "1"}, index=table.index)[is_main]


def _name_apart(table: pd.DataFrame, column: str, by: str) -> pd.Series[str]:
    """Return names with what tells those apart that stand for several things: "row · base model"."""
    if by not in table.columns:
        return table[column]
    several = table.groupby(column)[by].transform("nunique") > 1
    return table[column].where(~several, table[column] + " · " + table[by])


def _check_logs(lines: list[Line], path: Path, notes: list[str]) -> pd.DataFrame:
    """Return lines of other tools' results as a frame of scores."""
    import pandas as pd

    name_filters(lines)
    notes += tell_models_apart(lines)
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
    for name in _NAMES:
        frame[name] = _replace_each(frame[name].fillna("").astype(str), clean_name)
    for name in ("example", *PROVENANCE):
        frame[name] = frame[name].fillna("")
    frame["file"] = str(path)
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

    for column in ("metric", "lower_is_better"):
        _check_one_word(column, part)
    for _, of_file in part.groupby("file", sort=False):
        _check_one_word("scale", of_file)
    if part["target"].notna().any():
        _check_targets(name, part)


def _check_one_word(column: str, part: pd.DataFrame) -> None:
    """Check that lines which state something of a task state the same.

    Raises:
        InputError: two lines differ, with both places.
    """
    words = part[part[column] != ""].drop_duplicates(column)
    if len(words) > 1:
        one, two = words.iloc[0], words.iloc[1]
        message = (
            f"a task has two values, {one[column]} for row {one['row']} ({one['place']}) and "
            f"{two[column]} for row {two['row']}"
        )
        raise InputError(message, file=two["place"], key=f'column "{column}"')


def _fill_statements(frame: pd.DataFrame, task: str) -> None:
    """Let what some lines of a task state hold for all of them, and what a metric's name says.

    A scale holds for the lines of its file.
    """
    here = frame["task"] == task
    parts = [("metric", here), ("lower_is_better", here)]
    parts += [
        ("scale", here & (frame["file"] == file)) for file in frame.loc[here, "file"].unique()
    ]
    for column, lines in parts:
        stated = frame.loc[lines & (frame[column] != ""), column].unique()
        if len(stated) == 1:
            frame.loc[lines, column] = stated[0]
    if set(frame.loc[here, "metric"].str.lower()) & _ERRORS:
        for column, word in (("scale", "none"), ("lower_is_better", "true")):
            frame.loc[here & (frame[column] == ""), column] = word


def _check_targets(name: str, part: pd.DataFrame) -> None:
    """Check that the gold values of a task are those of one test set.

    Raises:
        InputError: an example has none or two, or one that its metric does not know.
    """
    without = part[part["target"].isna()]
    if len(without):
        message = f"{name}: some examples have a target, this one has none"
        raise InputError(message, file=without.iloc[0]["place"], key='column "target"')
    first = part.groupby("example", sort=False)["target"].transform("first")
    other = part[first != part["target"]]
    if len(other):
        line = other.iloc[0]
        before = float(first[other.index].iloc[0])
        message = f"{name}, example {line['example']}: {line['target']:g}, but {before:g} in a line before"
        raise InputError(message, file=line["place"], key='column "target"')
    metric = part["metric"].iloc[0]
    binary = {"f1": ("target", "score"), "ap": ("target",)}.get(metric, ())
    for column in binary:
        wrong = part[~part[column].isin([0.0, 1.0])]
        if len(wrong):
            message = f'metric "{metric}" needs values of 0 and 1, not {wrong.iloc[0][column]:g}'
            raise InputError(message, file=wrong.iloc[0]["place"], key=f'column "{column}"')


def _apply_scale(frame: pd.DataFrame, notes: list[str]) -> None:
    """Divide scores by the scale of their task and file, and turn those of which lower is better."""
    found: dict[str, float] = {}
    several = frame["file"].nunique() > 1
    plain = frame[frame["target"].isna()]
    for (task, file), part in plain.groupby(["task", "file"], sort=False):
        name = f'task "{task}"' if task else "the scores"
        scale = _find_scale(name, part)
        if not part["scale"].iloc[0]:
            found[f"{name} in {file}" if several else name] = scale
        score = part["score"] / (100.0 if scale == float("inf") else scale)
        is_error = part["lower_is_better"].iloc[0] == "true"
        frame.loc[part.index, "score"] = -score if is_error else score
        frame.loc[part.index, "scale"] = f"{scale:g}"
        note = f"scores of {name} are shown negative, since lower is better"
        if is_error and note not in notes:
            notes.append(note)
    if len(set(found.values())) > 1:
        small = [name for name, scale in found.items() if scale == 1.0]
        notes.append(f"{join_some(small, 4)}: scores read as 0 to 1, others as 0 to 100")


def _find_scale(name: str, part: pd.DataFrame) -> float:
    """Return the best score of a task: 1, 100, or infinity where scores have no bounds.

    Raises:
        InputError: rows have scores on two scales, or a score is out of range.
    """
    stated = part["scale"].iloc[0]
    if stated:
        scale = SCALES[stated]
    else:
        scale = 1.0 if part["score"].abs().max() <= 1 else 100.0
        _check_one_scale(name, part)
    limit = LARGEST_SCORE if scale == float("inf") else scale
    beyond = part[part["score"].abs() > limit * (1 + 1e-9)]
    if len(beyond):
        worst = beyond.iloc[0]
        raise InputError(
            f"{name}: row {worst['row']} has {worst['score']:g}, expected -{limit:g} to {limit:g}",
            file=worst["place"],
            key='column "score"',
            remedy='correct it, or state "none" in a column "scale" if scores have no bounds',
        )
    return scale


def _check_one_scale(name: str, part: pd.DataFrame) -> None:
    """Check that no run of a task has 0 to 1 where another one has 0 to 100.

    A run at most 1 beside one above it is either that or a score near nothing in percent, which
    cannot be told apart: one of them would be wrong by a factor of 100.

    Raises:
        InputError: such runs, with both rows.
    """
    sizes = part["score"].abs()
    largest = part.loc[sizes.groupby([part["row"], part["seed"]], sort=False).idxmax()]
    size = largest["score"].abs()
    small = largest[(size <= 1) & (size > 0)]
    large = largest[size > 1]
    if small.empty or large.empty:
        return
    highest = large["score"].abs().max()
    if highest <= 2:
        raise InputError(
            f"{name}: scores up to {highest:g} are neither on a scale of 0 to 1 nor, it seems, of 0 "
            "to 100",
            file=large.iloc[0]["place"],
            key='column "score"',
            remedy='state it in a column "scale": 1, 100 or none',
        )
    one, other = small.iloc[0], large.iloc[0]
    if len(large) < len(small):
        one, other = other, one
    raise InputError(
        f"{name}: row {one['row']} has {one['score']:g}, while row {other['row']} has "
        f"{other['score']:g} ({other['place']})",
        file=one["place"],
        key='column "score"',
        remedy='give all in one scale, 0 to 1 or 0 to 100, or state it in a column "scale"',
    )


def _find_copies(frame: pd.DataFrame) -> list[str]:
    """Return a note for each row with runs whose scores are equal to four digits.

    Scores of fewer digits are equal by chance too often to be marked.
    """
    notes = []
    for row, part in frame.groupby("row", sort=False):
        first: dict[tuple[float, ...], str] = {}
        copies = []
        for seed, run in part.groupby("seed", sort=False):
            ordered = run.sort_values(["task", "example"])
            if len(run) < _MANY and all(_digits(score) < _DIGITS for score in ordered["score"]):
                continue
            scores = tuple(float(f"{score:.{_DIGITS}g}") for score in ordered["score"])
            if scores in first:
                copies.append(f"{first[scores]} and {seed}")
            first.setdefault(scores, str(seed))
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
