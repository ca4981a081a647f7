"""Scores that others made: a table in a CSV or Parquet file or a pandas frame, or the results of
another tool.

Every source becomes one frame with the columns `COLUMNS`: one line is the score of one run of a row
on a task, or on a single example of a task.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import first_line
from harness.files.reading import read_json

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "row": "needed: what is compared, such as a model",
    "seed": "which run of the row; without it every row has one run",
    "task": "without it all scores are of one task",
    "example": "an id, the same for all rows; without it a score is that of the whole task",
    "score": "needed: a number; of an example 1 for right and 0 for wrong, or any other score of it",
    "target": "the gold value of the example, such as of a pair of sentences: the task's score is then a correlation",
    "metric": "of score and target: spearman (without it), pearson, f1 or ap",
}
METRICS = ("", "spearman", "pearson", "f1", "ap")
_CORRECT = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # grades of Inspect's scorers
Line = dict[str, Any]


def read_scores(source: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The scores of a source as one frame with `COLUMNS`; a column that is not known is filled with
    "".

    Args:
        source: a frame, a CSV or Parquet file with these columns; a folder of result files of mteb;
            the sample logs of lm-evaluation-harness (`samples_*.jsonl`) or the logs of Inspect
            (`*.eval`, `*.json`), one file or a folder.

    Raises:
        InputError: nothing that can be read, a column is missing, or a line has no number; with
            file, line and column.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _checked(source, "frame")
    path = Path(source)
    if path.suffix in (".csv", ".parquet") and path.is_file():
        try:
            frame = (
                pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
            )
        except (OSError, ValueError) as error:  # pandas' and pyarrow's errors are ValueErrors
            raise InputError(f"{path}: not readable ({first_line(error)})") from None
        return _checked(frame, str(path))
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    lines = [line for file in files if (reader := _reader_of(file)) for line in reader(file)]
    known = {(line["row"], line["task"]) for line in lines if "example" in line}
    lines = [
        line for line in lines if "example" in line or (line["row"], line["task"]) not in known
    ]
    if not lines:
        raise InputError(
            f"{path}: no scores found; expected a CSV or Parquet file with the columns {', '.join(COLUMNS)}, a folder "
            "of mteb's results, sample logs of lm-evaluation-harness (samples_*.jsonl) or logs of Inspect (*.eval)"
        )
    return _checked(pd.DataFrame(lines), str(path))


def holds_results(folder: Path) -> bool:
    """Whether a folder has files that may be results of another tool, by their names."""
    return any(_reader_of(file) is not None for file in folder.rglob("*"))


def _checked(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    for column in frame.columns:
        if column not in COLUMNS:
            known = ", ".join(COLUMNS)
            raise InputError(
                f'{where}: unknown column "{column}"{nearest(str(column), list(COLUMNS))}; known: {known}'
            )
    for column in ("row", "score"):
        if column not in frame.columns:
            raise InputError(
                f'{where}: no column "{column}"; expected {", ".join(COLUMNS)} (row and score are needed)'
            )
    found = pd.DataFrame({c: frame[c] if c in frame.columns else "" for c in COLUMNS}).reset_index(
        drop=True
    )
    for name in ("row", "seed", "task", "example", "metric"):
        found[name] = found[name].fillna("").astype(str)
    for name in ("score", "target"):
        given = found[name]
        found[name] = pd.to_numeric(given, errors="coerce")
        empty = given.isna() | (given == "") if name == "target" else np.zeros(len(found), bool)
        for bad in np.flatnonzero(~np.isfinite(found[name]) & ~empty):
            raise InputError(
                f'{where}, line {bad + 2}: column "{name}": expected a number, not {given.iloc[bad]!r}'
            )
    for bad in np.flatnonzero(~found["metric"].isin(METRICS)):
        raise InputError(
            f'{where}, line {bad + 2}: column "metric": expected {", ".join(METRICS[1:])}, not '
            f"{found['metric'].iloc[bad]!r}"
        )
    for bad in np.flatnonzero(found["row"] == ""):
        raise InputError(f'{where}, line {bad + 2}: column "row": expected a name')
    for bad in np.flatnonzero(found.duplicated(["row", "seed", "task", "example"])):
        what = {
            name: found[name].iloc[bad]
            for name in ("row", "seed", "task", "example")
            if found[name].iloc[bad]
        }
        said = ", ".join(f"{name} {value}" for name, value in what.items())
        raise InputError(f"{where}, line {bad + 2}: a second score of {said}; expected one")
    return found


def _reader_of(file: Path) -> Callable[[Path], Iterator[Line]] | None:
    if file.name.startswith("samples_") and file.suffix == ".jsonl":
        return _read_lm_eval
    if file.suffix == ".eval":
        return _read_inspect
    if file.name.endswith("_predictions.json"):
        return _read_predictions
    if file.suffix == ".json" and file.name != "model_meta.json":
        return _read_json_results
    return None


def _read_json_results(file: Path) -> Iterator[Line]:
    """A result file of mteb, or a log of Inspect as JSON; nothing of any other file."""
    tree = read_json(file)
    if isinstance(tree.get("eval"), dict) and "samples" in tree:
        yield from _inspect_lines(file, tree["eval"], tree["samples"] or [])
    elif isinstance(tree.get("scores"), dict) and "task_name" in tree:
        row = file.parent.parent.name.replace("__", "/")  # .../ORG__MODEL/REVISION/TASK.json
        if (
            file.parent.parent.name == "experiments"
        ):  # .../ORG__MODEL/REVISION/experiments/SETTINGS/TASK.json
            row = f"{file.parents[3].name.replace('__', '/')} ({file.parent.name})"
        parts: list[Line] = next(
            (tree["scores"][s] for s in ("test", "dev", "validation") if tree["scores"].get(s)), []
        )
        values = [float(part["main_score"]) for part in parts if "main_score" in part]
        if not values:
            raise InputError(f'{file}: key "scores": no "main_score" of a test split')
        yield {"row": row, "task": tree["task_name"], "score": sum(values) / len(values)}


def _read_predictions(file: Path) -> Iterator[Line]:
    """Predictions of mteb (`prediction_folder`), scored by the data of their task, which is read
    from the hub.
    """
    from harness.tasks.mteb.examples import PAIR, read_examples

    name = file.name.removesuffix("_predictions.json")
    try:
        row = read_json(file)["mteb_model_meta"]["model_name"]
        task = _task(name)
        examples = read_examples(task, file.parent)
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{file}: not predictions of a task that mteb knows ({first_line(error)})"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file}: the data of {name} is needed to score predictions ({first_line(error)})"
        ) from None
    if examples is None:
        return
    main = PAIR if PAIR in set(examples["metric"]) else task.metadata.main_score
    metric = "spearman" if main == PAIR else "ap" if main.endswith("_ap") else ""
    for one in examples[examples["metric"] == main].to_dict("records"):
        yield {
            "row": row,
            "task": f"{name} {one['subset']}".strip(),
            "example": f"{one['split']} {one['example']}",
            "score": float(one["outcome"]),
            "target": float(one["target"]),
            "metric": metric,
        }


@cache
def _task(name: str) -> Any:
    """A task of mteb with its data."""
    import datasets
    import mteb

    task, shown = mteb.get_task(name), not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        task.load_data()
    finally:
        if shown:
            datasets.enable_progress_bars()
    return task


def _read_lm_eval(file: Path) -> Iterator[Line]:
    """Sample logs of lm-evaluation-harness: the folder is the row; the metric is the first that
    each sample names.
    """
    task = file.stem.removeprefix("samples_").rpartition("_")[0] or file.stem.removeprefix(
        "samples_"
    )
    for number, text in enumerate(file.read_text("utf-8").splitlines(), 1):
        try:
            sample = json.loads(text)
            metrics = sample.get("metrics") or [
                name for name in ("acc", "exact_match", "acc_norm") if name in sample
            ]
            yield {
                "row": file.parent.name.replace("__", "/"),
                "task": task,
                "example": sample["doc_id"],
                "score": float(sample[metrics[0]]),
            }
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise InputError(
                f'{file}, line {number}: no sample with "doc_id" and a metric ({error})'
            ) from None


def _read_inspect(file: Path) -> Iterator[Line]:
    """A log of Inspect in its own format, a zip archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = [
                name
                for name in archive.namelist()
                if name.startswith("samples/") and name.endswith(".json")
            ]
            header = json.loads(archive.read("header.json"))["eval"]
            samples = [json.loads(archive.read(name)) for name in names]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{file}: not a log of Inspect ({first_line(error)})") from None
    yield from _inspect_lines(file, header, samples)


def _inspect_lines(file: Path, header: Line, samples: list[Line]) -> Iterator[Line]:
    for sample in samples:
        for scorer, score in list((sample.get("scores") or {}).items())[:1]:
            value = score.get("value")
            grade = _CORRECT.get(value, value) if isinstance(value, str) else value
            if not isinstance(grade, bool | int | float):
                raise InputError(
                    f'{file}: sample {sample.get("id")}: scorer "{scorer}": expected a number or a grade'
                )
            yield {
                "row": header["model"],
                "task": header["task"],
                "seed": str(sample.get("epoch", 1)),
                "example": str(sample["id"]),
                "score": float(grade),
            }
