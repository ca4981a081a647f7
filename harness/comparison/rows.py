"""The rows of an experiment: method, config and text of each, and which runs of it are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness import registry
from harness.comparison.experiment import CorpusSettings, Entry, Experiment
from harness.config import nearest
from harness.errors import InputError
from harness.method import Method, MethodConfig
from harness.recipes import preset_names
from harness.seeds import part_seed


@dataclass(frozen=True)
class Row:
    """A row on one base model: label, plugin class and validated config, and its runs.

    Attributes:
        corpus: None for methods that learn from no text.
        seeds: of each run, which blocks of the file it stands in.
        fault: why it cannot be run here and now; empty for a row that can.
        counterpart: it is in no file, but the untrained start of rows that are (`harness.comparison.counterparts`).
    """

    label: str
    method: type[Method]
    base_model: str
    config: MethodConfig
    corpus: CorpusSettings | None
    seeds: Mapping[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    max_steps: int | None = None
    fault: str = field(default="", compare=False)
    counterpart: bool = field(default=False, compare=False)

    @property
    def trained(self) -> bool:
        """Does `fit` learn from text?"""
        return self.corpus is not None


def resolve_rows(experiment: Experiment, where: str, *, tolerant: bool = False) -> list[Row]:
    """Every row on each of its base models, base model by base model.

    Where that is tolerated, a row whose preset has no values for its base model keeps this as its fault.

    Raises:
        InputError: unknown method, preset or key, value out of range, a preset that is none for a base model, a shared
            key that no method has, equal labels, blocks of one row that ask for different numbers of updates.
    """
    shares = [(number, entry, _shares(experiment, entry)) for number, entry in enumerate(experiment.methods, 1)]
    rows = []
    for base_model in dict.fromkeys(base for _, _, share in shares for base in share):
        for number, entry, share in shares:
            if base_model in share:
                seeds, bounds = share[base_model]
                if len(bounds) > 1:
                    raise InputError(
                        f'{where}: row "{entry.name or entry.method}": its blocks bound the updates differently '
                        f"({', '.join(str(bound) for bound in bounds)}); give the row a max_steps of its own"
                    )
                rows.append(_resolved(experiment, entry, base_model, number, where, seeds, bounds[0], tolerant))
    known = {name for row in rows for name in row.method.Config.model_fields}
    unused = sorted(set(experiment.shared) - known)
    if unused:
        hint = nearest(unused[0], sorted(known))
        raise InputError(f'{where}: shared: no method here has the key "{unused[0]}"{hint}')
    labels = [entry.name or entry.method for entry in experiment.methods]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f'{where}: two rows are called "{label}"; give one of them another name')
    return rows


def _shares(experiment: Experiment, entry: Entry) -> dict[str, tuple[dict[int, tuple[str, ...]], list[int | None]]]:
    """Base model -> the seeds of a row, each with its blocks, and the bounds on its updates; what a row says beats its
    blocks, and those beat the comparison."""
    shares: dict[str, tuple[dict[int, tuple[str, ...]], list[int | None]]] = {}
    for name, block in experiment.parts.items():
        if entry.blocks and name not in entry.blocks:
            continue
        bound = entry.max_steps or block.max_steps or experiment.max_steps
        for base_model in entry.base_models or block.base_models or experiment.base_models:
            seeds, bounds = shares.setdefault(base_model, ({}, []))
            bounds += [bound] if bound not in bounds else []
            own = entry.seeds or block.seeds or experiment.seeds
            vary = entry.vary or block.vary or experiment.vary
            held = experiment.held_seed if experiment.held_seed is not None else own[0]
            for seed in (part_seed(number, vary, held) for number in own):
                seeds[seed] = (*seeds.get(seed, ()), name)
    return shares


def _resolved(
    experiment: Experiment,
    entry: Entry,
    base_model: str,
    number: int,
    where: str,
    seeds: Mapping[int, tuple[str, ...]],
    max_steps: int | None,
    tolerant: bool,
) -> Row:
    """A row on one base model: its plugin is loaded; `shared` values reach it where it has the key."""
    place = f"{where}: methods[{number}]"
    try:
        method: type[Method] = registry.load(registry.METHODS, entry.method)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    label = entry.name or entry.method
    shared = {k: v for k, v in experiment.shared.items() if k in method.Config.model_fields}
    values, place, fault = {**shared, **entry.config}, f"{place} ({label})", ""
    family = entry.family or experiment.family
    try:
        config = method.configure(values, preset=entry.preset, family=family, base_model=base_model, where=place)
    except InputError as error:
        excused = tolerant or (experiment.blocks and not _readable(base_model))
        if not excused or entry.preset not in preset_names(method.presets):
            raise
        config, fault = method.configure(values, where=place), str(error)
    corpus = corpus_for(experiment, entry, method.text_for(config), where)
    return Row(label, method, base_model, config, corpus, seeds, max_steps, fault)


def _readable(base_model: str) -> bool:
    """Can the configuration of a base model be had here?"""
    from harness.encoder.families import family_of

    try:
        family_of(base_model)
    except InputError:
        return False
    return True


def corpus_for(experiment: Experiment, entry: Entry, kind: str, where: str) -> CorpusSettings | None:
    """The text of a row whose method learns from `kind`.

    Raises:
        InputError: the experiment names none of that kind.
    """
    if kind == "none":
        return None
    own = entry.corpus
    if own is not None:
        own = own if "kind" in own.model_fields_set else own.model_copy(update={"kind": kind})
    text = own or next((c for c in (experiment.corpus, *experiment.corpora.values()) if c.kind == kind), None)
    if text is None or text.kind != kind:
        label = entry.name or entry.method
        held = text.kind if text is not None else experiment.corpus.kind
        raise InputError(
            f'{where}: row "{label}" learns from {kind}, but its corpus holds {held}; add a table [corpora.{kind}]'
        )
    return text
