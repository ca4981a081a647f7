"""The conditions under which rows are trained and selected, of a plan and of records, and how rows differ in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from harness import registry
from harness.errors import InputError
from harness.runs.rows import length_of

if TYPE_CHECKING:
    from harness.results.record import Record
    from harness.runs.plan import Job, Plan
    from harness.runs.rows import Row

NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Conditions:
    """The conditions of a row on one base model, or of a run; None where a condition does not apply.

    Attributes:
        by_steps: is it trained by steps? Else it has no batches, rates and evaluations.
        corpus, dev: as in a record.
        steps, planned: training steps made (or to be made) and planned.
        seen: items of the text in all steps.
        batch: items of a step.
        evaluated: steps after which the dev set is evaluated.
        rate_from: where the learning rate comes from.
        device: the name of the device; None for a plan.
    """

    label: str
    base_model: str
    method: str
    config: Mapping[str, Any]
    by_steps: bool
    corpus: Mapping[str, Any] | None = None
    dev: Mapping[str, Any] | None = None
    steps: int | None = None
    planned: int | None = None
    seen: int | None = None
    batch: int | None = None
    evaluated: tuple[int, ...] | None = None
    rate_from: str | None = None
    precision: str | None = None
    device: str | None = None


def planned_conditions(plan: Plan, job: Job) -> Conditions:
    """The conditions of a planned run."""
    row, e = plan.row_of(job), plan.experiment
    corpus = plan.corpus(row)
    length = length_of(row, corpus) if not job.spec.missing else None
    config = row.config.model_dump(mode="json")
    dev = job.spec.dev
    return Conditions(
        row.label,
        job.spec.base_model,
        row.method.name,
        config,
        length is not None,
        corpus=corpus.describe() if corpus is not None else None,
        dev=dev,
        steps=length.steps if length is not None else None,
        planned=length.steps if length is not None else None,
        seen=length.seen if length is not None else None,
        batch=length.batch if length is not None else None,
        evaluated=evaluations(config, length.steps) if length is not None and dev is not None else None,
        rate_from=rate_origin(plan, row),
        precision=e.precision if "learning_rate" in config else None,
    )


def rate_origin(plan: Plan, row: Row, tuned: Mapping[str, Any] | None = None) -> str | None:
    """Where the learning rate of a row comes from; None where it has none, or the row is not in the file.

    Args:
        tuned: what `--tune` found, as the comparison's file has it.
    """
    entry = next((one for one in plan.experiment.methods if (one.name or one.method) == row.label), None)
    if entry is None or row.fault or not hasattr(row.config, "learning_rate"):
        return None
    for search in (tuned or {}).get("rows", ()):
        if search["label"] == row.label and "learning_rate" in search["values"]:
            return f"searched: {search['trials']} trials on the dev set"
    if "learning_rate" in entry.config:
        return "given in the file"
    if "learning_rate" in plan.experiment.shared:
        return "given for all rows"
    family = entry.family or plan.experiment.family
    recipe = row.method.recipe(entry.preset, family, base_model=row.base_model) if entry.preset else None
    if recipe is None or "learning_rate" not in recipe.values:
        return "default of the method"
    return re.sub(r" \([^()]*\)$", "", recipe.source) or f"preset {entry.preset}"  # without the file in brackets


def evaluations(config: Mapping[str, Any], steps: int) -> tuple[int, ...] | None:
    """The steps after which the training loop evaluates the dev set; None where the configuration does not say."""
    every = config.get("eval_every")
    return tuple(dict.fromkeys((*range(0, steps, every), steps))) if every else None


def recorded_conditions(record: Record, log: Sequence[Mapping[str, Any]], rate_from: str | None) -> Conditions:
    """The conditions of a run, from its record and training log; `rate_from` is in the file of its comparison."""
    config, training = record.config, record.training
    by_steps = "steps" in training or ("learning_rate" in config and "batch_size" in config)
    seen = record.cost.get("corpus_sentences_seen")
    batch = config.get("batch_size")
    count = (record.corpus or {}).get("count")
    if isinstance(batch, int) and isinstance(count, int):
        batch = min(batch, count)  # as `BatchStream`
    evaluated = tuple(line["step"] for line in log if line.get("kind") == "dev") or None
    if evaluated is None and record.dev and "steps" in training:  # its log is lost
        evaluated = evaluations(config, training["steps"])
    precision = training.get("precision")
    return Conditions(
        record.row,
        record.base_model,
        record.method,
        config,
        by_steps,
        corpus=record.corpus,
        dev=record.dev,
        steps=training.get("steps") if by_steps else None,
        planned=training.get("planned_steps", training.get("steps")) if by_steps else None,
        seen=round(seen) if by_steps and seen is not None else None,
        batch=batch if by_steps else None,
        evaluated=evaluated,
        rate_from=rate_from or NOT_RECORDED if "learning_rate" in config else None,
        precision=precision if isinstance(precision, str) else None,
        device=record.environment.get("device_name"),
    )


@dataclass(frozen=True)
class Column:
    """A column of the table of differences.

    Attributes:
        of: its text for a row or run; None where it does not apply.
        why: why a difference usually matters; empty where it need not.
        alike: whether runs with different texts differ in nothing that matters.
        within: does it also count as a difference when the runs of one row differ?
    """

    key: str
    title: str
    of: Callable[[Conditions], str | None]
    why: str = ""
    alike: Callable[[Sequence[Conditions]], bool] = lambda runs: False
    within: bool = False


def _number(value: float | None) -> str | None:
    """A count or a rate."""
    if value is None:
        return None
    if isinstance(value, int):
        return f"{value:,}"
    mantissa, _, power = f"{value:.4e}".partition("e")
    return f"{value:g}" if value >= 1e-3 else f"{float(mantissa):g}e{int(power)}"


def _seen(row: Conditions) -> str | None:
    if not row.by_steps:
        return None
    return NOT_RECORDED if row.seen is None else f"{row.seen:,}"


def _pooling(row: Conditions) -> str | None:
    pooling = row.config.get("pooling")
    if row.config.get("parts"):
        return "that of its parts"
    return str(pooling) if pooling not in (None, "none") else None


def _length(row: Conditions) -> str | None:
    if "max_length" not in row.config or row.config.get("parts"):
        return None
    return "all" if row.config["max_length"] is None else str(row.config["max_length"])


def _text(row: Conditions) -> str | None:
    if not row.corpus:
        return None
    count = row.corpus.get("count")
    size = f"{count:,} " if isinstance(count, int) else ""
    return f"{row.corpus.get('name') or row.corpus.get('uri')}: {size}{row.corpus.get('kind', 'entries')}"


def _dev(row: Conditions) -> str | None:
    if not row.by_steps:
        return None
    if not row.dev:
        return "none: the last weights"
    part = f", {row.dev['pairs']:,} of its pairs" if "pairs" in row.dev else ""
    return f"{row.dev['task']} ({row.dev['source']}){part}"


def _steps(row: Conditions) -> str | None:
    if not row.by_steps:
        return None
    if row.steps is None:
        return NOT_RECORDED
    early = row.planned is not None and row.planned != row.steps
    return f"{row.steps:,} of {row.planned:,}" if early else f"{row.steps:,}"


def _prompts(row: Conditions) -> str:
    """Prompts by kind of task."""
    given = row.config.get("prompts")
    if not isinstance(given, dict):
        return "the model's own" if given else "none"
    return ", ".join(f'{key} "{text}"' for key, text in given.items())


def _within_a_batch(runs: Sequence[Conditions]) -> bool:
    """Do the items seen differ by less than a batch?"""
    seen = [run.seen for run in runs if run.seen is not None]
    return len(seen) == len(runs) and max(seen) - min(seen) <= max(run.batch or 0 for run in runs)


def _of_one_kind(runs: Sequence[Conditions]) -> bool:
    """Do all rates come from papers, or all from a search, the file, or a default?"""
    kinds = ("searched", "default", "given", "ours", "for rehearsals", NOT_RECORDED)
    said = [run.rate_from for run in runs if run.rate_from is not None]
    return len({next((kind for kind in kinds if text.startswith(kind)), "paper") for text in said}) < 2


def _schedule(row: Conditions) -> str | None:
    """Warm-up and decay, in the words of the options."""
    c = row.config
    if not row.by_steps or "warmup" not in c:
        return None
    warm = f"warm-up {c['warmup_steps']:,} steps" if c.get("warmup_steps") else f"warm-up {100 * c['warmup']:g} %"
    decay = c.get("decay", c.get("lr_schedule"))
    if decay is None:
        return f"{warm}, {'linear decay' if _is_usual(row.method) else 'its own schedule'}"
    words = {True: "linear decay", False: "constant"}
    return f"{warm}, {words[decay] if isinstance(decay, bool) else f'decay {decay}'}"


def _is_usual(method: str) -> bool:
    """Does a method use the schedule of the training loop?"""
    from harness.training import TrainedMethod

    try:
        return getattr(registry.load(registry.METHODS, method), "schedule", None) is TrainedMethod.schedule
    except InputError:
        return True


def _view(row: Conditions) -> str | None:
    """The names of views with their rates; of a method without a choice of views, its dropout rates."""
    c = row.config
    if not row.by_steps:
        return None
    if "view" not in c:
        rates = [c[key] for key in ("dropout", "dropout_a", "dropout_b") if key in c]
        return f"dropout {_rates(rates)}" if rates and not any(isinstance(rate, bool) for rate in rates) else None
    said = []
    for name in str(c["view"]).split("+"):
        rates = [c.get(name), *([c["dropout_b"]] if name == "dropout" and c.get("dropout_b") else [])]
        said.append(f"{name} {_rates(rates)}" if name in c else name)
    return " + ".join(said)


def _rates(rates: Sequence[Any]) -> str:
    return " and ".join("as in the checkpoint" if rate is None else f"{rate:g}" for rate in rates)


def _evaluations(row: Conditions) -> str | None:
    """How many, how far apart, and what else decides which weights are kept."""
    c = row.config
    if not row.by_steps or (row.evaluated is None and row.dev is None):
        return None
    more = [f"patience {c['patience']}"] if c.get("patience") else []
    more += ["the last weights are kept"] if c.get("select") == "last" else []
    if row.evaluated is None:
        return NOT_RECORDED
    return ", ".join([describe_steps(row.evaluated), *more])


def describe_steps(steps: Sequence[int]) -> str:
    """Steps as "9, every 125", the untrained weights and the last step included."""
    gaps = [b - a for a, b in pairwise(steps)]
    if not gaps:
        return f"{len(steps)}"
    if len(gaps) == 1:
        return f"{len(steps)}, before and after"
    return f"{len(steps)}, every {Counter(gaps[:-1]).most_common(1)[0][0]:,}"  # the last one may come early


COLUMNS = (
    Column("base", "Base model", lambda row: row.base_model,
         "Base model: only rows of one base model can be compared."),
    Column("pooling", "Pooling", _pooling,
         "Pooling: it changes the scores of an untrained network by many points; compare gains over each row's start."),
    Column("length", "Tokens", _length),
    Column("prompts", "Prompts", _prompts,
         "Prompts: a model that was trained with prompts scores lower without them."),
    Column("text", "Text", _text, "Text: more of it, or text closer to the tasks, can be worth more than a method."),
    Column("steps", "Training steps", _steps, "Training steps: a row that trains longer may be ahead for that alone."),
    Column("seen", "Items seen", _seen, "Items seen: with equal training steps, larger batches see more text.",
         alike=_within_a_batch),
    Column("batch", "Batch", lambda row: _number(row.batch)),
    Column("rate", "Learning rate", lambda row: _number(row.config.get("learning_rate"))),
    Column("rate_from", "Origin of the rate", lambda row: row.rate_from,
         "Origin of the rate: a searched learning rate favours its row over one with a default.",
         alike=_of_one_kind),
    Column("schedule", "Schedule", _schedule),
    Column("view", "Views", _view),
    Column("evaluations", "Dev evaluations", _evaluations,
         "Dev evaluations: the best of many checkpoints is higher than the best of few."),
    Column("dev", "Selected on", _dev),
    Column("bucket", "Bucket", lambda row: _number(row.config.get("bucket"))),
    Column("precision", "Precision", lambda row: row.precision,
         "Precision: rounding differs between precisions; such differences are not due to methods or seeds.",
         within=True),
    Column("device", "Device", lambda row: row.device,
         "Device: rounding and seconds differ between devices.",
         within=True),
    Column("train_length", "Train length", lambda row: _number(row.config.get("train_length"))),
)  # fmt: skip
"""In the order of tables."""


@dataclass(frozen=True)
class Differences:
    """The columns in which rows differ.

    Attributes:
        rows: (label, base model) of each.
        columns: those with a difference, or with something that is not recorded for some rows only; the marked first.
        texts: column's key -> a text for each row; "" where it does not apply.
        marked: keys of the columns whose difference usually matters, between rows of one base model.
        unrecorded: titles of the columns that are not recorded.
    """

    rows: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    texts: Mapping[str, tuple[str, ...]]
    marked: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = field(default=())

    @property
    def marked_columns(self) -> list[Column]:
        """The marked columns."""
        return [column for column in self.columns if column.key in self.marked]


def planned_differences(plan: Plan) -> Differences:
    """Those between the rows of a plan that can be run here."""
    rows: dict[tuple[str, str], list[Conditions]] = {}
    for job in plan.jobs:
        key = job.row, job.spec.base_model
        if key not in rows and not job.spec.missing:
            rows[key] = [planned_conditions(plan, job)]
    return find_differences(rows)


def find_differences(rows: Mapping[tuple[str, str], Sequence[Conditions]]) -> Differences:
    """Those between rows: (label, base model) -> the conditions of its runs, or of its plan."""
    columns, texts, marked, unrecorded = [], {}, [], []
    for column in COLUMNS:
        by_row = {key: [text for run in runs if (text := column.of(run)) is not None] for key, runs in rows.items()}
        values = {key: join_texts(some) for key, some in by_row.items() if some}
        different = set(values.values())
        if different == {NOT_RECORDED}:
            unrecorded.append(column.title)
        mixed = column.within and any(len(set(some)) > 1 for some in by_row.values())
        if len(different) < 2 and not mixed:
            continue
        columns.append(column)
        texts[column.key] = tuple(values.get(key, "") for key in rows)
        if mixed or (column.why and any(_matters(column, rows, some) for some in _comparable(column, values))):
            marked.append(column.key)
    columns.sort(key=lambda column: column.key not in marked)
    return Differences(tuple(rows), tuple(columns), texts, tuple(marked), tuple(unrecorded))


def _comparable(column: Column, values: Mapping[tuple[str, str], str]) -> list[dict[tuple[str, str], str]]:
    """Values by base model, as rows are compared; of the base models themselves, all together."""
    if column.key == "base":
        return [dict(values)]
    return [{key: text for key, text in values.items() if key[1] == base} for base in {base for _, base in values}]


def _matters(
    column: Column, rows: Mapping[tuple[str, str], Sequence[Conditions]], values: Mapping[tuple[str, str], str]
) -> bool:
    return len(set(values.values())) > 1 and not column.alike([run for key in values for run in rows[key]])


def join_texts(texts: Iterable[str]) -> str:
    """The texts of the runs of a row: one where they agree."""
    each = list(Counter(texts))
    return " / ".join(each) if len(each) < 4 else f"{each[0]} / ... / {each[-1]}"


def summarise_differences(plan: Plan) -> str:
    """One line on differences that usually matter; empty where there are none."""
    found = planned_differences(plan).marked_columns
    if not found:
        return ""
    return f"rows differ in {', '.join(column.title.lower() for column in found)} (details: --dry-run, report)"
