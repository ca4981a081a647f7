"""A comparison as a document: its sections, and their contents, in the order of the page."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from harness.errors import InputError
from harness.results.store import read_comparison_file
from harness.runs.experiment import BudgetSettings
from harness.seeds import seed_text
from reports.comparison.deviations import deviations
from reports.comparison.headline import headline
from reports.document.blocks import Block, Document, Figure, Section, Text, slug
from reports.read.comparison_runs import Comparison
from reports.read.provenance import provenance_of
from reports.stats.significance import Significance
from reports.tables.builder import TableBuilder, from_other_packages
from reports.write.markdown import csv_text

# Key -> title, and the sentence that introduces the section where it is folded.
SECTIONS = {
    "scores": ("Scores", "The scores of all rows on all tasks."),
    "mteb": ("MTEB", "The scores on the tasks of MTEB."),
    "differences": (
        "What differs between rows",
        "How the settings of the rows differ; a star marks what usually matters.",
    ),
    "base": (
        "Planned comparisons",
        "Each trained row against its untrained start, and the comparisons that the file plans.",
    ),
    "certainty": (
        "How sure is it",
        "Every seed, all pairs of rows, and the differences that this comparison can detect.",
    ),
    "contamination": ("Test text in the training data", "How many test texts occur in the text that rows learnt from."),
    "space": ("Alignment and uniformity", "The geometry of the vectors: alignment, uniformity, cosines, spectrum."),
    "layers": ("Layers and poolings", "The scores of all layers and poolings."),
    "explore": ("Single examples", "The examples on which rows differ most, and those that most rows get wrong."),
    "training": ("Training", "Dev scores and losses during training."),
    "tuning": ("Tuning", "What the search of each row tried and found."),
    "cost": ("Cost", "Time, memory and speed of training and of inference."),
}
_LAST = {
    "run": ("How it was run", "Settings, software, hardware and the commands that repeat each row."),
    "limits": ("Limits", ""),  # what reading the others has shown is there too
}
_BY_PART = ("scores", "mteb", "differences")  # a file with parts has these once for each
_VARIED_ALONE = 'Its runs differ in some streams of random numbers alone: see "Where the spread comes from".'
_NOT_SCORED = ("geometry", "layers", "efficiency")  # suites that describe a model rather than score it


def built_in() -> list[TableBuilder]:
    """Our own parts of the report. What is slow to import is imported by the parts that need it."""
    from reports.explore.section import explore
    from reports.figures import training_curves
    from reports.figures.cost_tradeoff import tradeoff
    from reports.figures.intervals import forest, overview, spread_figure, strip
    from reports.tables.certainty import against_base, all_pairs, interim_analyses_table, planned_tables
    from reports.tables.contamination import contamination
    from reports.tables.cost import cost_table, efficiency_tables
    from reports.tables.limits import limits
    from reports.tables.mteb import mteb_tables
    from reports.tables.row_differences import difference_table
    from reports.tables.run_details import how_it_was_run, tuning_table
    from reports.tables.seeds import spread_table
    from reports.tables.space import geometry_tables
    from reports.tables.suites import RETRIEVAL, SCORES, sts_tables, suite_tables

    return [
        TableBuilder("scores", overview, 50),
        TableBuilder("scores", sts_tables, 100, ("sts", "embedded")),
        TableBuilder("scores", suite_tables, 200, SCORES),
        TableBuilder("mteb", mteb_tables, 100, ("mteb",)),
        TableBuilder("mteb", partial(suite_tables, suites=RETRIEVAL), 200, RETRIEVAL),
        TableBuilder("differences", lambda c, _: difference_table(c), 900),
        TableBuilder("base", lambda c, _: _as_planned(c), 10),
        TableBuilder("base", against_base, 100),
        TableBuilder("base", forest, 200),
        TableBuilder("base", planned_tables, 50),
        TableBuilder("certainty", interim_analyses_table, 40),
        TableBuilder("certainty", all_pairs, 50),
        TableBuilder("certainty", strip, 100),
        TableBuilder("certainty", spread_table, 150),
        TableBuilder("certainty", spread_figure, 160),
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
        TableBuilder("run", lambda c, _: how_it_was_run(c), 100),
        TableBuilder("limits", limits, 100),
    ]


def describe(comparison: Comparison) -> Document:
    """The comparison as a document: every table, figure and remark."""
    significance = Significance(comparison)
    said = headline(comparison, significance)
    sections = [section for section in _sections(comparison, significance) if section.blocks]
    for section in sections[1:]:
        section.folded = section.key != "limits"  # the first one holds the answer
    origin = provenance_of([*comparison.records, *comparison.held])
    facts, text = _facts(comparison), comparison.description
    first = 2 if comparison.baseline or comparison.contrasts else 1  # the planned pairs, and the best
    return Document(comparison.title, " ".join(said), facts, sections, text, origin, answer=" ".join(said[:first]))


def _sections(comparison: Comparison, significance: Significance) -> Iterator[Section]:
    from reports.tables.suites import other_tables

    builders = [*built_in(), *from_other_packages()]
    shown = {suite for builder in builders for suite in builder.suites}
    builders.append(TableBuilder("scores", partial(other_tables, shown=shown), 400))
    builders.sort(key=lambda builder: builder.order)
    own = {b.section: (b.section, "Added by another package.") for b in builders if b.section not in SECTIONS | _LAST}
    for part in comparison.parts:
        yield _part(part, [builder for builder in builders if builder.section in _BY_PART])
    for key, (title, lead) in (SECTIONS | own | _LAST).items():
        if comparison.parts and key in _BY_PART:
            continue
        parts = [builder for builder in builders if builder.section == key]
        yield Section(key, title, [block for builder in parts for block in builder(comparison, significance)], lead)


def _part(part: Comparison, builders: list[TableBuilder]) -> Section:
    """The scores of one block of the file: its own rows alone, on what it asks for."""
    if part.held and all(len(row.records) < 2 for row in part.rows):  # one run a row that counts: no table of scores
        alone: list[Block] = [Text((part.description, _VARIED_ALONE))] if part.description else []
        return Section(f"part-{slug(part.name)}", part.title, alone, "The rows of this part of the file.")
    significance = Significance(part)
    built = (block for builder in builders for block in builder(part, significance))
    blocks = [block if isinstance(block, Text) else replace(block, key=f"{part.name}-{block.key}") for block in built]
    said = [Text((part.description,))] if part.description else []
    return Section(f"part-{slug(part.name)}", part.title, [*said, *blocks], "The rows of this part of the file.")


def _plan(comparison: Comparison) -> tuple[str, str, list[str]] | None:
    records = [*comparison.records, *comparison.held, *comparison.set_aside]
    return deviations(comparison.workdir, comparison.name, records)


def _as_planned(comparison: Comparison) -> list[Block | None]:
    """Whether the comparison is what its plan said."""
    if (plan := _plan(comparison)) is None:
        return []
    date, digest, found = plan
    said = f"The plan {digest} of {date[:10]} was written before the results. "
    return [Text((f"{said}Deviations from it: {'; '.join(found)}." if found else f"{said}Everything is as planned.",))]


def _spaces(comparison: Comparison, significance: Significance) -> list[Figure | None]:
    """What is drawn of the space: a scatter and the cosines for each data set, then the spectra of all."""
    from reports.figures.alignment_scatter import scatter
    from reports.figures.cosine_histograms import histograms
    from reports.figures.spectrum import spectrum

    figures: list[Figure | None] = []
    for task, source in comparison.columns("geometry"):
        data = task.removeprefix("geometry:")
        own = [t for t in significance.targets if t.key == f"embedded-{data}"]
        same = [t for t in significance.targets if t.key == f"sts-{source}"]
        target = next(iter([*own, *same, *significance.targets]), None)
        figures += [scatter(comparison, task, source, target), histograms(comparison, task, source, target)]
    return [*figures, spectrum(comparison, significance.first)]


def _layers(comparison: Comparison, significance: Significance) -> list[Block | None]:
    from reports.figures.layer_maps import layer_map
    from reports.stats.layer_grids import grids
    from reports.tables.space import layer_tables

    tables = layer_tables(comparison, significance.first)
    return [*tables, *(layer_map(comparison, grid, significance.first) for grid in grids(comparison))]


def _facts(comparison: Comparison) -> list[tuple[str, str]]:
    seeds = sorted({len(row.records) for row in comparison.rows})
    runs = len({record.id for record in [*comparison.records, *comparison.held]})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    tasks = {(s.task, s.source) for r in comparison.records for s in r.scores if s.suite not in _NOT_SCORED}
    tasks = {key for key in tasks if not key[0].startswith("geometry:")}
    own = [row for row in comparison.rows if not (row.added or row.elsewhere)]
    added = sum(row.added and not row.elsewhere for row in comparison.rows)
    elsewhere = Counter(row.elsewhere for row in comparison.rows if row.elsewhere)
    facts = [
        (str(len(own)), "row" if len(own) == 1 else "rows"),
        *([(str(added), "untrained start added" if added == 1 else "untrained starts added")] if added else []),
        *((str(count), f"compared with: {source}") for source, count in elsewhere.items()),
        (str(len(comparison.base_models)), "base model" if len(comparison.base_models) == 1 else "base models"),
        (count, "seed a row" if count == "1" else "seeds a row"),
        (str(runs), "run" if runs == 1 else "runs"),
        (str(len(tasks)), "task" if len(tasks) == 1 else "tasks"),
        *budget_facts(comparison),
    ]
    if (plan := _plan(comparison)) is not None:
        date, _, found = plan
        deviating = f"deviation{'s' if len(found) > 1 else ''} from the plan of {date[:10]}"
        facts.append((str(len(found)), deviating) if found else ("as planned", f"on {date[:10]}"))
    last = max((r.finished for r in comparison.records), default="")
    return facts + ([(last[:10], "last run")] if last else [])


def budget_facts(comparison: Comparison) -> list[tuple[str, str]]:
    """The training budget that all rows share; without one, the planned training steps of the rows."""
    try:
        experiment = (read_comparison_file(comparison.workdir, comparison.name) or {}).get("experiment") or {}
        amount, of = BudgetSettings.parse(experiment.get("budget") or {}, "budget").describe()
    except InputError:
        amount, of = "", ""
    if amount:
        return [(amount, of)]
    steps = {r.training["planned_steps"] for r in comparison.records if r.training.get("planned_steps")}
    if len(steps) > 1:
        return [("each row's own", "number of training steps")]
    return [(f"{one:,}", "training steps per row") for one in steps]


def all_scores(comparison: Comparison) -> str:
    """The text of the CSV file, a line for each score."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = ("task", "suite", "source", "split", "metric", "aggregation", "value", "n", "protocol", "comparable")
    writer.writerow(["record", "row", "base_model", "seed", "status", *fields])
    for r in {r.id: r for r in [*comparison.records, *comparison.held]}.values():
        for s in r.scores:
            values = [getattr(s, field) for field in fields]
            line = [r.id, r.row, r.base_model, seed_text(r.random_seed), r.status, *values]
            writer.writerow([csv_text(value) if isinstance(value, str) else value for value in line])
    return out.getvalue()
