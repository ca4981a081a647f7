"""What makes a run one of a paper's rows, and what makes it another one: base model, training text,
settings.

Reasons why a run is not the paper's are sentences "Another KIND: DETAIL.".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from harness import registry
from harness.errors import InputError
from harness.method import Method
from harness.recipes import Recipes
from harness.results.record import Record
from reports.load import RecordedRow
from reports.papers.definition import Data, Definition, PaperRow
from reports.records.run_library import matches, same_value, value_of

_WEIGHTS = ("base_model", "model", "vectors")  # a rehearsal replaces these by something small
_REHEARSED = "mini"  # the family whose preset a rehearsal follows, whatever the paper's base model
_SCHEDULE = "eval_every"  # how often the dev set is scored is a remark, not another setting
_MEMORY = ("micro_batch", "gradient_checkpointing", "packed")
_FIRST = (
    "learning_rate",
    "batch_size",
    "epochs",
    "max_steps",
    "temperature",
    "projector",
    "pooling",
)
_MOSTLY = 0.95  # of the entries: fewer are a part of the text. Public copies lack some
_SMALL = 1e-3  # a number below it is shown as 3e-5
_REVISION = re.compile(r"^(hf://datasets/[^/]+/[^/@?]+)@[^/?]*")


def is_run_of(definition: Definition, row: PaperRow, record: Record) -> bool:
    """Whether a run belongs to a paper's row: its method and what `where` says.

    A rehearsal can have what its own preset says where the row has what the paper's says, and
    another text.
    """
    if record.method != row.method:
        return False
    own = record.base_model == row.weights
    if record.rehearsal and not own and record.base_model in definition.weights_of_rows:
        return False  # another row's weights, which could not be had
    if not matches(record, _where(definition, row, record.rehearsal)):
        return False
    texts = definition.data
    corpus = row.where.get("corpus")
    if corpus is None or is_text(texts[corpus], record):
        return True
    is_published = any(is_text(text, record) for text in texts.values())
    return record.rehearsal and not is_published


def _where(definition: Definition, row: PaperRow, rehearsal: bool) -> dict[str, Any]:
    """What `where` asks of a run; of a rehearsal without weights, and its own preset's value
    for the paper's.
    """
    if not rehearsal:
        return row.fixed
    where = {key: value for key, value in row.fixed.items() if key not in _WEIGHTS}
    if not row.preset:
        return where
    families = [definition.family(base) for base in definition.bases]
    papers = [_options(row.method, row.preset, family) for family in families]
    own = _options(row.method, row.preset, _REHEARSED)
    for key, value in where.items():
        if isinstance(value, list):
            continue
        if any(same_value(paper.get(key), value) for paper in papers):
            where[key] = [value, own.get(key, value)]
    return where


def other_base(definition: Definition, base: str, row: PaperRow, base_model: str) -> list[str]:
    """Why a base model is not the paper's; `base`: the paper's, as the published file names it."""
    if row.weights:
        # A file of vectors is known by its own name.
        own_name = base_model.rstrip("/").rsplit("/", 1)[-1]
        same = row.weights in (base_model, own_name)
    else:
        same = definition.same_base(base, base_model)
    if same:
        return []
    return [f"Another base model: {base_model} instead of {base}."]


def other_training(
    definition: Definition, row: PaperRow, ours: RecordedRow, base: str = ""
) -> list[str]:
    """How a row of ours was trained differently from the paper's row on `base`, by default on
    its own base model.

    On a base model that the paper does not have only the text is compared.
    """
    base = base or definition.find_published_base(ours.base_model)
    wanted = definition.data.get(row.data)
    reasons = []
    if wanted is not None and ours.records[0].supervision != "untrained":
        texts = dict.fromkeys(text_difference(wanted, record) for record in ours.finished)
        reasons = [f"Another training text: {detail}." for detail in texts if detail]
    if base:
        family = definition.family(base)
        unlike: dict[str, None] = {}
        for record in ours.finished:
            unlike |= dict.fromkeys(other_settings(record, row, family))
        if unlike:
            reasons.append(f"Other settings: {', '.join(unlike)}.")
    return reasons


def find_differences(
    definition: Definition, base: str, row: PaperRow, ours: RecordedRow
) -> list[str]:
    """Why a row of ours is not the row that a paper publishes on `base`."""
    return [
        *other_base(definition, base, row, ours.base_model),
        *other_training(definition, row, ours, base),
    ]


def remark_on(
    definition: Definition, base: str, row: PaperRow, ours: RecordedRow
) -> tuple[str, ...]:
    """Differences from a published row on `base` that do not make another row: a few entries,
    the dev schedule.
    """
    wanted = definition.data.get(row.data)
    family = definition.family(base)
    entries = list[str]()
    schedules = list[str]()
    for record in ours.finished:
        if wanted and wanted.count:
            count = (record.corpus or {}).get("count")
            has_other_count = count not in (None, wanted.count)
            if has_other_count and not text_difference(wanted, record):
                entries.append(f"Trained on {count:,} of {wanted.count:,} entries.")
        paper = _find_other_options(record, row, family)
        if _SCHEDULE in paper:
            given = format_value(value_of(record, _SCHEDULE))
            usual = format_value(paper[_SCHEDULE])
            schedules.append(
                f"Scored on the dev set every {given} training steps instead of {usual}."
            )
    return tuple(dict.fromkeys(entries + schedules))


# --- settings
# ---------------------------------------------------------------------------------------------------------


@cache
def _options(method: str, preset: str, family: str) -> dict[str, Any]:
    """Every option of a method as a preset sets it for a family; {} where the method is not
    installed, or the preset has no values for the family.

    Raises:
        InputError: no such preset.
    """
    try:
        plugin: type[Method] = registry.load(registry.METHODS, method)
    except InputError:
        return {}
    values = plugin.presets.get(preset)
    if isinstance(values, Recipes) and family not in values.families:
        return {}
    where = f'preset of method "{method}"'
    return dict(plugin.configure({}, preset=preset, family=family, where=where))


def preset_options(row: PaperRow, family: str) -> dict[str, Any]:
    """The options that the preset of a published row states for a family, without those in `where`."""
    if not row.preset or not row.method:
        return {}
    free = {*row.where, *_MEMORY}
    found = {}
    for key, value in _options(row.method, row.preset, family).items():
        if key not in free:
            found[key] = value
    return found


def other_settings(record: Record, row: PaperRow, family: str) -> list[str]:
    """The options in which a run differs from a published row, as "learning_rate 3e-4 instead of
    3e-5".

    Those that usually decide a score most come first. Options without effect on this run are left
    out.
    """
    unlike = {}
    for key, value in _find_other_options(record, row, family).items():
        if key != _SCHEDULE:
            unlike[key] = value
    texts = []
    for key in sorted(unlike, key=_place_of):
        own = format_value(value_of(record, key))
        texts.append(f"{key} {own} instead of {format_value(unlike[key])}")
    bound = record.spec.max_steps
    if not isinstance(bound, int) or "max_steps" in unlike:
        return texts
    planned = record.training.get("planned_steps")
    if planned in (None, bound) and value_of(record, "max_steps") != bound:
        return [f"stopped after {bound:,} training steps", *texts]
    return texts


def _place_of(key: str) -> int:
    """Return the place of an option among those that usually decide a score most."""
    if key in _FIRST:
        return _FIRST.index(key)
    return len(_FIRST)


def _find_other_options(record: Record, row: PaperRow, family: str) -> dict[str, Any]:
    """The options of a run that are not the paper's, with the paper's values."""
    paper = preset_options(row, family)
    every = dict(paper)
    for key, value in row.fixed.items():
        if not isinstance(value, list):
            every[key] = value
    other_options = {}
    for key, value in paper.items():
        if not same_value(value_of(record, key), value) and has_effect(record, key, every):
            other_options[key] = value
    return other_options


def has_effect(record: Record, key: str, paper: Mapping[str, Any]) -> bool:
    """Whether an option affects the run or the published row: the strength of an unused
    augmentation does not.
    """
    try:
        method = registry.load(registry.METHODS, record.method)
    except InputError:
        return True
    declared = method.Config.sweeps().get(key, {})
    when: Mapping[str, Any] = declared.get("when", {})
    for key, wanted in when.items():
        is_ours = _meets(value_of(record, key), wanted)
        if not is_ours and not _meets(paper.get(key), wanted):
            return False
    return True


def _meets(value: Any, wanted: Any) -> bool:
    """As conditions of options are meant: any of a list; a part of "eda+shuffle" counts as equal."""
    if isinstance(wanted, list):
        return any(_meets(value, one) for one in wanted)
    if value == wanted:
        return True
    return isinstance(value, str) and wanted in value.split("+")


def format_value(value: Any) -> str:
    """A value in as few digits as identify it: 3e-5, 0.005, 4096 x 4096, none."""
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        if value:
            return "on"
        return "off"
    if isinstance(value, float):
        if abs(value) >= _SMALL or value == 0:
            text = f"{value:.6g}"
        else:
            text = f"{value:.5e}"
        mantissa, exponent, power = text.partition("e")
        if exponent:
            digits = mantissa.rstrip("0").rstrip(".")
            return f"{digits}e{int(power)}"
        return text
    if isinstance(value, list | tuple):
        return " x ".join(map(format_value, value)) or "none"
    return str(value)


# --- texts
# ------------------------------------------------------------------------------------------------------------


def is_text(wanted: Data, record: Record) -> bool:
    """Whether a run's text is this one or a part of it, by name, whatever the revision of the data
    set.
    """
    corpus = record.corpus or {}
    known = {_plain(uri) for uri in wanted.uris}
    return any(
        isinstance(name, str) and _plain(name) in known
        for name in (corpus.get("name"), corpus.get("uri"))
    )


def text_difference(wanted: Data, record: Record) -> str:
    """How a run's training text differs from the paper's; "" where it is the same."""
    corpus = record.corpus or {}
    uri = str(corpus.get("uri", "none"))
    count = corpus.get("count")
    entries = wanted.count
    if not is_text(wanted, record):
        amount = ""
        if isinstance(count, int):
            amount = f", {count:,} entries"
        return f"{uri}{amount}, instead of {wanted.text}"
    if not entries:
        return ""
    if isinstance(count, int):
        most = (1 - _MOSTLY) * entries
        if abs(count - entries) > most:
            return f"{count:,} of {entries:,} entries"
    seen = record.cost.get("corpus_sentences_seen")
    may_stop_early = record.config.get("patience")
    if seen and seen < _MOSTLY * entries and not may_stop_early:
        return f"only {seen:,.0f} of {entries:,} entries were seen"
    return ""


def _plain(uri: str) -> str:
    """A name without the parts that say how it is read: the revision, and which columns hold the
    text.
    """
    place, _, query = _REVISION.sub(r"\1", uri).partition("?")
    texts = []
    for part in query.split("&"):
        if part and not part.startswith(("revision=", "columns=")):
            texts.append(part)
    left = "&".join(texts)
    if left:
        return f"{place}?{left}"
    return place
