"""A comparison as a document: its sections, and their contents, in the order of the page."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from harness.errors import InputError
from harness.runs.experiment import BudgetSettings
from harness.seeds import seed_text
from reports.comparison.headline import NO_GAIN, headline
from reports.document.blocks import Block, Document, Figure, Section, Text, slug
from reports.load import RecordedResults, RecordedRow
from reports.read.plan_followed import FrozenPlan
from reports.read.provenance import provenance_of
from reports.stats.significance import Significance
from reports.stats.verdicts import planned_family, replaces_model
from reports.tables.builder import TableBuilder, from_other_packages
from reports.tables.suites import NOT_SCORED
from reports.write.markdown import csv_lines

# Key -> title, and the sentence that introduces the section where it is folded.
SECTIONS = {
    "scores": ("Scores", "The scores of all rows on all tasks."),
    "mteb": ("MTEB", "The scores on the tasks of MTEB."),
    "differences": (
        "What differs between rows",
        "The settings in which rows differ; what usually matters is first.",
    ),
    "base": (
        "Named comparisons",
        "The comparisons that the file names, and trained rows against untrained ones.",
    ),
    "certainty": (
        "How sure the result is",
        "All pairs of rows, and the differences that this comparison can detect.",
    ),
    "contamination": (
        "Test text in the training data",
        "How many test texts occur in the text that rows learnt from.",
    ),
    "space": (
        "Alignment and uniformity",
        "How near vectors of similar sentences are, and how evenly vectors spread.",
    ),
    "layers": ("Layers and poolings", "The scores of all layers and poolings."),
    "explore": (
        "Single examples",
        "The examples on which rows differ most, and those that most rows get wrong.",
    ),
    "training": ("Training", "Dev scores and losses during training."),
    "tuning": ("Tuning", "What the search of each row tried and found."),
    "cost": (
        "Cost",
        "Time, memory and speed of training and of inference, and the size of the vectors.",
    ),
}
_LAST = {
    "run": (
        "How it was run",
        "Settings, software, hardware and the commands that repeat each row.",
    ),
    "limits": ("Limits", ""),  # what reading the others has shown is there too
}
_IN_USE = (
    "Each row is compared with {}, the model in use. Row and run are chosen by the dev set, and the "
    "intervals, from the test examples, hold for all rows at once."
)
_BY_PART = ("scores", "mteb", "differences")  # a file with parts has these once for each
_VARIED_ALONE = (
    'Its runs differ in some streams of random numbers alone: see "Where the spread comes from".'
)


def built_in() -> list[TableBuilder]:
    """Our own parts of the report. What is slow to import is imported by the parts that need it."""
    from reports.explore.section import explore
    from reports.figures import training_curves
    from reports.figures.cost_tradeoff import tradeoff
    from reports.figures.grid_curves import grid_curves
    from reports.figures.intervals import overview
    from reports.papers.beside import published_tables
    from reports.tables.certainty import (
        against_base,
        all_pairs,
        interim_analyses_table,
        planned_tables,
        spread_table,
    )
    from reports.tables.compression import compression_figure, compression_tables
    from reports.tables.contamination import contamination
    from reports.tables.cost import cost_table, efficiency_tables
    from reports.tables.licences import licence_table
    from reports.tables.limits import limits
    from reports.tables.mteb import mteb_tables
    from reports.tables.row_differences import difference_table
    from reports.tables.run_details import how_it_was_run, tuning_table
    from reports.tables.space import geometry_tables
    from reports.tables.suites import RETRIEVAL, sts_tables, suite_tables

    return [
        TableBuilder("scores", overview, 50),
        TableBuilder("scores", lambda c, b: grid_curves(c, b.first), 60),
        TableBuilder("scores", sts_tables, 100, ("sts", "embedded")),
        TableBuilder("scores", published_tables, 450),
        TableBuilder("mteb", mteb_tables, 100, ("mteb",)),
        TableBuilder("mteb", partial(suite_tables, suites=RETRIEVAL), 200, RETRIEVAL),
        TableBuilder("differences", lambda c, _: difference_table(c), 900),
        TableBuilder("base", lambda c, _: _plan_text(c), 10),
        TableBuilder("base", against_base, 100),
        TableBuilder("base", planned_tables, 50),
        TableBuilder("certainty", interim_analyses_table, 40),
        TableBuilder("certainty", all_pairs, 50),
        TableBuilder("certainty", spread_table, 150),
        TableBuilder("contamination", lambda c, _: contamination(c), 100),
        TableBuilder("space", lambda c, _: geometry_tables(c), 100, ("geometry",)),
        TableBuilder("space", _spaces, 200),
        TableBuilder("layers", _layers, 100, ("layers",)),
        TableBuilder("explore", explore, 100),
        TableBuilder("training", lambda c, b: training_curves.development(c, b.first), 100),
        TableBuilder("training", lambda c, b: training_curves.losses(c, b.first), 200),
        TableBuilder("tuning", lambda c, _: tuning_table(c), 100),
        TableBuilder("cost", lambda c, _: cost_table(c), 100),
        TableBuilder("cost", lambda c, _: efficiency_tables(c), 200, ("efficiency",)),
        TableBuilder("cost", lambda c, b: tradeoff(c, b.first), 300),
        TableBuilder("cost", lambda c, _: compression_tables(c), 400, ("compression",)),
        TableBuilder("cost", lambda c, b: compression_figure(c, b.first), 500),
        TableBuilder("run", lambda c, _: how_it_was_run(c), 100),
        TableBuilder("run", lambda c, _: licence_table(c), 200),
        TableBuilder("limits", limits, 100),
    ]


def describe(comparison: RecordedResults) -> Document:
    """The comparison as a document: every table, figure and remark."""
    significance = Significance(comparison)
    said = headline(comparison, significance)
    sections = [section for section in _sections(comparison, significance) if section.blocks]
    for section in sections[1:]:
        section.folded = section.key != "limits"  # the first one holds the answer
    origin = provenance_of([*comparison.records, *comparison.partial_seed_runs])
    facts = list_facts(comparison)
    text = comparison.description
    # the planned pairs, and the best
    if comparison.baseline or comparison.contrasts:
        first = 2
    else:
        first = 1
    if said[0].startswith(NO_GAIN):
        first += 1
    return Document(
        comparison.title,
        " ".join(said),
        facts,
        sections,
        text,
        origin,
        answer=" ".join(said[:first]),
    )


def _sections(comparison: RecordedResults, significance: Significance) -> Iterator[Section]:
    from reports.tables.suites import other_tables

    builders = [*built_in(), *from_other_packages()]
    shown: set[str] = set()
    for builder in builders:
        shown.update(builder.suites)
    builders.append(TableBuilder("scores", partial(other_tables, shown=shown), 400))
    builders.sort(key=lambda builder: builder.order)
    own = {}
    for b in builders:
        if b.section not in SECTIONS | _LAST:
            own[b.section] = (b.section, "Added by another package.")
    for part in comparison.parts:
        yield _part(part, [builder for builder in builders if builder.section in _BY_PART])
    for key, (title, lead) in (SECTIONS | own | _LAST).items():
        if comparison.parts and key in _BY_PART:
            continue
        parts = [builder for builder in builders if builder.section == key]
        yield Section(key, title, _build(parts, comparison, significance), lead)


def _build(
    builders: Iterable[TableBuilder], comparison: RecordedResults, significance: Significance
) -> list[Block]:
    """Return the blocks that some builders make of a comparison, those that are there."""
    blocks = []
    for builder in builders:
        made = builder.build(comparison, significance)
        if not isinstance(made, Iterable):
            made = [made]
        for block in made:
            if block is not None:
                blocks.append(block)
    return blocks


def _part(part: RecordedResults, builders: list[TableBuilder]) -> Section:
    """The scores of one block of the file: its own rows alone, on what it asks for."""
    if part.partial_seed_runs and all(
        len(row.records) < 2 for row in part.rows
    ):  # one run a row that counts: no table of scores
        if part.description:
            alone: list[Block] = [Text((part.description, _VARIED_ALONE))]
        else:
            alone = []
        return Section(
            f"part-{slug(part.name)}",
            part.title,
            alone,
            "The rows of this part of the file.",
        )
    significance = Significance(part)
    blocks = []
    for block in _build(builders, part, significance):
        blocks.append(
            block if isinstance(block, Text) else replace(block, key=f"{part.name}-{block.key}")
        )
    if part.description:
        said = [Text((part.description,))]
    else:
        said = []
    return Section(
        f"part-{slug(part.name)}",
        part.title,
        [*said, *blocks],
        "The rows of this part of the file.",
    )


def _plan_text(comparison: RecordedResults) -> list[Block | None]:
    """Return a paragraph on whether the comparison follows its plan; nothing without a plan and
    without pairs that the file names.
    """
    plan = comparison.plan
    if plan is None:
        if not (comparison.baseline or comparison.contrasts):
            return []
        if replaces_model(comparison):
            return [
                Text(
                    (
                        f"{_IN_USE.format(comparison.incumbent)} {how_to_ask_why(comparison)}".strip(),
                    )
                )
            ]
        what = "The baseline was" if comparison.baseline else "The pairs were"
        ask = how_to_ask_why(comparison)
        return [Text((f"{what} chosen in the experiment file, not frozen. {ask}".strip(),))]
    said = [f"The plan {plan.sha256} was written on {plan.date[:10]}."]
    if not plan.deviations:
        said.append("Everything is as planned.")
    else:
        said.append(f"Deviations from it: {'; '.join(plan.texts)}.")
    if plan.deviates_by_choice:
        said.append(
            "So its pairs are judged among all pairs of rows, not as a family of their own."
        )
    said.append(how_to_ask_why(comparison))
    return [Text((" ".join(filter(None, said)),))]


def how_to_ask_why(comparison: RecordedResults) -> str:
    """Return how to find which settings make the difference of the first planned pair; nothing
    where no pair has runs.
    """
    pairs = planned_family(comparison).pairs
    if not pairs or pairs[0][0].source or pairs[0][1].source:
        return ""
    a, b = (shlex.quote(row.label) for row in pairs[0])
    return f"Which settings make the difference: harness why {a} {b}."


def _spaces(comparison: RecordedResults, significance: Significance) -> list[Figure | None]:
    """What is drawn of the space: a scatter and the cosines for each data set."""
    from reports.figures.alignment_scatter import scatter
    from reports.figures.cosine_histograms import histograms

    figures: list[Figure | None] = []
    for task, source in comparison.columns("geometry"):
        data = task.removeprefix("geometry:")
        own = [t for t in significance.targets if t.key == f"embedded-{data}"]
        same = [t for t in significance.targets if t.key == f"sts-{source}"]
        target = next(iter([*own, *same, *significance.targets]), None)
        figures += [
            scatter(comparison, task, source, target),
            histograms(comparison, task, source, target),
        ]
    return figures


def _layers(comparison: RecordedResults, significance: Significance) -> list[Figure | None]:
    from reports.figures.layer_maps import layer_map
    from reports.records.layer_grids import grids

    return [layer_map(comparison, grid, significance.first) for grid in grids(comparison)]


def span(counts: Iterable[int]) -> str:
    """The least and the most of some numbers: "3", "1 to 3"."""
    some = sorted(set(counts))
    return " to ".join(map(str, dict.fromkeys((some[0], some[-1]))))


def _count_rows(rows: Sequence[RecordedRow]) -> list[tuple[int | str, str, str]]:
    """Count the rows of the comparison, the untrained starts that it added, and the rows of each
    other source; with the words for one and for several.
    """
    without_source = [row for row in rows if not row.source]
    added = sum(row.added for row in without_source)
    own = len(without_source) - added
    counts: list[tuple[int | str, str, str]] = [
        (own, "row", "rows"),
        (added, "untrained start added", "untrained starts added"),
    ]
    for source, number in Counter(row.source for row in rows).items():
        if source:
            counts.append((number, f"row of {source}", f"rows of {source}"))
    return counts


def list_facts(comparison: RecordedResults) -> list[tuple[str, str]]:
    rows = comparison.rows
    runs = {record.id for record in [*comparison.records, *comparison.partial_seed_runs]}
    finished_models = set()
    base_models = set()
    for record in comparison.records:
        if record.spec.finished_model:
            finished_models.add(record.base_model)
        else:
            base_models.add(record.base_model)
    counts = _count_rows(rows)
    counts += [
        (len(base_models), "base model", "base models"),
        (len(finished_models), "finished model", "finished models"),
        (span(len(row.records) for row in rows), "seed a row", "seeds a row"),
        (len(runs), "run", "runs"),
        (_count_tasks(comparison), "task", "tasks"),
    ]
    facts = []
    for count, one, many in counts:
        if count:
            facts.append((str(count), one if str(count) == "1" else many))
    facts += budget_facts(comparison)
    if comparison.plan is not None:
        facts.append(_fact_of_plan(comparison.plan))
    last = max((r.finished for r in comparison.records), default="")
    if last:
        facts.append((last[:10], "last run"))
    return facts


def _count_tasks(comparison: RecordedResults) -> int:
    """Return the number of tasks that rows are scored on; geometry describes vectors."""
    tasks = set()
    for kind in comparison.score_kinds:
        if kind.suite not in NOT_SCORED and not kind.task.startswith("geometry:"):
            tasks.add((kind.task, kind.source))
    return len(tasks)


def _fact_of_plan(plan: FrozenPlan) -> tuple[str, str]:
    date = plan.date[:10]
    count = len(plan.deviations)
    if not count:
        return "as planned", f"on {date}"
    return str(count), f"{'deviation' if count == 1 else 'deviations'} from the plan of {date}"


def budget_facts(comparison: RecordedResults) -> list[tuple[str, str]]:
    """The training budget that all rows share; without one, the planned training steps of the rows."""
    try:
        budget = comparison.file.experiment.get("budget") or {}
        amount, of = BudgetSettings.parse(budget, "budget").describe()
    except InputError:
        amount = ""
        of = ""
    if amount:
        return [(amount, of)]
    steps = {
        r.training["planned_steps"] for r in comparison.records if r.training.get("planned_steps")
    }
    if len(steps) > 1:
        return [("each row's own", "number of training steps")]
    return [(f"{one:,}", "training steps per row") for one in steps]


def all_scores(comparison: RecordedResults) -> str:
    """The text of the CSV file, a line for each score."""
    fields = (
        "task",
        "suite",
        "source",
        "split",
        "metric",
        "aggregation",
        "value",
        "n",
        "protocol",
        "comparable",
    )
    records = {r.id: r for r in [*comparison.records, *comparison.partial_seed_runs]}.values()
    return csv_lines(
        ["record", "row", "base_model", "seed", "status", *fields],
        [
            [
                r.id,
                r.row,
                r.base_model,
                seed_text(r.random_seed),
                r.status,
                *(getattr(s, field) for field in fields),
            ]
            for r in records
            for s in r.scores
        ],
    )
