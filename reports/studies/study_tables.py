"""The tables of a study's report: what is searched, the best trials, held-out seeds, all trials."""

from __future__ import annotations

import shlex
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
        rows.append(
            TableRow(
                (
                    Cell(p.name, code=True),
                    Cell(p.describe()),
                    Cell(
                        " and ".join(f"{key} = {value}" for key, value in p.when.items())
                        or "always"
                    ),
                )
            )
        )
    if study.by is not None:
        caption = f"Every value of {study.by} gets as many trials as any other."
    else:
        caption = ""
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
    columns = [
        Column("trial", "Trial", numeric=False),
        *(
            Column(
                f"p:{p.name}",
                p.name,
                numeric=p.numeric,
                group="Parameters",
            )
            for p in space.parameters
        ),
        Column("objective", study.objective_name, "×100"),
        Column("seeds", "Seeds", numeric=False, aside=True),
        Column("state", "Ended", numeric=False, aside=True),
        Column("seconds", "Seconds", aside=True),
    ]
    rows = []
    for t in trials:
        result = result_of(t)
        complete = t.state.name == "COMPLETE"
        cells = [Cell(str(t.number), value=t.number, records=tuple(result.runs))]
        cells += [_parameter_cell(p, t.params.get(p.name)) for p in space.parameters]
        if complete and t.value is not None:
            sd = _deviation([100 * value for value in result.seed_values])
            cells.append(
                number(
                    100 * t.value,
                    sd=sd,
                    n=len(result.seeds),
                    records=result.runs,
                )
            )
        else:
            cells.append(Cell("–", state="empty"))
        if complete:
            ended = result.status
        else:
            ended = t.state.name.lower()
        cells += [
            Cell(join_values(result.seeds)),
            Cell(ended, notes=(f"trial {t.number}: {result.reason}",) if result.reason else ()),
            Cell("reused") if result.reused else number(result.seconds, digits=1),
        ]
        rows.append(TableRow(tuple(cells)))
    if len(study.seeds) > 1:
        legend = ("Mean ± standard deviation over seeds.", *legend)
    return Table(key, title, caption, tuple(columns), tuple(rows), legend)


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
    groups = [("all", list(trials))]
    if study.by is not None:
        values = space[study.by].values()
        groups = [
            (f"{study.by} = {v}", [t for t in trials if t.params.get(study.by) == v])
            for v in values
        ] + groups
    counts = ("Scored trials", "Pruned", "Failed", "Different configurations")
    columns = [
        Column("category", "Category", numeric=False),
        *(Column(n.lower(), n) for n in ("Max", "q75", "q50")),
    ]
    rows = []
    for name, group in groups:
        done = select_scored(group)
        cells = []
        for share in (1.0, 0.75, 0.5):
            cells.append(number(top(done, share)) if done else absent("missing"))
        ended = []
        for state in ("PRUNED", "FAIL"):
            ended.append(sum(t.state.name == state for t in group))
        distinct = len({tuple(result_of(t).runs) for t in group})
        cells += [Cell(str(count), value=count) for count in (len(done), *ended, distinct)]
        rows.append(TableRow((Cell(name), *cells)))
    columns += [Column(count.lower(), count) for count in counts]
    caption = (
        f"{study.objective_name} ×100 over trials, as in Table 1 of Farina & Pappadopulo (2024)."
    )
    return Table(
        "summary", "Maximum and quartiles by category", caption, tuple(columns), tuple(rows)
    )


def held_out_scores(study: Study, confirmed: Confirmation | None) -> list[Block]:
    """Chosen against held-out scores of the best configuration, or how to get them."""
    if confirmed is None or not confirmed.held_out:
        commands = (
            f"harness compare {shlex.quote(held_out_file('WORKDIR', study.name))} --workdir WORKDIR",
        )
        seeds = join_values(study.held_out_seeds)
        return [
            Text(
                (
                    f"No run of the best configuration with the held-out seeds ({seeds}) is in this work directory.",
                )
            ),
            FactList("confirm", "How to confirm it", (), commands),
        ]
    from reports.stats.estimate import mean_sd

    columns = (Column("seed", "Seed", numeric=False), Column("score", study.objective_name, "×100"))
    rows = []
    for part, what in (
        (confirmed.chosen_by, "seeds that chose"),
        (confirmed.held_out, "held-out seeds"),
    ):
        for record, value in part:
            rows.append(
                TableRow((Cell(f"seed {record.seed}"), number(value, records=[record.id])), what)
            )
        mean, sd = mean_sd([value for _, value in part])
        if len(part) > 1:
            average = number(
                mean,
                sd=sd,
                n=len(part),
                records=[record.id for record, _ in part],
            )
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
