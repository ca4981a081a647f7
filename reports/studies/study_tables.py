"""The tables of a study's report: what is searched, the best trials, held-out seeds, all trials."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reports.document.blocks import Block, FactList, Text, slug
from reports.document.table import Cell, Column, Table, TableRow, absent, number, number_text
from reports.studies.findings import select_scored, top
from studies.definition.space import Parameter, Space
from studies.definition.study import Study
from studies.trials import result_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from reports.studies.findings import Confirmation

TOP = 10


def held_out_file(workdir: object, name: str) -> str:
    """The path of the experiment file, in a study's report, that trains its best configuration with
    other seeds.
    """
    return f"{workdir}/reports/{slug(name)}/experiments/held-out.toml"


def join_values(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def two_digits(value: float) -> str:
    return number_text(value, 2)


def space_table(study: Study, space: Space) -> Table:
    columns = (
        Column("parameter", "Parameter", numeric=False),
        Column("values", "Values", numeric=False),
        Column("condition", "Searched when", numeric=False, aside=True),
    )
    rows = []
    for p in space.parameters:
        conditions = " and ".join(f"{key} = {value}" for key, value in p.when.items())
        cells = (
            Cell(p.name, code=True),
            Cell(p.describe()),
            Cell(conditions or "always"),
        )
        rows.append(TableRow(cells))
    caption = ""
    if study.by is not None:
        caption = f"Every value of {study.by} gets as many trials as any other."
    return Table("space", "Search space", caption, columns, tuple(rows))


def best_table(
    study: Study,
    space: Space,
    leading: Sequence[FrozenTrial],
    start: float | None = None,
) -> Table | None:
    """Return the best trials, below the score without training where it is known."""
    if not leading:
        return None
    caption = f"{min(TOP, len(leading))} of {len(leading)} scored trials, best first."
    legend = "These scores chose: the highest of them is too high by the very choice (see held-out seeds)."
    table = _trials_table(study, space, leading[:TOP], "best", "Best trials", caption, legend)
    if start is None:
        return table
    empty = Cell("–", state="empty")
    cells = [Cell("untrained"), *(empty for _ in space.parameters), number(100 * start)]
    cells += [empty] * (len(table.columns) - len(cells))
    return replace(table, rows=(TableRow(tuple(cells)), *table.rows))


def trials_table(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Table | None:
    if not trials:
        return None
    caption = "In the order of their places in the plan; reused: nothing was trained."
    return _trials_table(study, space, trials, "trials", "Trials", caption)


def _trials_table(
    study: Study,
    space: Space,
    trials: Sequence[FrozenTrial],
    key: str,
    title: str,
    caption: str,
    *legend: str,
) -> Table:
    columns = [Column("trial", "Trial", numeric=False)]
    for p in space.parameters:
        columns.append(Column(f"p:{p.name}", p.name, numeric=p.numeric, group="Parameters"))
    columns += [
        Column("objective", study.objective_name, "×100"),
        Column("seeds", "Seeds", numeric=False, aside=True),
        Column("state", "Ended", numeric=False, aside=True),
        Column("seconds", "Seconds", aside=True),
    ]
    rows = [TableRow(_trial_cells(space, trial)) for trial in trials]
    if len(study.seeds) > 1:
        legend = ("Mean ± standard deviation over seeds.", *legend)
    return Table(key, title, caption, tuple(columns), tuple(rows), legend)


def _trial_cells(space: Space, trial: FrozenTrial) -> tuple[Cell, ...]:
    """Return the cells of a trial: number, parameters, score, seeds, how it ended, and seconds."""
    result = result_of(trial)
    parameters = [_parameter_cell(p, trial.params.get(p.name)) for p in space.parameters]
    score = Cell("–", state="empty")
    end = trial.state.name.lower()
    if trial.state.name == "COMPLETE":
        end = result.status
        if trial.value is not None:
            score = number(
                100 * trial.value,
                sd=_deviation([100 * value for value in result.seed_values]),
                n=len(result.seeds),
                records=result.runs,
            )
    ended = Cell(end)
    if result.reason:
        ended = ended.with_notes(f"trial {trial.number}: {result.reason}")
    seconds = Cell("reused")
    if not result.reused:
        seconds = number(result.seconds, digits=1)
    return (
        Cell(str(trial.number), value=trial.number, records=tuple(result.runs)),
        *parameters,
        score,
        Cell(join_values(result.seeds)),
        ended,
        seconds,
    )


def _parameter_cell(p: Parameter, value: Any) -> Cell:
    if value is None:
        return Cell("–", state="empty")
    if isinstance(value, float):
        text = f"{value:.4g}"
    else:
        text = str(value)
    return Cell(text, value=float(value) if p.numeric else None)


def _deviation(values: Sequence[float]) -> float | None:
    from reports.stats.estimate import mean_sd

    if len(values) > 1:
        return mean_sd(values)[1]
    return None


def summary_table(study: Study, space: Space, trials: Sequence[FrozenTrial]) -> Table:
    """Best value and quartiles by category: the values of `by`, then all trials."""
    groups = {}
    if study.by is not None:
        for value in space[study.by].values():
            with_value = [trial for trial in trials if trial.params.get(study.by) == value]
            groups[f"{study.by} = {value}"] = with_value
    groups["all"] = list(trials)
    counts = ("Scored trials", "Pruned", "Failed", "Different configurations")
    columns = [Column("category", "Category", numeric=False)]
    for title in ("Max", "q75", "q50", *counts):
        columns.append(Column(title.lower(), title))
    rows = []
    for name, group in groups.items():
        done = select_scored(group)
        cells = [Cell(name)]
        for share in (1.0, 0.75, 0.5):
            cells.append(number(top(done, share)) if done else absent("missing"))
        states = Counter(trial.state.name for trial in group)
        results = [result_of(trial) for trial in group]
        distinct = {tuple(result.runs) or result.label for result in results}
        for count in (len(done), states["PRUNED"], states["FAIL"], len(distinct)):
            cells.append(Cell(str(count), value=count))
        rows.append(TableRow(tuple(cells)))
    caption = (
        f"{study.objective_name} ×100 over trials, as in Table 1 of Farina & Pappadopulo (2024)."
    )
    return Table(
        "summary", "Maximum and quartiles by category", caption, tuple(columns), tuple(rows)
    )


def _explain_confirmation(study: Study) -> list[Block]:
    """Return that the best configuration was not run with the held-out seeds, and how to do that."""
    file = shlex.quote(held_out_file("WORKDIR", study.name))
    command = f"harness compare {file} --workdir WORKDIR"
    seeds = join_values(study.held_out_seeds)
    lacking = (
        f"No run of the best configuration with the held-out seeds ({seeds}) is in this "
        "work directory."
    )
    return [
        Text((lacking,)),
        FactList("confirm", "How to confirm it", (), (command,)),
    ]


def compare_held_out(study: Study, confirmed: Confirmation | None) -> list[Block]:
    """Chosen against held-out scores of the best configuration, or how to get them."""
    if confirmed is None or not confirmed.held_out:
        return _explain_confirmation(study)
    from reports.stats.estimate import mean_sd

    columns = (Column("seed", "Seed", numeric=False), Column("score", study.objective_name, "×100"))
    rows = []
    for part, what in (
        (confirmed.chosen_by, "seeds that chose"),
        (confirmed.held_out, "held-out seeds"),
    ):
        values = []
        ids = []
        for record, value in part:
            score = number(value, records=[record.id])
            rows.append(TableRow((Cell(f"seed {record.seed}"), score), what))
            values.append(value)
            ids.append(record.id)
        mean, sd = mean_sd(values)
        if len(part) > 1:
            average = number(mean, sd=sd, n=len(part), records=ids)
            rows.append(TableRow((Cell("mean"), average), what))
    legend = [
        "Held-out seeds had no part in the choice: their mean is what the configuration can be expected to give."
    ]
    excess = confirmed.optimism
    if excess is not None:
        size = number_text(excess.value, 2, signed=True)
        cell = Cell(
            size,
            f"[{two_digits(excess.low)}, {two_digits(excess.high)}]",
            excess.value,
            state="value",
        )
        rows.append(TableRow((Cell("chosen − held-out mean"), cell), "optimism of the choice"))
        legend.append("Interval: 95 %, Student's, over the held-out seeds.")
    caption = f"The best configuration (trial {confirmed.trial}) by the seeds that chose it and by others."
    return [
        Table(
            "held-out", "Chosen and held-out scores", caption, columns, tuple(rows), tuple(legend)
        )
    ]
