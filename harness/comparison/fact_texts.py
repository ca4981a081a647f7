"""The columns in which rows of a comparison can differ: what each says of a row, and why it matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness import registry
from harness.comparison.row_facts import NOT_RECORDED, RowFacts
from harness.errors import InputError


@dataclass(frozen=True)
class Fact:
    """A column.

    Attributes:
        of: what it says of a row or run; None: that has no such thing.
        why: why a difference usually matters; empty where it need not.
        alike: whether runs that differ in words do so in nothing that matters.
        within: is it also a difference when runs of one row differ in it, and all rows alike?
    """

    key: str
    title: str
    of: Callable[[RowFacts], str | None]
    why: str = ""
    alike: Callable[[Sequence[RowFacts]], bool] = lambda runs: False
    within: bool = False


def _number(value: float | None) -> str | None:
    """A count or a rate."""
    if value is None:
        return None
    if isinstance(value, int):
        return f"{value:,}"
    mantissa, _, power = f"{value:.4e}".partition("e")
    return f"{value:g}" if value >= 1e-3 else f"{float(mantissa):g}e{int(power)}"


def _seen(row: RowFacts) -> str | None:
    if not row.by_updates:
        return None
    return NOT_RECORDED if row.seen is None else f"{row.seen:,}"


def _pooling(row: RowFacts) -> str | None:
    pooling = row.config.get("pooling")
    if row.config.get("parts"):
        return "that of its parts"
    return str(pooling) if pooling not in (None, "none") else None


def _length(row: RowFacts) -> str | None:
    if "max_length" not in row.config or row.config.get("parts"):
        return None
    return "all" if row.config["max_length"] is None else str(row.config["max_length"])


def _text(row: RowFacts) -> str | None:
    if not row.corpus:
        return None
    count = row.corpus.get("count")
    size = f"{count:,} " if isinstance(count, int) else ""
    return f"{row.corpus.get('name') or row.corpus.get('uri')}: {size}{row.corpus.get('kind', 'entries')}"


def _dev(row: RowFacts) -> str | None:
    if not row.by_updates:
        return None
    if not row.dev:
        return "nothing: the last weights"
    part = f", {row.dev['pairs']:,} of its pairs" if "pairs" in row.dev else ""
    return f"{row.dev['task']} ({row.dev['source']}){part}"


def _updates(row: RowFacts) -> str | None:
    if not row.by_updates:
        return None
    if row.updates is None:
        return NOT_RECORDED
    early = row.planned is not None and row.planned != row.updates
    return f"{row.updates:,} of {row.planned:,}" if early else f"{row.updates:,}"


def _prompts(row: RowFacts) -> str:
    """The texts before those of tasks, by kind of task."""
    given = row.config.get("prompts")
    if not isinstance(given, dict):
        return "the model's own" if given else "none"
    return ", ".join(f'{key} "{text}"' for key, text in given.items())


def _within_a_batch(runs: Sequence[RowFacts]) -> bool:
    """Is what they have seen as equal as whole batches can be?"""
    seen = [run.seen for run in runs if run.seen is not None]
    return len(seen) == len(runs) and max(seen) - min(seen) <= max(run.batch or 0 for run in runs)


def _of_one_kind(runs: Sequence[RowFacts]) -> bool:
    """Are the rates all from papers, or all searched, given in the file, or left at the default?"""
    kinds = ("searched", "default", "given", "ours", "for rehearsals", NOT_RECORDED)
    said = [run.rate_from for run in runs if run.rate_from is not None]
    return len({next((kind for kind in kinds if text.startswith(kind)), "paper") for text in said}) < 2


def _schedule(row: RowFacts) -> str | None:
    """Warm-up and decay, in the words of the options."""
    c = row.config
    if not row.by_updates or "warmup" not in c:
        return None
    warm = f"warm-up {c['warmup_steps']:,} updates" if c.get("warmup_steps") else f"warm-up {100 * c['warmup']:g} %"
    decay = c.get("decay", c.get("lr_schedule"))
    if decay is None:
        return f"{warm}, {'linear decay' if _is_usual(row.method) else 'a schedule of its own'}"
    words = {True: "linear decay", False: "constant"}
    return f"{warm}, {words[decay] if isinstance(decay, bool) else f'decay {decay}'}"


def _is_usual(method: str) -> bool:
    """Has a method the schedule of the training loop?"""
    from harness.training import TrainedMethod

    try:
        return getattr(registry.load(registry.METHODS, method), "schedule", None) is TrainedMethod.schedule
    except InputError:
        return True


def _view(row: RowFacts) -> str | None:
    """The names of views with their rates; of a method without a choice of views, its dropout rates."""
    c = row.config
    if not row.by_updates:
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
    return " and ".join("of the checkpoint" if rate is None else f"{rate:g}" for rate in rates)


def _evaluations(row: RowFacts) -> str | None:
    """How many, how far apart, and what else decides which weights are kept."""
    c = row.config
    if not row.by_updates or (row.evaluated is None and row.dev is None):
        return None
    more = [f"patience {c['patience']}"] if c.get("patience") else []
    more += ["the last weights kept"] if c.get("select") == "last" else []
    if row.evaluated is None:
        return NOT_RECORDED
    return ", ".join([spaced(row.evaluated), *more])


def spaced(steps: Sequence[int]) -> str:
    """Updates as "9, every 125", the untrained weights and the last update among them."""
    gaps = [b - a for a, b in pairwise(steps)]
    if not gaps:
        return f"{len(steps)}"
    if len(gaps) == 1:
        return f"{len(steps)}, before and after"
    return f"{len(steps)}, every {Counter(gaps[:-1]).most_common(1)[0][0]:,}"  # the last one may come early


FACTS = (
    Fact("base", "Base model", lambda row: row.base_model,
         "Base model: another network starts and ends elsewhere; rows of one base model can be compared."),
    Fact("pooling", "Pooling", _pooling,
         "Pooling: the same untrained network can be many points apart by it; compare gains on a row's own start."),
    Fact("length", "Word pieces", _length),
    Fact("prompts", "Prompts", _prompts,
         "Prompts: a model that was trained with texts before its inputs scores lower without them."),
    Fact("text", "Text", _text, "Text: more of it, or text closer to the tasks, can be worth more than a method."),
    Fact("updates", "Updates", _updates, "Updates: who trains longer may be ahead for that alone."),
    Fact("seen", "Items seen", _seen, "Items seen: at equal updates, larger batches have seen more text.",
         alike=_within_a_batch),
    Fact("batch", "Batch", lambda row: _number(row.batch)),
    Fact("rate", "Learning rate", lambda row: _number(row.config.get("learning_rate"))),
    Fact("rate_from", "Rate's origin", lambda row: row.rate_from,
         "Rate's origin: a rate that was searched on such data favours its row over one that was left at a default.",
         alike=_of_one_kind),
    Fact("schedule", "Schedule", _schedule),
    Fact("view", "Views", _view),
    Fact("evaluations", "Dev evaluations", _evaluations,
         "Dev evaluations: the best of many is higher than the best of few, and nearer to the right moment."),
    Fact("dev", "Selected on", _dev),
    Fact("bucket", "Bucket", lambda row: _number(row.config.get("bucket"))),
    Fact("precision", "Precision", lambda row: row.precision,
         "Precision: the same run rounds otherwise in another one; such a difference is none of methods or seeds.",
         within=True),
    Fact("device", "Device", lambda row: row.device,
         "Device: the same run rounds otherwise on another one, and its seconds are not those of the others.",
         within=True),
    Fact("train_length", "Train length", lambda row: _number(row.config.get("train_length"))),
)  # fmt: skip
"""In the order of tables."""
