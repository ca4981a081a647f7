"""A study as a report: what was searched and found, and what seeds that chose nothing say about its
best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.results.record import Record
from harness.results.store import RunFolder
from reports.document.blocks import Block, Document, FactList, Section, Text
from reports.document.table import number_text
from reports.read.provenance import provenance_of
from reports.stats.estimate import mean_sd
from reports.studies import study_figures
from reports.studies.findings import (
    Confirmation,
    compare_with_start,
    confirm,
    experiment_file,
    select_scored,
    untrained_score,
)
from reports.studies.study_tables import (
    best_table,
    compare_held_out,
    join_values,
    space_table,
    summary_table,
    trials_table,
    two_digits,
)
from studies.definition.space import Space, make_space, plan_trials
from studies.definition.study import DEV, Study
from studies.storage import definition_of, studies_in
from studies.trials import best_trials, ended_trials, result_of

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


def document(workdir: Path, name: str) -> tuple[Document, dict[str, str]] | None:
    """The study of that name in a work directory's own storage as a document, and the experiment
    files of its best configuration by their path; None where there is no such study.

    Raises:
        InputError: the journal is damaged, or the study was not made by `harness study`.
    """
    stored = studies_in(workdir).get(name)
    if stored is None:
        return None
    study = definition_of(stored)
    trials = ended_trials(stored)
    files = {}
    if best_trials(stored):
        for part, seeds in (("best", study.seeds), ("held-out", study.held_out_seeds)):
            files[f"experiments/{part}.toml"] = experiment_file(stored, study, seeds)
    return describe(stored, study, make_space(study, f'study "{name}"'), trials, workdir), files


def trials_on_dev(workdir: Path) -> Iterator[tuple[str, float, list[str]]]:
    """Study, value and ids of the runs of every scored trial of the studies that choose by a dev
    score.

    Raises:
        InputError: the storage is damaged.
    """
    for name, stored in studies_in(workdir).items():
        if definition_of(stored).objective == DEV:
            yield from (
                (name, t.values[0], result_of(t).runs) for t in select_scored(ended_trials(stored))
            )


def describe(
    stored: optuna.Study,
    study: Study,
    space: Space,
    trials: Sequence[FrozenTrial],
    workdir: Path,
) -> Document:
    """Every table and figure of a study, in the order of the page."""
    leading = best_trials(stored)
    confirmed = None
    start = None
    if leading:
        confirmed = confirm(leading[0], study, workdir)
        start = untrained_score(stored, leading[0], study, workdir)
    of_search, of_parameters = study_figures.all_figures(stored, study, space, trials)
    # An earlier call may have planned more trials.
    planned = max(len(plan_trials(study, space)), len(trials))
    blocks: list[tuple[str, str, list[Block | None]]] = [
        (
            "searched",
            "What was searched",
            [space_table(study, space), _definition(study, planned, trials)],
        ),
        (
            "best",
            "What was found",
            [best_table(study, space, leading, start), summary_table(study, space, trials)],
        ),
        ("held-out", "Held-out seeds", [*compare_held_out(study, confirmed)]),
        ("search", "The search", [*of_search]),
        ("parameters", "What the parameters do", [*of_parameters]),
        ("trials", "All trials", [trials_table(study, space, trials)]),
        ("limits", "Limits", [_limits(study, trials, confirmed)]),
    ]
    sections = []
    for key, title, part in blocks:
        sections.append(Section(key, title, [b for b in part if b is not None]))
    headline = _headline(study, leading, trials, confirmed)
    if leading:
        headline = f"{compare_with_start(leading[0], start)} {headline}".strip()
    return Document(
        study.title or f"Study {study.name}",
        headline,
        _facts(study, trials, planned),
        [s for s in sections if s.blocks],
        study.description,
        provenance_of(_records_of(trials, confirmed, workdir)),
    )


def _records_of(
    trials: Sequence[FrozenTrial],
    confirmed: Confirmation | None,
    workdir: Path,
) -> list[Record]:
    """Return the records of the runs of a study, but those that a worker on another machine has."""
    ids: dict[str, None] = {}
    for trial in trials:
        ids |= dict.fromkeys(result_of(trial).runs)
    if confirmed is not None:
        ids |= dict.fromkeys(run.id for run, _ in confirmed.held_out)
    found = (RunFolder(workdir, run).read_if_sound() for run in ids)
    return [record for record in found if record is not None]


def _facts(study: Study, trials: Sequence[FrozenTrial], planned: int) -> list[tuple[str, str]]:
    count = {}
    for state in ("COMPLETE", "PRUNED", "FAIL"):
        count[state] = sum(t.state.name == state for t in trials)
    facts = [(str(count["COMPLETE"]), f"scored of {planned} planned trials")]
    if count["PRUNED"]:
        facts += [(str(count["PRUNED"]), "pruned")]
    if count["FAIL"]:
        facts += [(str(count["FAIL"]), "failed")]
    if study.steps:
        facts += [(str(study.steps), "training steps a trial")]
    facts += [
        (
            str(len(study.seeds)),
            "seed a trial" if len(study.seeds) == 1 else "seeds a trial at most",
        )
    ]
    last = max((t.datetime_complete for t in trials if t.datetime_complete), default=None)
    return facts + ([(last.date().isoformat(), "last trial")] if last else [])


def _headline(
    study: Study,
    leading: Sequence[FrozenTrial],
    trials: Sequence[FrozenTrial],
    confirmed: Confirmation | None,
) -> str:
    if not leading:
        return "No trial has a value yet."
    best = leading[0]
    result = result_of(best)
    noun = "seeds" if len(result.seeds) > 1 else "seed"
    seeds = f"{noun} {join_values(result.seeds)}"
    score = two_digits(100 * best.values[0])
    text = (
        f"The best of {len(trials)} trials reaches {score} on {study.objective_name} "
        f"(×100, {seeds}): {result.label}."
    )
    if confirmed is None or not confirmed.held_out:
        return f"{text} Not confirmed by held-out seeds yet: a score that chose is too good by the choice."
    held = [value for _, value in confirmed.held_out]
    seeds = join_values([result.seed for result, _ in confirmed.held_out])
    text += f" Held-out seeds {seeds} reach {two_digits(mean_sd(held)[0])}"
    excess = confirmed.optimism
    if excess is None:
        return f"{text}: one seed, so how far seeds differ is not known."
    size = number_text(excess.value, 2, signed=True)
    return f"{text}: an optimism of {size} [{two_digits(excess.low)}, {two_digits(excess.high)}]."


def _definition(study: Study, planned: int, trials: Sequence[FrozenTrial]) -> FactList:
    corpus = study.corpus
    items = [
        ("name", study.name),
        ("method", study.method + (f", preset {study.preset}" if study.preset else "")),
        ("base model", study.base_model),
        ("corpus", corpus.uri + (f", {corpus.limit:,} items" if corpus.limit else "")),
        ("selected on", f"{study.dev.label} ({study.dev.where}), dev"),
        ("objective", study.objective_name),
        (
            "budget",
            f"{planned} trials of {f'{study.steps} training steps' if study.steps else 'whole runs'}",
        ),
        ("sampler", f"{study.sampler}, seed {study.sampler_seed}"),
        ("pruner", study.pruner),
        ("seeds that choose", join_values(study.seeds)),
        ("held-out seeds", join_values(study.held_out_seeds)),
        *[(f"config: {key}", str(value)) for key, value in study.config.items()],
        *([("cells", study.where)] if study.where else []),
        *([("suites", join_values(study.suites))] if study.suites else []),
    ]
    return FactList("definition", "The whole definition", tuple(items))


def _limits(study: Study, trials: Sequence[FrozenTrial], confirmed: Confirmation | None) -> Text:
    said = []
    if len(study.seeds) == 1:
        said.append(
            "Every trial has one seed: the effects of a parameter and of the seed are not separable in one trial, "
            "only over many."
        )
    if confirmed is None or not confirmed.held_out:
        said.append(
            "The best score chose its own configuration: it is no estimate of what that configuration gives."
        )
    if study.sampler not in ("grid", "brute_force", "random", "qmc"):
        said.append(
            f"The sampler ({study.sampler}) looks where earlier trials were good: importance, bins and the expected "
            "best score describe these trials, not the space."
        )
    if any(t.state.name == "PRUNED" for t in trials):
        said.append("Pruned trials have no score and enter no maximum, quartile or map.")
    said.append(
        "Importance (PED-ANOVA) tells which parameters separate the better trials, not in which direction."
    )
    return Text(tuple(said), bullets=True)
