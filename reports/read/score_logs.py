"""Results of other tools as lines of scores: mteb, lm-evaluation-harness and Inspect."""

from __future__ import annotations

import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.files.printable import first_line, join_some
from harness.files.reading import parse_json, read_json, require_ordinary
from harness.files.tables import LARGEST, clean

Line = dict[str, Any]
"""A score by the columns of `reports.read.score_tables`; what it lacks is empty."""

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # of Inspect's scorers
_SPLITS = ("test", "dev", "validation")
_PERCENT = {"p-MRR"}  # the metric that mteb stores in percent
_NO_METRIC = {"main_score", "hf_subset", "languages", "mteb_version", "evaluation_time"}
_UNNAMED = "no_model_name"  # mteb's name of a model that was loaded from a folder
LARGEST_SCORE = 1e12  # of scores without bounds: squares of more are lost in a float
_START = 64  # bytes of a file, of which the first that is no blank tells an object
_LARGEST_SAMPLE = 64 << 20  # bytes of a sample of Inspect: read as JSON, it takes twenty times that


class DamagedJson(InputError):  # noqa: N818 - says what it is
    """A file is no JSON object, and so no score file either; in a folder it is passed over."""


def reader_of(file: Path) -> Callable[[Path], Iterator[Line]] | None:
    """Return what reads a file, by its name; None for a file of another kind."""
    if file.name.startswith("samples_") and file.suffix == ".jsonl":
        return _read_lm_eval
    if file.suffix == ".eval":
        return _read_inspect
    if file.name.endswith("_predictions.json"):
        return _read_predictions
    if file.suffix == ".json" and file.name != "model_meta.json":
        return _read_json_results
    return None


def holds_scores(file: Path) -> bool:
    """True unless a JSON file of a folder is neither a result of mteb nor a log of Inspect.

    Raises:
        DamagedJson: it cannot be read as JSON.
    """
    if reader_of(file) is not _read_json_results:
        return True
    with file.open("rb") as stream:
        start = stream.read(_START).lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"{"):
        return False
    try:
        tree = read_json(file)
    except InputError as error:
        raise DamagedJson(str(error).removeprefix(f"{file}: ")) from None
    return _is_mteb(tree) or ("eval" in tree and "samples" in tree)


def read_log(file: Path, root: Path) -> Iterator[Line]:
    """Yield the scores of a file.

    Args:
        root: the folder that was named; "folder" of a line is that of its model inside it.

    Raises:
        InputError: it is damaged, or lacks what a score needs; with file, line and key.
    """
    reader = reader_of(file)
    if reader is not None:
        parent = file.absolute().parent
        base = root.absolute()
        inside = parent != base and parent.is_relative_to(base)
        if inside:
            folder = parent.relative_to(base).as_posix()
        else:
            folder = parent.name
        for line in reader(file):
            if is_local(line["row"]):
                line["folder"] = _without_unnamed(folder)
            yield {"place": str(file), "folder": folder, **line}


def _without_unnamed(folder: str) -> str:
    """Return a path without the folder that mteb has for all models without a name."""
    return "/".join(part for part in folder.split("/") if not is_local(part))


def name_filters(lines: list[Line]) -> None:
    """Make a task of each filter of a task that has several: samples of gsm8k are scored by two."""
    filters: dict[str, set[str]] = {}
    for line in lines:
        if "filter" in line:
            filters.setdefault(line["task"], set()).add(line["filter"])
    for line in lines:
        filtered = line.pop("filter", "")
        if len(filters.get(line["task"], ())) > 1:
            line["task"] = f"{line['task']} ({filtered})"


def is_local(row: str) -> bool:
    """True if mteb had no name of a model, as it was loaded from a folder."""
    return row.startswith(_UNNAMED)


def tell_models_apart(lines: list[Line]) -> list[str]:
    """Add the folder to the names of models that would be one row although they are several.

    Local models have no name in mteb, and a model may have results of two revisions.

    Returns:
        A note for each name that has results in several folders and yet is one row.
    """
    folders: dict[str, set[str]] = {}
    of_score: dict[tuple[str, ...], set[str]] = {}
    for line in lines:
        row = line["row"]
        folders.setdefault(row, set()).add(line["folder"])
        key = (row, line["task"], line.get("seed", ""), line.get("example", ""))
        of_score.setdefault(key, set()).add(line["folder"])
    colliding = {key[0] for key, places in of_score.items() if len(places) > 1}
    for line in lines:
        row = line["row"]
        folder = line.pop("folder")
        if is_local(row):
            line["row"] = folder
        elif row in colliding:
            line["row"] = f"{row} ({folder})"
    notes = []
    for row, places in folders.items():
        if len(places) > 1 and row not in colliding and not is_local(row):
            listed = join_some(sorted(places), 3)
            notes.append(f"results of {row} in {len(places)} folders are one row: {listed}")
    return notes


def _read_json_results(file: Path) -> Iterator[Line]:
    """Yield the score of a result file of mteb, or those of a log of Inspect as JSON."""
    tree = read_json(file)
    if "eval" in tree and "samples" in tree:
        samples = tree["samples"] or []
        if not isinstance(samples, list):
            raise InputError("expected a list", file=file, key='key "samples"')
        yield from _inspect_lines(file, tree["eval"], samples)
    elif _is_mteb(tree):
        yield _read_mteb(file, tree)


def _is_mteb(tree: Mapping[str, Any]) -> bool:
    return "task_name" in tree and bool({"scores", "dataset_revision", "mteb_version"} & set(tree))


def _read_mteb(file: Path, tree: Mapping[str, Any]) -> Line:
    """Return the main score of a result file of mteb: the mean over its subsets."""
    task = tree["task_name"]
    if not isinstance(task, str):
        raise InputError("expected a text", file=file, key='key "task_name"')
    split, parts = _find_split(file, tree.get("scores"))
    values = []
    metrics: set[str] = set()
    subsets = set()
    for number, part in enumerate(parts):
        main_score = part.get("main_score")
        equal = set()
        for name, value in part.items():
            if name not in _NO_METRIC and value == main_score:
                equal.add(name)
        key = f'key "scores.{split}.main_score"'
        values.append(_check_main_score(main_score, equal, file, key))
        metrics = metrics & equal if number else equal
        subsets.add(str(part.get("hf_subset", "default")))
    subsets.discard("default")
    name_of_split = split
    if subsets:
        name_of_split += f" ({', '.join(sorted(subsets))})"
    return {
        "row": _row_of(file),
        "folder": _revision_of(file),
        "task": task,
        "score": sum(values) / len(values),
        "scale": "100" if _PERCENT & metrics else "1",
        "split": name_of_split,
        "revision": str(tree.get("dataset_revision") or ""),
        "version": str(tree.get("mteb_version") or ""),
        "metrics": " ".join(sorted(metrics)),
    }


def _find_split(file: Path, by_split: Any) -> tuple[str, list[dict[str, Any]]]:
    """Return the split that rows are compared by, test where there is one, and its subsets.

    Raises:
        InputError: there is none, or it is no list of tables.
    """
    if not isinstance(by_split, dict):
        raise InputError("expected a table with a list a split", file=file, key='key "scores"')
    usual = [name for name in _SPLITS if name in by_split]
    for split in (*usual, *by_split):
        parts = by_split[split]
        if not parts:
            continue
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            key = f'key "scores.{split}"'
            raise InputError("expected a list with a table a subset", file=file, key=key)
        return split, parts
    raise InputError('no "main_score" of a test split', file=file, key='key "scores"')


def _check_main_score(value: Any, metrics: set[str], file: Path, key: str) -> float:
    """Return the main score of a subset.

    Args:
        metrics: those that have its value: mteb does not store which one it is.

    Raises:
        InputError: it is no number, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        remedy = "run the task again, or remove the file"
        raise InputError(
            f"expected a number, not {value!r:.40}",
            file=file,
            key=key,
            remedy=remedy,
        )
    limit = 100 if _PERCENT & metrics else 1
    if not abs(value) <= limit:  # also NaN
        raise InputError(f"expected -{limit} to {limit}, not {value!r:.40}", file=file, key=key)
    return float(value)


def _revision_of(file: Path) -> str:
    parent = file.absolute().parent
    if parent.parent.name == "experiments":
        return parent.parents[1].name
    return parent.name


def _row_of(file: Path) -> str:
    """Return the model and settings that the path of a result file of mteb names.

    It is ORG__MODEL/REVISION/TASK.json, or ORG__MODEL/REVISION/experiments/SETTINGS/TASK.json.
    """
    parents = file.absolute().parents
    if parents[1].name == "experiments" and len(parents) > 3:
        return f"{_model_name(parents[3].name)} ({parents[0].name})"
    return _model_name(parents[1].name)


def _model_name(folder: str) -> str:
    return folder.replace("__", "/")


def _read_predictions(file: Path) -> Iterator[Line]:
    """Yield the examples of predictions of mteb (`prediction_folder`).

    They are scored by the data of their task, which is read from the hub.
    """
    from harness.tasks.mteb.examples import PAIR, read_examples

    name = file.name.removesuffix("_predictions.json")
    try:
        model = str(read_json(file)["mteb_model_meta"]["model_name"])
        task = _load_task(name)
        examples = read_examples(task, file.parent)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        message = f"not predictions of a task that mteb knows ({first_line(error)})"
        raise InputError(message, file=file) from None
    except (OSError, ValueError) as error:
        message = f"the data of {name} is needed to score predictions ({first_line(error)})"
        raise InputError(message, file=file) from None
    if examples is None:
        return
    if PAIR in set(examples["metric"]):
        main = PAIR
    else:
        main = task.metadata.main_score
    if main == PAIR:
        metric = "spearman"
    elif main.endswith("_ap"):
        metric = "ap"
    else:
        metric = ""
    for one in examples[examples["metric"] == main].to_dict("records"):
        yield {
            "row": model,
            "task": f"{name} {one['subset']}".strip(),
            "example": f"{one['split']} {one['example']}",
            "score": float(one["outcome"]),
            "target": float(one["target"]),
            "metric": metric,
        }


@cache
def _load_task(name: str) -> Any:
    """Return a task of mteb with its data."""
    import datasets
    import mteb

    task = mteb.get_task(name)
    had_bars = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        task.load_data()
    finally:
        if had_bars:
            datasets.enable_progress_bars()
    return task


def _read_lm_eval(file: Path) -> Iterator[Line]:
    """Yield the samples of a log of lm-evaluation-harness.

    The folder is the row; the metric is the first that each sample names. A task whose samples
    stand there once for each of its filters, as gsm8k's do, is a task a filter.
    """
    stem = file.stem.removeprefix("samples_")
    task = stem.rpartition("_")[0] or stem
    require_ordinary(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        place = f"{file}, line {number}"
        raise InputError("not UTF-8", file=place, remedy="save the file as UTF-8") from None

    samples = []
    # Not splitlines: text of samples may hold U+2028 and U+0085, which JSON does not escape.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            samples.append((number, _read_sample(file, number, line)))
    for number, sample in samples:
        yield {
            "row": _model_name(file.absolute().parent.name),
            "task": task,
            "filter": str(sample.get("filter") or "none"),
            "example": clean(sample["doc_id"]),
            "score": sample["score"],
            "metric": sample["metric"],
            "place": f"{file}, line {number}",
        }


def _read_sample(file: Path, number: int, line: str) -> dict[str, Any]:
    """Return a sample of lm-evaluation-harness, with its score under "score"."""
    try:
        sample = parse_json(line)
        named = [name for name in ("acc", "exact_match", "acc_norm") if name in sample]
        metric = (sample.get("metrics") or named)[0]
        score = float(sample[metric])
        if not math.isfinite(score) or sample["doc_id"] is None:
            raise ValueError(f"{metric} is {score}, doc_id {sample['doc_id']}")
        return {
            **sample,
            "doc_id": sample["doc_id"],
            "metric": str(metric),
            "score": score,
        }
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        message = f'no sample with "doc_id" and a metric ({first_line(error)})'
        raise InputError(message, file=file, line=number) from None


def _read_inspect(file: Path) -> Iterator[Line]:
    """Yield the samples of a log of Inspect in its own format, a zip archive."""
    try:
        with zipfile.ZipFile(file) as archive:
            _check_sizes(file, archive)
            header = parse_json(archive.read("header.json").decode())
            for name in archive.namelist():
                if name.startswith("samples/") and name.endswith(".json"):
                    sample = parse_json(archive.read(name).decode())
                    yield from _inspect_lines(file, _header_of(file, header), [sample])
    except (
        OSError,
        KeyError,
        ValueError,
        RuntimeError,  # encrypted
        NotImplementedError,  # another compression
        RecursionError,
        EOFError,
        struct.error,
        lzma.LZMAError,
        zlib.error,
        zipfile.BadZipFile,
    ) as error:
        raise InputError(f"not a log of Inspect ({first_line(error)})", file=file) from None


def _check_sizes(file: Path, archive: zipfile.ZipFile) -> None:
    """Check that a log can be read: a small archive may claim to be endless."""
    sizes = [member.file_size for member in archive.infolist()]
    largest = max(sizes, default=0)
    total = sum(sizes)
    if largest > _LARGEST_SAMPLE or total > LARGEST:
        message = f"would be {total >> 20:,} MiB when unpacked, one entry {largest >> 20:,} MiB"
        raise InputError(message, file=file, remedy="export fewer samples")


def _header_of(file: Path, header: Any) -> Any:
    if not isinstance(header, dict):
        raise InputError('no key "eval"', file=file, key="header.json")
    return header.get("eval")


def _inspect_lines(file: Path, header: Any, samples: list[Any]) -> Iterator[Line]:
    """Yield the first score of each sample."""
    if not isinstance(header, dict) or not all(
        isinstance(header.get(key), str) for key in ("model", "task")
    ):
        raise InputError('expected "model" and "task"', file=file, key='key "eval"')
    for number, sample in enumerate(samples, 1):
        if not isinstance(sample, dict) or "id" not in sample:
            raise InputError('expected a table with "id"', file=file, key=f"sample {number}")
        scores = sample.get("scores") or {}
        if not isinstance(scores, dict):
            key = f"sample {sample['id']}"
            raise InputError('expected a table of "scores"', file=file, key=key)
        for scorer, score in list(scores.items())[:1]:
            key = f'sample {sample["id"]}: scorer "{scorer}"'
            if isinstance(score, dict):
                value = score.get("value")
            else:
                value = None
            if isinstance(value, str):
                value = _GRADES.get(value)
            if not isinstance(value, bool | int | float) or not abs(value) <= LARGEST_SCORE:
                raise InputError("expected a number or a grade", file=file, key=key)
            yield {
                "row": header["model"],
                "task": header["task"],
                "seed": str(sample.get("epoch", 1)),
                "example": clean(sample["id"]),
                "score": float(value),
            }
