"""The settings under which rows are trained and selected, of a plan and of records, and how rows
differ in them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config import drop_unset
from harness.files.model_names import MTEB_MODEL, UNKNOWN, kind_of_model
from harness.files.reading import read_toml
from harness.registry import COMMAND
from harness.results.comparison import Tuning
from harness.results.record import Record
from harness.results.spec import RunSpec
from harness.runs.experiment import Entry, Experiment
from harness.runs.plan import Job, Plan
from harness.runs.rows import Row, preset_of

Settings = dict[str, Any]
"""The settings of a run by the keys of `COLUMNS`; without those that do not apply to it."""


@dataclass(frozen=True)
class SettingColumn:
    """A column of the table of differences.

    Attributes:
        key: of `Settings`; that of the configs for a setting that methods share.
        why: why a difference usually matters; empty where it need not.
    """

    key: str
    title: str
    why: str = ""


COLUMNS = tuple(
    SettingColumn(key, **entry)
    for key, entry in read_toml(Path(__file__).with_suffix(".toml")).items()
)
"""In the order of tables."""


def list_planned_settings(plan: Plan, job: Job) -> Settings:
    """The settings of a planned run."""
    row = plan.row_of(job)
    spec = job.spec
    length = row.length(plan.corpus(row))
    if length is None:
        trained = {}
    else:
        trained = {"steps": length.steps, "seen": length.seen}
    return _settings(spec, trained, rate_from=rate_origin(plan, row), precision=spec.precision)


def list_recorded_settings(
    record: Record,
    log: Sequence[Mapping[str, Any]],
    rate_from: str | None,
) -> Settings:
    """The settings of a run, from its record and training log; `rate_from` is in the file of its
    comparison.
    """
    training = record.training
    seen = record.cost.get("corpus_sentences_seen")
    steps = training.get("steps")
    planned = training.get("planned_steps")
    if steps is None:
        trained = {}
    else:
        trained = {"steps": steps, "seen": None if seen is None else round(seen)}
    given = {"rate_from": rate_from, "precision": training.get("precision")}
    scored = {line["step"] for line in log if line.get("kind") == "dev"}
    if scored:
        evaluations = len(scored)
        given["evaluations"] = evaluations
    if planned not in (None, steps):
        given["steps"] = f"{steps:,} of {planned:,}"
    given["device"] = record.environment.get("device_name")
    return _settings(record.spec, trained, **given)


def _settings(spec: RunSpec, trained: Mapping[str, Any], **given: Any) -> Settings:
    """The settings that a specification says, those of a training by steps, and others."""
    config = spec.config
    text = spec.corpus
    dev = spec.dev
    settings: Settings = {column.key: config.get(column.key) for column in COLUMNS}
    if spec.finished_model:
        settings["finished_model"] = spec.base_model
    else:
        settings["base_model"] = spec.base_model
    settings["max_length"] = config.get("max_length") or "all"
    settings |= {"prompts": config.get("prompts") or "none", **trained}
    settings["dtype"] = config.get("dtype", "fp32")
    if config.get("pooling") == "none":
        del settings["pooling"]
    if kind := _kind_of_vectors(config):
        settings |= dict.fromkeys(("pooling", "max_length", "dtype"), UNKNOWN)
        settings["loop"] = f"own vectors ({kind}): all else unknown"
        if kind == MTEB_MODEL:
            settings["prompts"] = "of its makers"
    if text is not None:
        settings["text"] = _describe_text(text)
        settings["loop"] = "shared"
        if spec.method == COMMAND:
            settings["loop"] = "own loop: selection, batches and budget unknown"
    if trained and dev is not None:
        settings["dev"] = f"{dev['task']} ({dev['source']})"
        if "pairs" in dev:
            settings["dev"] += f", {dev['pairs']} pairs"
        every = config.get("eval_every")
        if every:
            # the untrained weights and the last step are evaluated too
            between = range(0, trained["steps"], every)
            settings["evaluations"] = len(between) + 1
    return drop_unset(settings | given)


def _describe_text(text: Mapping[str, Any]) -> str:
    """Return a training text as a cell shows it: its name, how many items, who wrote it."""
    name = text.get("name") or text["uri"]
    count = text.get("count", 0)
    kind = text.get("kind", "entries")
    shown = f"{name}: {count:,} {kind}"
    if text.get("written_by"):
        shown += f", written by {text['written_by']}"
    return shown


def _kind_of_vectors(config: Mapping[str, Any]) -> str:
    """Return what kind of outside model a row has; empty for rows of weights."""
    models = config.get("model_by_seed") or [config.get("model")]
    for name in models:
        kind = kind_of_model(str(name))
        if kind:
            return kind
    return ""


def rate_origin(plan: Plan, row: Row, tuned: Tuning | None = None) -> str | None:
    """Where the learning rate of a row comes from; None where it has none, or the row is not in the
    file.

    Args:
        tuned: what `--tune` found.
    """
    if row.fault or not hasattr(row.config, "learning_rate"):
        return None
    entry = plan.entries.get(row.label)
    if entry is None:
        return None
    for search in tuned.rows if tuned is not None else ():
        if search.label == row.label and "learning_rate" in search.values:
            return f"searched: {search.trials} trials on the dev set"
    if "learning_rate" in entry.config:
        return "given in the file"
    if "learning_rate" in plan.experiment.shared:
        return "given for all rows"
    return _preset_origin(plan.experiment, entry, row)


def _preset_origin(experiment: Experiment, entry: Entry, row: Row) -> str:
    """Return where a learning rate comes from that is neither searched nor given."""
    preset = preset_of(experiment, entry, row.method)
    if not preset:
        return "default of the method"
    family = entry.family or experiment.family
    recipe = row.method.recipe(preset, family, base_model=row.base_model)
    if "learning_rate" not in recipe.values:
        return "default of the method"
    # without the file in brackets
    source = re.sub(r" \([^()]*\)$", "", recipe.source)
    return source or f"preset {preset}"


@dataclass(frozen=True)
class Differences:
    """The columns in which rows differ.

    Attributes:
        rows: (label, base model) of each.
        columns: those with a difference; the marked first.
        texts: column's key -> a text for each row; "" where it does not apply.
        marked: the columns whose difference usually matters, between rows of one base model.
    """

    rows: tuple[tuple[str, str], ...]
    columns: tuple[SettingColumn, ...]
    texts: Mapping[str, tuple[str, ...]]
    marked: tuple[SettingColumn, ...] = ()


def find_planned_differences(plan: Plan) -> Differences:
    """Those between the rows of a plan that can be run here."""
    jobs = {}
    for job in reversed(plan.jobs):
        if not job.spec.missing:
            jobs[(job.row, job.spec.base_model)] = job
    return find_differences(
        {key: [list_planned_settings(plan, job)] for key, job in reversed(jobs.items())}
    )


def find_differences(rows: Mapping[tuple[str, str], Sequence[Settings]]) -> Differences:
    """Those between rows: (label, base model) -> the settings of its runs, or of its plan."""
    every: list[Settings] = []
    for runs in rows.values():
        every.extend(runs)
    columns = []
    for column in COLUMNS:
        texts_found = set()
        for run in every:
            if column.key in run:
                texts_found.add(str(run[column.key]))
        if len(texts_found) > 1:
            columns.append(column)
    groups = {}
    for column in columns:
        groups[column.key] = [_runs_on(base, rows) for _, base in rows]
    groups["base_model"] = [every]
    marked = []
    for column in columns:
        if not column.why:
            continue
        if any(_differ_much(column.key, runs) for runs in groups[column.key]):
            marked.append(column)
    columns.sort(key=lambda column: column not in marked)
    texts = {}
    for column in columns:
        of_rows = [_text(column.key, runs) for runs in rows.values()]
        texts[column.key] = tuple(of_rows)
    return Differences(
        tuple(rows),
        tuple(columns),
        texts,
        tuple(marked),
    )


def _runs_on(base_model: str, rows: Mapping[tuple[str, str], Sequence[Settings]]) -> list[Settings]:
    """Return the settings of all runs of the rows on a base model."""
    found: list[Settings] = []
    for (_, base), runs in rows.items():
        if base == base_model:
            found.extend(runs)
    return found


def _differ_much(key: str, runs: Sequence[Settings]) -> bool:
    """Do runs differ in more than a batch of items, or than the paper that a learning rate comes
    from?
    """
    values = [run[key] for run in runs if key in run]
    if key == "seen" and values:
        largest_batch = max(run.get("batch_size", 0) for run in runs)
        span = max(values) - min(values)
        return bool(span > largest_batch)
    if key == "rate_from":
        values = [_kind_of_rate(value) for value in values]
    distinct = set(map(str, values))
    return len(distinct) > 1


def _kind_of_rate(origin: str) -> str:
    """Return the kind of what a learning rate comes from."""
    for kind in ("searched", "default", "given", "ours", "for rehearsals"):
        if origin.startswith(kind):
            return kind
    return "paper"


def _text(key: str, runs: Sequence[Settings]) -> str:
    """The setting of a row in words: one text where its runs agree."""
    words = []
    for run in runs:
        if key in run:
            words.append(_words(run[key]))
    texts = list(dict.fromkeys(words))
    if len(texts) < 4:
        return " / ".join(texts)
    first, *_, last = texts
    return f"{first} / ... / {last}"


def _words(value: Any) -> str:
    if isinstance(value, dict):  # prompts by kind of task
        parts = [f'{key} "{text}"' for key, text in value.items()]
        return ", ".join(parts)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def summarise_differences(plan: Plan) -> str:
    """One line on differences that usually matter; empty where there are none."""
    marked = find_planned_differences(plan).marked
    return ", ".join(column.title.lower() for column in marked)
