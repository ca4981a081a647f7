"""What of a record a tracking service shows: parameters, and numbers by step. Knows no service."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import stdev
from typing import Any, Literal

from harness.errors import InputError
from harness.files.hashing import content_id
from harness.files.printable import markdown_text
from harness.results.record import Record, Score
from harness.results.run_folder import RunFolder
from harness.seeds import seed_fields

logger = logging.getLogger(__name__)

MORE, SPREAD = " more", " sd"  # after the name of a suite: what else is known of its tasks, deviations over seeds
# MLflow draws groups in the order of their names: curves and costs after most scores.
CURVES, TRAINING, USAGE = ("train", "train dev", "train early"), "training", "usage"


def row_params(record: Record) -> dict[str, Any]:
    """What all seeds of a row share: method, base model, data, the method's config as `config.a.b`, and which streams
    of random numbers are held."""
    config = {name: value for name, value in record.config.items() if name != "seed"}
    return {
        "row": record.row,
        "method": record.method,
        "base_model": record.base_model,
        "supervision": record.supervision,
        **_flat({"corpus": record.corpus or {}, "dev": record.dev or {}, "config": config}),
        **{name: value for name, value in seed_fields(record.drawn).items() if name != "seed"},
    }


def seed_params(record: Record) -> dict[str, Any]:
    """What belongs to one run: its seed, and where it ran."""
    environment = record.environment
    precision = environment.get("precision", "")
    shown = {
        "device": environment.get("device", ""),
        "device_name": environment.get("device_name", ""),
        "precision": precision.get("choice", "") if isinstance(precision, Mapping) else precision,
        "versions": environment.get("versions", {}),
    }
    return {"seed": record.seed, **{name: value for name, value in _flat(shown).items() if value != ""}}


def numbers(record: Record, folder: RunFolder) -> dict[tuple[str, int], float]:
    """(name, step) -> value: `train/loss`, `train dev/spearman` by step; `sts/STS12`, `transfer/MR`; `usage/...`.

    The first score of a task has the name of its suite and task, and so a chart of its own in the group of the suite;
    what else is known of a task stands in a group beside: `sts more/STS12.spearman.mean`.
    """
    metrics: dict[tuple[str, int], float] = {}
    try:
        curve = folder.curves()
    except InputError as error:  # one damaged file is no reason to send nothing of all the others
        logger.warning("%s", error)
        curve = []
    for line in curve:
        group = line["kind"] if line["kind"] == "train" else f"train {line['kind']}"
        for name, value in line.items():
            if name not in ("step", "kind") and _is_number(value):
                metrics[_name(f"{group}/{name}"), line["step"]] = value  # a step repeated by a resume: the last
    for name, score in scores_by_name(record).items():
        metrics[name, 0] = score.value
    for name, value in _flat({USAGE: record.cost, TRAINING: record.training}, separator="/").items():
        if _is_number(value):
            metrics[_name(name), 0] = value
    return metrics


def scores_by_name(record: Record) -> dict[str, Score]:
    """The scores of a record under the names that `numbers` gives them.

    A task's first score (over all pairs, and not of a dev set, where there is such a one) stands for it. The source is
    named where a record has a task from several.
    """
    sources = defaultdict(set)
    for score in record.scores:
        sources[score.suite, score.task].add(score.source)
    named: dict[str, Score] = {}
    rest: list[Score] = []
    for score in record.scores:
        name = _task_name(score, sources)
        if name in named or score.split == "dev" or score.aggregation not in ("", "all"):
            rest.append(score)
        else:
            named[name] = score
    for score in rest:
        name = _task_name(score, sources)
        if name not in named:
            named[name] = score
            continue
        split = "" if score.split == "test" else score.split
        more = ".".join(part for part in (score.metric, score.aggregation, split) if part)
        suite, _, task = name.partition("/")
        named[_name(f"{suite}{MORE}/{task}.{more}")] = score
    return named


def _task_name(score: Score, sources: Mapping[tuple[str, str], set[str]]) -> str:
    source = f" {score.source}" if len(sources[score.suite, score.task]) > 1 else ""
    return _name(f"{score.suite}/{score.task}{source}")


def last(metrics: Mapping[tuple[str, int], float]) -> dict[str, float]:
    """Name -> value at the last step."""
    return {name: value for (name, _), value in sorted(metrics.items(), key=lambda point: point[0][1])}


def means(done: list[dict[str, float]]) -> dict[tuple[str, int], float]:
    """Of a row's finished seeds, given by name, with standard deviations of scores; curves belong to their seeds alone.

    A number that some seeds lack is the mean over those that have it.
    """
    found: dict[tuple[str, int], float] = {("seeds", 0): len(done)}
    for name in dict.fromkeys(name for values in done for name in values):
        group, _, rest = name.partition("/")
        if group in CURVES:
            continue
        values = [run[name] for run in done if name in run]
        found[name, 0] = sum(values) / len(values)
        if len(values) > 1 and rest and group not in (USAGE, TRAINING):
            found[f"{group}{SPREAD}/{rest}", 0] = stdev(values)
    return found


def row_name(record: Record) -> str:
    """The row and the last part of its base model's name, short enough for a column: "SimCSE (mini-bert)"."""
    return f"{record.row} ({re.split('[/:]', record.base_model.rstrip('/'))[-1]})"


def description(record: Record) -> str:
    """What a row is, in Markdown: method, start, text, what chose its weights."""
    lines = [f"**{markdown_text(record.row)}**: `{record.method}` on {markdown_text(record.base_model)}"]
    if corpus := record.corpus:
        lines.append(f"text: {markdown_text(str(corpus.get('uri')))} ({corpus.get('count')} {corpus.get('kind')})")
    labels = {"untrained": "nothing is learnt", "transductive": "fitted to the text of the test sets, without labels"}
    lines.append(f"labels: {labels.get(record.supervision, record.supervision)}")
    if dev := record.dev:
        lines.append(f"weights selected on: {markdown_text(str(dev.get('task')))}, dev part")
    lines.append(f"made by: `{record.command}`" if record.command else "")
    return "\n\n".join(line for line in lines if line)


@dataclass(frozen=True)
class DataSet:
    """Text that a run read: `digest` is a hash of it, `source` says where it is from, `use` what it was for."""

    name: str
    digest: str
    source: str
    use: Literal["training", "selection", "evaluation"]


def data_sets(record: Record) -> list[DataSet]:
    """The corpus, the dev set, and what the scores of each task are of."""
    found: dict[tuple[str, str], DataSet] = {}

    def add(name: str, digest: object, source: str, use: Literal["training", "selection", "evaluation"]) -> None:
        if name and digest:
            found.setdefault((name, str(digest)), DataSet(name, str(digest), source, use))

    if corpus := record.corpus:
        add(str(corpus.get("uri", "")), corpus.get("sha256"), str(corpus.get("uri", "")), "training")
    if dev := record.dev:
        add(f"{dev.get('task')} dev", dev.get("sha256"), str(dev.get("source", "")), "selection")
    for score in record.scores:
        if score.split == "dev":  # of a task that is scored on its test part: not read apart from it
            continue
        defined = record.protocols.get(score.comparable) or record.protocols.get(score.protocol) or {}
        data = defined.get("data")
        digest = content_id(data) if isinstance(data, Mapping) else data
        source = " ".join(data) if isinstance(data, Mapping) else score.source
        add(f"{score.task} {score.split}", digest, source, "evaluation")
    return list(found.values())


def _flat(values: Mapping[str, Any], prefix: str = "", separator: str = ".") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}{separator}", separator)
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _name(name: str) -> str:
    """A metric name MLflow takes: letters, digits and `_-. :/`."""
    return re.sub(r"[^\w\-. :/]", "_", name)[:250]
