"""Scores that others made: a table in a file or a pandas frame, or the results of another tool.

Every source becomes one frame with the columns `COLUMNS` and `PROVENANCE`: one line is the score of
one run of a row on a task, or on a single example of a task. What a line must hold is checked here;
what the lines of a task must have in common, in `reports.read.score_contract`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import join_some
from harness.files.tables import (
    clean_name,
    is_table,
    name_remedy,
    read_table,
    require_texts,
    to_numbers,
)
from reports.read.score_contract import SCALES, apply_contract
from reports.read.score_logs import (
    DamagedJson,
    Line,
    holds_scores,
    is_local,
    name_filters,
    read_log,
    reader_of,
    tell_models_apart,
)

if TYPE_CHECKING:
    import pandas as pd

_MOST_FILES = 300_000  # below a folder of scores: mteb's results of all models have fewer
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
    "submitter": "who sent the row, for a page of several senders",
    "date": "of the row, as 2026-11-28, for such a page",
    "link": "a page with more on the row, https://..., for such a page",
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
    "submitter",
    "date",
    "link",
)
PROVENANCE = ("metrics", "file", "place")
"""Columns of the frame that a table does not have: of results of mteb the metrics that equal the
main score; of every line its file (logs of a folder count as one), and its file and line."""
METRICS = ("", "spearman", "pearson", "f1", "ap")
_NAMES_OF_ROW = ("model", "system", "method", "name", "run", "encoder")
# Columns of a leaderboard that are no scores of a task.
_NO_TASKS = ("rank", "place", "avg", "avg.", "average", "mean", "overall", "all", "params")
_HISTORY = "gate.jsonl"  # of `harness gate`, which lies next to scores
_DESCRIPTIVE = ("geometry", "layers", "compression", "efficiency")  # suites
# Metric and aggregation that the table of a task shows, as in reports.suite_targets.
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

    if isinstance(source, list | tuple):
        sources: list[Any] = list(source)
    else:
        sources = [source]
    notes: list[str] = []
    parts = [_read_source(one, notes) for one in sources]
    _tell_sources_apart(parts, sources)
    frame = pd.concat(parts, ignore_index=True)
    notes += apply_contract(frame)
    frame.attrs["notes"] = notes
    return frame


def _tell_sources_apart(parts: Sequence[pd.DataFrame], sources: Sequence[Any]) -> None:
    """Add the source to names of local models that two sources have in folders of one name."""
    local = [part.attrs.get("local", frozenset()) for part in parts]
    folders = []
    for source, names in zip(sources, local, strict=True):
        path = Path(source).absolute() if names else Path()
        folders.append(path if path.is_dir() else path.parent)
    short = _shorten(folders)
    for place, (part, names) in enumerate(zip(parts, local, strict=True)):
        others = frozenset[str]().union(*local[:place], *local[place + 1 :])
        for name in names & others:
            part.loc[part["row"] == name, "row"] = f"{name} ({short[place]})"


def _shorten(folders: Sequence[Path]) -> list[str]:
    """Return as many last names of paths, two at least, as tell them apart.

    >>> _shorten([Path("/one/a/out"), Path("/two/a/out")])
    ['one/a/out', 'two/a/out']
    """
    most = max((len(folder.parts) for folder in folders), default=0)
    for count in range(2, most):
        short = ["/".join(folder.parts[-count:]) for folder in folders]
        if len(set(short)) == len(set(folders)):
            return short
    return [str(folder) for folder in folders]


def _files_below(folder: Path) -> list[Path]:
    """Return what is no folder below a folder, sorted; folders that cannot be listed are left out.

    Raises:
        InputError: there is so much that it can be no folder of scores.
    """
    found: list[Path] = []
    for place, _, names in os.walk(folder):
        found += [Path(place, name) for name in names]
        if len(found) > _MOST_FILES:
            message = f"holds more than {_MOST_FILES:,} files"
            raise InputError(message, file=folder, remedy="name the folder of the scores alone")
    return sorted(found)


def holds_results(folder: Path) -> bool:
    """True if a folder has files of scores, by their names or columns."""
    return any(map(_may_hold_scores, _files_below(folder)))


def _may_hold_scores(file: Path) -> bool:
    return reader_of(file) is not None or (is_table(file) and _is_score_table(file))


def _read_source(source: str | Path | pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _check_table(read_table(source), "frame")
    path = Path(source)
    if not path.is_dir() and is_table(path) and reader_of(path) is None:
        return _check_table(read_table(path), str(path))
    if not path.is_dir():
        if reader_of(path) is not None:
            lines = list(read_log(path, path.parent))
        else:
            lines = []
        if not lines:
            raise _nothing_found(path)
        return _check_logs(lines, path, notes)
    return _read_folder(path, notes)


def _read_folder(folder: Path, notes: list[str]) -> pd.DataFrame:
    """Read all tables and logs below a folder; tables and JSON files that are none are noted."""
    import pandas as pd

    parts = []
    lines: list[Line] = []
    for file in _files_below(folder):
        if not file.is_file():
            continue
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
    whole = pd.concat(parts, ignore_index=True)
    whole.attrs = dict(parts[-1].attrs)  # of the logs
    return whole


def _nothing_found(path: Path) -> InputError:
    remedy = None
    if path.is_file():
        remedy = name_remedy(path)
    return InputError(
        "no scores found; expected a CSV, TSV, JSON Lines or Parquet file (.csv, .tsv, .jsonl, "
        f".parquet) with the columns {', '.join(COLUMNS)}, "
        "a folder of mteb's results, sample logs of lm-evaluation-harness (samples_*.jsonl) or "
        "logs of Inspect (*.eval)",
        file=path,
        remedy=remedy,
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

    written = list(table.columns)
    table = table.set_axis(_lower_names(written), axis=1)
    if set(table.columns) >= _EXPORT:
        table = _read_export(table)
    _check_columns(list(table.columns), written, where)

    require_texts(table, table.columns, where)
    frame = pd.DataFrame(index=table.index)
    for name in COLUMNS:
        if name in table.columns:
            frame[name] = table[name]
        else:
            frame[name] = ""
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
        raise InputError("expected a name", file=where, line=line, key='column "row"')
    for line in frame.index[given]:
        if frame["metric"][line] not in METRICS:
            message = (
                f"with targets expected {', '.join(METRICS[1:])}, not {frame['metric'][line]!r}"
            )
            raise InputError(message, file=where, line=line, key='column "metric"')
    _check_words(frame, "scale", ("", *SCALES), where)
    frame["lower_is_better"] = frame["lower_is_better"].replace({"1": "true", "0": "false"})
    _check_words(frame, "lower_is_better", ("", "true", "false"), where)
    return frame.reset_index(drop=True)


def _replace_each(texts: pd.Series[str], change: Callable[[str], str]) -> pd.Series[str]:
    """Return texts changed, each distinct one computed once: names repeat on every line."""
    return texts.map({text: change(text) for text in texts.unique()})


def _check_columns(names: list[str], written: list[str], where: str) -> None:
    lacking = [name for name in ("row", "score") if name not in names]
    if lacking:
        raise _describe_lacking(written, lacking, where)
    for name in names:
        if name not in COLUMNS:
            known = ", ".join(COLUMNS)
            guess = nearest(name, list(COLUMNS))
            raise InputError(
                f'unknown column "{name}"{guess}; known: {known}',
                key=name,
                file=where,
            )


def _describe_lacking(written: list[str], lacking: list[str], where: str) -> InputError:
    """Return the error of a table that lacks a column, with what would mend it.

    Args:
        written: its columns, as the file has them.
    """
    unknown = [name for name in written if name.lower() not in COLUMNS]
    called = next((name for name in unknown if name.lower() in _NAMES_OF_ROW), None)
    others = [name for name in unknown if name != called]
    tasks = [name for name in others if name.lower() not in _NO_TASKS]
    steps = []
    if "score" in lacking and len(tasks) > 1:
        steps.append(_melt(written, called, tasks))
    elif "row" in lacking and called:
        steps.append(f'rename "{called}" to "row"')
    elif others and (guess := nearest(others[0], lacking)):
        return InputError(
            f'unknown column "{others[0]}"{guess}',
            key=others[0],
            file=where,
            remedy="rename it",
        )
    return InputError(
        f'no column "{lacking[0]}", but {join_some(written, 8)}; expected {", ".join(COLUMNS)} (row '
        "and score are needed)",
        key=lacking[0],
        file=where,
        remedy="; ".join(steps) or f'call a column "{lacking[0]}"',
    )


def _melt(written: list[str], called: str | None, tasks: list[str]) -> str:
    """Return how pandas makes a line of each score of a wide table."""
    kept = [name for name in written if name.lower() in COLUMNS]
    dropped = [name for name in written if name not in [*kept, called, *tasks]]
    names = {name: name.lower() for name in kept if name != name.lower()}
    calls = ""
    if dropped:
        calls += f".drop(columns={dropped})"
    if called:
        names[called] = "row"
        kept = [called, *kept]
    if names:
        calls += f".rename(columns={names})"
    ids = [names.get(name, name) for name in kept]
    return (
        f"make one line of each score of {join_some(tasks, 4)} (the table is wide), by "
        f"frame{calls}.melt({ids}, var_name='task', value_name='score').dropna() of pandas"
    )


def _check_words(frame: pd.DataFrame, column: str, known: Sequence[str], where: str) -> None:
    frame[column] = frame[column].str.lower()
    for line, word in zip(frame.index, frame[column], strict=True):
        if word not in known:
            message = f"expected {', '.join(filter(None, known))}, not {word!r}"
            raise InputError(message, file=where, line=line, key=f'column "{column}"')


def _clean_seed(seed: str) -> str:
    """Return a seed as text; "1" and "1.0", as spreadsheets and frames have it, are the same."""
    whole = re.fullmatch(r"([+-]?)0*([0-9]+)(\.0*)?", seed)
    if whole is None:
        return seed
    if whole[1] == "-":
        return f"-{whole[2]}"
    return whole[2]


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
    local = frozenset(line["folder"] for line in lines if is_local(line["row"]))
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
            if name == "target":
                frame[name] = float("nan")
            else:
                frame[name] = ""
    for name in _NAMES:
        frame[name] = _replace_each(frame[name].fillna("").astype(str), clean_name)
    for name in ("example", *PROVENANCE):
        frame[name] = frame[name].fillna("")
    frame["file"] = str(path)
    frame["place"] = [place or str(path) for place in frame["place"]]
    frame = frame[[*COLUMNS, *PROVENANCE]]
    frame.attrs["local"] = local
    return frame
