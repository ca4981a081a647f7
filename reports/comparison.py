"""A comparison as a document: every table, figure and remark, in the order of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.document.blocks import Block, Document, Figure, Section
from reports.document.table import Table
from reports.read.comparison_runs import Comparison
from reports.read.run_details import described

if TYPE_CHECKING:
    from reports.stats.resamples import Analysis


_NO_TASKS = ("geometry", "layers", "efficiency")  # suites that look at a model rather than score it


def describe(comparison: Comparison) -> Document:
    """The comparison as a document: every table, figure and remark."""
    from reports.figures import curves
    from reports.figures.cost_tradeoff import tradeoff
    from reports.figures.differences import forest
    from reports.figures.layer_maps import layer_map
    from reports.stats.resamples import Analysis, headline
    from reports.tables import how_it_was_run as provenance
    from reports.tables import mteb_categories
    from reports.tables.accuracies import accuracy_tables
    from reports.tables.geometry_and_cost import cost_table, geometry_tables
    from reports.tables.languages import multilingual_table
    from reports.tables.layers import grids, layer_tables
    from reports.tables.scores import against_base, score_tables
    from reports.tables.seconds import efficiency_tables
    from reports.tables.seeds_and_ranks import certainty
    from reports.tables.tuned_rows import tuning_table

    analysis = Analysis(comparison)
    logs = curves.read_curves(comparison)
    conclusion = headline(comparison, analysis)
    first = next(iter(analysis.targets), None)
    tables = score_tables(comparison, analysis)
    sections = [
        _section("scores", "Scores", *tables, *accuracy_tables(comparison), multilingual_table(comparison)),
        _section("mteb", "MTEB", *mteb_categories.mteb_tables(comparison), mteb_categories.embedded_table(comparison)),
        _section(
            "base",
            "Against the untrained base",
            against_base(comparison, analysis),
            forest(comparison, analysis),
        ),
        _section("certainty", "How sure is it", *certainty(comparison, analysis)),
        _section("space", "Alignment and uniformity", *geometry_tables(comparison), *_spaces(comparison, analysis)),
        _section(
            "layers",
            "Layers and poolings",
            *layer_tables(comparison, first),
            *(layer_map(comparison, grid, first) for grid in grids(comparison)),
        ),
        _section(
            "training", "Training", curves.development(comparison, logs, first), curves.losses(comparison, logs, first)
        ),
        _section("tuning", "Tuning", tuning_table(comparison)),
        _section("cost", "Cost", cost_table(comparison), *efficiency_tables(comparison), tradeoff(comparison, first)),
        _section("run", "How it was run", *provenance.how_it_was_run(comparison)),
        _section("limits", "Limits", provenance.limits(comparison, analysis)),
    ]
    kept = [s for s in sections if s.blocks]
    origin = described(comparison.records, comparison.workdir)
    return Document(comparison.title, conclusion, _facts(comparison, tables), kept, comparison.description, origin)


def _section(key: str, title: str, *blocks: Block | None) -> Section:
    return Section(key, title, [block for block in blocks if block is not None])


def _spaces(comparison: Comparison, analysis: Analysis) -> list[Figure | None]:
    """What is drawn of the space: a scatter and the cosines for each data set, then the spectra of all."""
    from reports.figures.cosine_histograms import histograms
    from reports.figures.shown_rows import read_drawn
    from reports.figures.space import scatter
    from reports.figures.spectrum import spectrum

    drawn = read_drawn(comparison)
    found = []
    for task, source in comparison.columns("geometry"):
        data = task.removeprefix("geometry:")
        own = [t for t in analysis.targets if t.key == f"embedded-{data}"]
        same = [t for t in analysis.targets if t.key == f"sts-{source}"]
        target = next(iter([*own, *same, *analysis.targets]), None)
        found.append(scatter(comparison, task, source, target))
        found.append(histograms(comparison, task, source, target, drawn))
    return [*found, spectrum(comparison, next(iter(analysis.targets), None), drawn)]


def _facts(comparison: Comparison, tables: list[Table]) -> list[tuple[str, str]]:
    seeds = sorted({len(row.records) for row in comparison.rows})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    tasks = {(s.task, s.source) for r in comparison.records for s in r.scores if s.suite not in _NO_TASKS}
    tasks = {key for key in tasks if not key[0].startswith("geometry:")}
    facts = [
        (str(len(comparison.rows)), "row" if len(comparison.rows) == 1 else "rows"),
        (str(len(comparison.base_models)), "base model" if len(comparison.base_models) == 1 else "base models"),
        (count, "seed a row" if count == "1" else "seeds a row"),
        (str(len(comparison.records)), "run" if len(comparison.records) == 1 else "runs"),
        (str(len(tasks)), "task" if len(tasks) == 1 else "tasks"),
    ]
    last = max((r.finished for r in comparison.records), default="")
    return facts + ([(last[:10], "last run")] if last else [])
