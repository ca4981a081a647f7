"""A study as a report: what was searched and found, and what seeds that chose nothing say about its best."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.document.blocks import Block, Document, Facts, Figure, Section, Text
from reports.document.table import Cell, Column, Table, TableRow, absent, number, number_text
from studies.definition.space import Space
from studies.definition.study import Study
from studies.show.findings import Sheet, objective_names

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from studies.show.confirmation import Confirmation

TOP = 10
# Which figures stand in which section and in which order, by how their keys begin.
_SEARCH, _TRAINING = ("history", "expected"), ("development",)
_PARAMETERS = ("importance", "slices", "binned", "heat", "contour", "parallel")


def document(workdir: Path, name: str) -> Document | None:
    """The study of that name in a work directory's own storage as a document; None where there is none.

    Raises:
        InputError: the storage is damaged, or the study was not made by `harness study`.
    """
    if not (workdir / "studies.journal").exists():
        return None
    import optuna

    from studies.definition.space import make_space
    from studies.run.storage import DEFINITION, default_url, definition_of, open_storage
    from studies.run.trials import finished_trials

    storage = open_storage(default_url(workdir), create=False)
    known = {s.study_name: s for s in optuna.get_all_study_summaries(storage, include_best_trial=False)}
    if name not in known or DEFINITION not in known[name].user_attrs:
        return None
    stored = optuna.load_study(study_name=name, storage=storage)
    study = definition_of(stored)
    return describe(stored, study, make_space(study, f'study "{name}"'), finished_trials(stored), workdir)


def describe(
    stored: optuna.Study, study: Study, space: Space, trials: Sequence[FrozenTrial], workdir: Path
) -> Document:
    """Every table and figure of a study, in the order of the page."""
    from harness.results.run_folder import RunFolder
    from reports.read.provenance import provenance_of
    from studies.definition.planned import planned_trials
    from studies.run.trials import best_trials
    from studies.show import study_figures
    from studies.show.confirmation import confirm
    from studies.show.export import sheets

    leading = best_trials(stored)
    confirmed = confirm(leading[0], study, workdir) if leading and len(study.signs) == 1 else None
    tables = sheets(stored, study, space, trials, workdir)
    by_key = {sheet.key: sheet for sheet in tables}
    drawn = study_figures.all_figures(stored, study, space, trials, tables)

    def those(*begins: str) -> list[Figure]:
        return [f for begin in begins for f in drawn if f.key.startswith(begin)]

    planned = len(planned_trials(study, space))
    blocks: list[tuple[str, str, list[Block | None]]] = [
        ("searched", "What was searched", [_space_table(study, space), _definition(study, planned)]),
        ("best", "What was found", [_best_table(study, space, leading), _summary_table(study, by_key["summary"])]),
        ("held-out", "Held-out seeds", [*_held_out(study, confirmed)]),
        ("search", "The search", [*those(*_SEARCH)]),
        ("parameters", "What the parameters do", [*those(*_PARAMETERS)]),
        ("training", "Training", [*those(*_TRAINING)]),
        ("time", "Time", [_plain_table(by_key["time"], "Wall-clock seconds, by what they went into.", digits=2)]),
        ("trials", "All trials", [_trials_table(study, space, trials)]),
        ("limits", "Limits", [_limits(study, trials, confirmed)]),
    ]
    sections = [Section(key, title, [b for b in part if b is not None]) for key, title, part in blocks]
    ids = [run for t in trials for run in t.user_attrs.get("about", {}).get("runs", ())]
    ids += [r.id for r, _ in confirmed.held_out] if confirmed else []
    records = [r for run in dict.fromkeys(ids) if (r := _read(RunFolder(workdir, run).read)) is not None]
    return Document(
        study.title or f"Study {study.name}",
        _headline(study, leading, trials, confirmed),
        _facts(study, trials, planned),
        [s for s in sections if s.blocks],
        study.description,
        provenance_of(records, workdir),
    )


def _read(read: Callable[[], Any]) -> Any:
    """A record, or None where it is damaged or not here (of a worker on another machine)."""
    from harness.errors import InputError

    try:
        return read()
    except (InputError, OSError):
        return None


def _facts(study: Study, trials: Sequence[FrozenTrial], planned: int) -> list[tuple[str, str]]:
    count = {state: sum(t.state.name == state for t in trials) for state in ("COMPLETE", "PRUNED", "FAIL")}
    facts = [(str(count["COMPLETE"]), f"scored of {planned} planned trials")]
    facts += [(str(count["PRUNED"]), "pruned")] if count["PRUNED"] else []
    facts += [(str(count["FAIL"]), "failed")] if count["FAIL"] else []
    facts += [(str(study.steps), "updates a trial")] if study.steps else []
    facts += [(str(len(study.seeds)), "seed a trial" if len(study.seeds) == 1 else "seeds a trial at most")]
    last = max((t.datetime_complete for t in trials if t.datetime_complete), default=None)
    return facts + ([(last.date().isoformat(), "last trial")] if last else [])


def _list(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _score(value: float) -> str:
    return number_text(value, 2)


def _headline(
    study: Study, leading: Sequence[FrozenTrial], trials: Sequence[FrozenTrial], confirmed: Confirmation | None
) -> str:
    if not leading:
        return "No trial has a value yet."
    if len(study.signs) > 1:
        return f"{len(leading)} of {len(trials)} trials are Pareto-optimal: none beats them on every objective."
    best = leading[0]
    about = best.user_attrs["about"]
    seeds = f"seed{'s' if len(about['seeds']) > 1 else ''} {_list(about['seeds'])}"
    text = (
        f"The best of {len(trials)} trials reaches {_score(100 * best.values[0])} on {objective_names(study)[0]} "
        f"(×100, {seeds}): {about['label']}."
    )
    if confirmed is None or not confirmed.held_out:
        return f"{text} Not confirmed by held-out seeds yet: a score that chose is too good by the choice."
    from reports.stats.bootstrap import mean_sd

    held = [value for _, value in confirmed.held_out]
    text += f" Held-out seeds {_list([r.seed for r, _ in confirmed.held_out])} reach {_score(mean_sd(held)[0])}"
    excess = confirmed.optimism
    if excess is None:
        return f"{text}: one seed, so how far seeds differ is not known."
    size = number_text(excess.value, 2, signed=True)
    return f"{text}: an optimism of {size} [{_score(excess.low)}, {_score(excess.high)}]."


def _space_table(study: Study, space: Space) -> Table:
    columns = (
        Column("parameter", "Parameter", numeric=False),
        Column("values", "Values", numeric=False),
        Column("condition", "Searched when", numeric=False, aside=True),
    )
    rows = [
        TableRow((
            Cell(p.name, code=True),
            Cell(p.describe()),
            Cell(" and ".join(f"{key} = {value}" for key, value in p.when) or "always"),
        ))
        for p in space.parameters
    ]  # fmt: skip
    caption = f"Sampler {study.sampler}, pruner {study.pruner}."
    if study.by is not None:
        caption += f" Every value of {study.by} gets as many trials as any other."
    return Table("space", "Search space", caption, columns, tuple(rows))


def _definition(study: Study, planned: int) -> Facts:
    corpus = study.corpus
    items = [
        ("name", study.name),
        ("method", study.method + (f", preset {study.preset}" if study.preset else "")),
        ("base model", study.base_model),
        ("corpus", corpus.uri + (f", {corpus.limit:,} items" if corpus.limit else "")),
        ("selected on", f"{study.dev.task} ({study.dev.where}), dev"),
        ("objectives", _list([f"{n} ({s})" for n, s in zip(objective_names(study), study.signs, strict=True)])),
        ("budget", f"{planned} trials of {f'{study.steps} updates' if study.steps else 'whole runs'}"),
        ("sampler", f"{study.sampler}, seed {study.sampler_seed}"),
        ("pruner", study.pruner),
        ("seeds that choose", _list(study.seeds)),
        ("held-out seeds", _list(study.held_out_seeds)),
        *[(f"config: {key}", str(value)) for key, value in study.config.items()],
        *([("suites", _list(study.suites))] if study.suites else []),
    ]
    return Facts("definition", "The whole definition", tuple(items))


def _parameter_columns(space: Space) -> list[Column]:
    return [Column(f"p:{p.name}", p.name, numeric=p.numeric, group="Parameters") for p in space.parameters]


def _parameter_cells(space: Space, t: FrozenTrial) -> list[Cell]:
    cells = []
    for p in space.parameters:
        value = t.params.get(p.name)
        if value is None:
            cells.append(Cell("–", state="empty"))
        elif isinstance(value, float):
            cells.append(Cell(f"{value:.4g}", value=value))
        else:
            cells.append(Cell(str(value), value=float(value) if p.numeric else None))
    return cells


def _best_table(study: Study, space: Space, leading: Sequence[FrozenTrial]) -> Table | None:
    if not leading:
        return None
    columns = [
        Column("trial", "Trial", numeric=False),
        *_parameter_columns(space),
        *[Column(f"o:{name}", name, "×100") for name in objective_names(study)],
        Column("seeds", "Seeds", numeric=False, aside=True),
    ]
    rows = []
    for t in leading[:TOP]:
        about = t.user_attrs["about"]
        by_seed = about["seed_values"]
        cells = [Cell(str(t.number), value=t.number, records=tuple(about["runs"])), *_parameter_cells(space, t)]
        for i, value in enumerate(t.values):
            deviation = _deviation([100 * seed[i] for seed in by_seed])
            cells.append(number(100 * value, sd=deviation, n=len(by_seed), records=about["runs"]))
        cells.append(Cell(_list(about["seeds"])))
        rows.append(TableRow(tuple(cells)))
    several = len(study.signs) > 1
    title = "Pareto-optimal trials" if several else "Best trials"
    caption = f"{min(TOP, len(leading))} of {len(leading)} scored trials"
    caption += ", in the order in which they were begun." if several else ", best first."
    legend = ["These scores chose: the highest of them is too high by the very choice (see held-out seeds)."]
    if len(study.seeds) > 1:
        legend.insert(
            0,
            "Mean ± standard deviation over seeds. Only trials with all seeds stand here; others fell out of the race.",
        )
    return Table("best", title, caption, tuple(columns), tuple(rows), tuple(legend))


def _deviation(values: Sequence[float]) -> float | None:
    from reports.stats.bootstrap import mean_sd

    return mean_sd(values)[1] if len(values) > 1 else None


def _summary_table(study: Study, sheet: Sheet) -> Table:
    caption = f"{objective_names(study)[0]} ×100 over trials, as in Table 1 of Farina & Pappadopulo (2024)."
    return _plain_table(sheet, caption, digits=2, title="Maximum and quartiles by category")


def _plain_table(sheet: Sheet, caption: str, *, digits: int, title: str = "") -> Table:
    """A sheet as a table: text first, then numbers; whole numbers stay whole."""
    columns = [Column(name, name[:1].upper() + name[1:], numeric=j > 0) for j, name in enumerate(sheet.columns)]
    rows = []
    for line in sheet.rows:
        cells = []
        for value in line:
            if value is None:
                cells.append(absent("missing"))
            elif isinstance(value, float):
                cells.append(number(value, digits=digits))
            else:
                cells.append(Cell(str(value), value=float(value) if isinstance(value, int) else None))
        rows.append(TableRow(tuple(cells)))
    return Table(sheet.key, title or sheet.title, caption, tuple(columns), tuple(rows))


def _held_out(study: Study, confirmed: Confirmation | None) -> list[Block]:
    """Chosen against held-out scores of the best configuration, or how to get them."""
    if confirmed is None or not confirmed.held_out:
        if len(study.signs) > 1:
            return []
        commands = (
            f"harness study best {shlex.quote(study.name)} --held-out --workdir WORKDIR > held-out.toml",
            "harness compare held-out.toml --workdir WORKDIR",
        )
        seeds = _list(study.held_out_seeds)
        return [
            Text((f"No run of the best configuration with the held-out seeds ({seeds}) is in this work directory.",)),
            Facts("confirm", "How to confirm it", (), commands),
        ]
    from reports.stats.bootstrap import mean_sd

    columns = (Column("seed", "Seed", numeric=False), Column("score", objective_names(study)[0], "×100"))
    rows = []
    for part, what in ((confirmed.chosen_by, "seeds that chose"), (confirmed.held_out, "held-out seeds")):
        for record, value in part:
            rows.append(TableRow((Cell(f"seed {record.seed}"), number(value, records=[record.id])), what))
        mean, sd = mean_sd([value for _, value in part])
        if len(part) > 1:
            average = number(mean, sd=sd, n=len(part), records=[record.id for record, _ in part])
            rows.append(TableRow((Cell("mean"), average), what))
    legend = ["Held-out seeds had no part in the choice: their mean is what the configuration can be expected to give."]
    excess = confirmed.optimism
    if excess is not None:
        size = number_text(excess.value, 2, signed=True)
        cell = Cell(size, f"[{_score(excess.low)}, {_score(excess.high)}]", excess.value, state="value")
        rows.append(TableRow((Cell("chosen − held-out mean"), cell), "optimism of the choice"))
        legend.append("Interval: 95 %, Student's, over the held-out seeds.")
    caption = f"The best configuration (trial {confirmed.trial}) by the seeds that chose it and by others."
    return [Table("held-out", "Chosen and held-out scores", caption, columns, tuple(rows), tuple(legend))]


def _trials_table(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Table | None:
    if not trials:
        return None
    columns = [
        Column("trial", "Trial", numeric=False),
        *_parameter_columns(space),
        *[Column(f"o:{name}", name, "×100") for name in objective_names(study)],
        Column("state", "Ended", numeric=False, aside=True),
        Column("seconds", "Seconds", aside=True),
    ]
    rows = []
    for t in trials:
        about = t.user_attrs.get("about", {})
        runs = tuple(about.get("runs", ()))
        cells = [Cell(str(t.number), value=t.number, records=runs), *_parameter_cells(space, t)]
        complete = t.state.name == "COMPLETE"
        values = t.values if complete else [None] * len(study.objectives)
        cells += [Cell("–", state="empty") if v is None else number(100 * v, records=runs) for v in values]
        reason = about.get("reason") or t.user_attrs.get("reason", "")
        ended = about.get("status", "failed") if complete else t.state.name.lower()
        cells.append(Cell(ended, notes=(f"trial {t.number}: {reason}",) if reason else ()))
        seconds = about.get("seconds", {}).get("whole", 0.0)
        cells.append(Cell("known") if about.get("answered") else number(seconds, digits=1))
        rows.append(TableRow(tuple(cells)))
    caption = "In the order of their places in the plan; known: answered from the records, nothing was trained."
    return Table("trials", "Trials", caption, tuple(columns), tuple(rows))


def _limits(study: Study, trials: Sequence[FrozenTrial], confirmed: Confirmation | None) -> Text:
    said = []
    if len(study.seeds) == 1:
        said.append(
            "Every trial has one seed: what a parameter does and what the seed does are not told apart in one trial, "
            "only over many."
        )
    if confirmed is None or not confirmed.held_out:
        said.append("The best score chose its own configuration: it is no estimate of what that configuration gives.")
    if study.sampler not in ("grid", "brute_force", "random", "qmc"):
        said.append(
            f"The sampler ({study.sampler}) looks where earlier trials were good: importance, slices and the expected "
            "best score describe these trials, not the space."
        )
    if any(t.state.name == "PRUNED" for t in trials):
        said.append("Pruned trials have no score and stand in no maximum, quartile or map.")
    said.append("Importance (PED-ANOVA) tells which parameters separate the better trials, not in which direction.")
    return Text(tuple(said), bullets=True)
