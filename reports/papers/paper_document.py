"""A paper's report: each of its tables with our runs beside the published rows, its figures, every number joined."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from reports.document.blocks import Block, Document, Facts, Figure, Section, Text
from reports.document.table import MINUS, Cell, Column, Table, TableRow, number_text
from reports.papers import missing_experiments
from reports.papers.definition import Definition, PaperTable
from reports.papers.matching import Matching, as_csv, counts, plain, published_file
from reports.papers.paper_tables import Filled, joined_table, paper_table, source_note
from reports.read.comparison_runs import ResultRow, base_name
from reports.read.run_library import RunLibrary

SPACES = "search_spaces.csv"
_KINDS = {
    "inside": "inside our interval",
    "above": "above our interval",
    "below": "below our interval",
    "one seed": "beside a single run",
    "not comparable": "measured but not comparable",
    "not measured": "not measured",
    "not published": "illegible",
}


def describe(definition: Definition, library: RunLibrary) -> tuple[Document, dict[str, str], dict[str, Any]]:
    """The document; further files of the report by their path; further data for data.json."""
    matching = Matching(definition, library)
    sections: list[Section] = []
    shown: list[ResultRow] = []
    experiments = missing_experiments.experiments(matching)
    for table in definition.tables:
        if table.kind == "spaces":
            spaces = search_spaces(matching, table)
            sections += [Section(table.key, _short(table), [spaces])] if spaces else []
            continue
        filled = paper_table(matching, table)
        blocks: list[Block] = [filled.table] if filled.table else []
        blocks += _said(matching, table, filled, list(experiments))
        sections.append(Section(table.key, _short(table), blocks))
        known = {row.key for row in shown}
        shown += [row for row in filled.rows if row.key not in known]
    sections += [section for section in (_figures(matching, shown), _studies(library, definition)) if section.blocks]
    if (together := joined_table(matching)) is not None:
        sections.append(Section("joined", "Published and measured", [together]))
    from reports.tables.row_cards import how_it_was_run

    comparison = library.as_comparison(definition.name, shown, definition.title)
    if shown:
        sections.append(Section("run", "How it was run", how_it_was_run(comparison)))
    sections.append(Section("limits", "Limits", [_limits(matching, shown, comparison.warnings)]))
    document = Document(
        definition.title,
        _headline(matching),
        _facts(matching, shown),
        sections,
        f"{definition.paper}. {definition.description}",
    )
    from reports.read.provenance import provenance_of

    cited = {r.id: r for row in shown for r in row.records}  # by the rows, and by the numbers of studies
    cited |= {i: library.by_id[i] for j in matching.rows for i in j.ours.records if i in library.by_id}
    document.origin = provenance_of(cited.values(), library.workdir)
    files = {"tables/joined.csv": as_csv(matching.rows)}
    files |= {f"experiments/{name}": text for name, text in experiments.items()}
    return document, files, {"report": definition.name, "joined": plain(matching.rows)}


def _short(table: PaperTable) -> str:
    return table.title.partition(" · ")[0]


def _headline(matching: Matching) -> str:
    found = counts(matching.rows)
    said = [f"{found[kind]} {text}" for kind, text in _KINDS.items() if found.get(kind)]
    comparable = sum(found.get(kind, 0) for kind in ("inside", "above", "below"))
    start = f"Of {len(matching.rows)} published numbers: {', '.join(said)}."
    if comparable:
        return f"{start} A number is inside when one more run of ours could well give it."
    return f"{start} No number was measured here on the paper's own base model, text and protocol with several seeds."


def _facts(matching: Matching, shown: list[ResultRow]) -> list[tuple[str, str]]:
    bases = list(dict.fromkeys(row.base_model for row in shown))
    runs = sum(len(row.records) for row in shown)
    return [
        (str(len(matching.definition.tables)), "tables"),
        (str(len(matching.rows)), "published numbers"),
        (str(sum(bool(j.ours.by_seed) for j in matching.rows)), "with a number of ours"),
        (str(len(shown)), "row of ours" if len(shown) == 1 else "rows of ours"),
        (str(runs), "run" if runs == 1 else "runs"),
        (str(len(bases)), "base model" if len(bases) == 1 else "base models"),
    ]


def _said(matching: Matching, table: PaperTable, filled: Filled, experiments: list[str]) -> list[Block]:
    """What of the table could not be measured here, and the command that would."""
    if not filled.missing:
        return []
    items = tuple((label, reason) for label, reason in filled.missing)
    commands: list[str] = []
    if table.kind == "study":
        wanted = dict.fromkeys(row.preset for row in table.rows if row.preset and any(row.label == m for m, _ in items))
        commands += [f"harness study run {preset} --workdir WORKDIR" for preset in wanted]
    else:
        bases = {j.published["base_model"] for j in matching.rows if j.place and j.place.table is table}
        wanted = dict.fromkeys(name for name in experiments if name.removesuffix(".toml") in bases)
        commands += [f"harness compare experiments/{name} --workdir WORKDIR" for name in wanted]
    total = sum(bool(row.published) for row in table.rows)
    title = f"Published rows without a comparable number of ours: {len(items)} of {total}"
    blocks: list[Block] = [Facts(f"missing-{table.key}", title, items, tuple(commands))]
    if not filled.rows and not (filled.table and any(row.block.endswith("measured here") for row in filled.table.rows)):
        how = f" To fill it: {commands[0]}" if commands else ""
        more = f" (and {len(commands) - 1} more below)" if len(commands) > 1 else ""
        why = f": {filled.reason}" if filled.reason else ""
        blocks.insert(0, Text((f"Nothing of this table was measured in this work directory{why}.{how}{more}",)))
    return blocks


def search_spaces(matching: Matching, table: PaperTable) -> Table | None:
    """What the paper searched, and what our studies and runs tried."""
    lines: dict[tuple[str, ...], list[str]] = {}  # equal on several base models: one line
    for p in published_file(matching.definition, SPACES):
        if p["paper"].startswith(tuple(table.papers)):
            key = (p["model"], p["task"], p["metric"], p["value"], p["source_mark"], p["notes"])
            lines.setdefault(key, []).append(p["base_model"])
    rows = []
    for (model, task, metric, value, mark, notes), bases in lines.items():
        field, method = table.fields.get(task, ""), _method_of(matching, model)
        tried = _tried(matching, method, field, logarithm=task.startswith("log10")) if method and field else ""
        note = [n for n in (notes, source_note(mark) if mark != "paper" else "") if n]
        shown = value.replace(";", ", ")
        shown = shown.replace("-", MINUS) if task.startswith("log10") else shown
        cells = (Cell(task), Cell(metric), Cell(shown).noted(*note), Cell(tried or "–"))
        rows.append(TableRow((*cells, Cell(", ".join(bases))), model))
    if not rows:
        return None
    columns = (
        Column("parameter", "Hyperparameter", numeric=False),
        Column("kind", "What it is", numeric=False, aside=True),
        Column("published", "Published", numeric=False),
        Column("tried", "Tried here", "in studies", numeric=False),
        Column("base", "Base model", "of the paper", numeric=False, aside=True),
    )
    return Table(table.key, table.title, table.caption, columns, tuple(rows), tuple(table.notes))


def _method_of(matching: Matching, model: str) -> str:
    """Our method of a model of the file of search spaces, by the label that a row of the paper has."""
    for table in matching.definition.tables:
        for row in table.rows:
            if row.method and (row.label.startswith(model) or model.startswith(row.label)):
                return row.method
    return ""


_STRENGTHS = ("dropout", "shuffle", "eda")  # of augmentations: the number of one that is not used was not tried


def _tried(matching: Matching, method: str, field: str, *, logarithm: bool) -> str:
    import math

    values = {
        json.dumps(record.config[field]): record.config[field]
        for trial in matching.library.trials
        for record in trial.runs[:1]
        if record.method == method and record.config.get(field) is not None
        and (field not in _STRENGTHS or record.config.get("view", field) == field)
    }  # fmt: skip
    numbers = sorted(v for v in values.values() if isinstance(v, int | float))
    if logarithm:
        numbers = [math.log10(v) for v in numbers if v > 0]
    if len(numbers) > 8:
        return f"{len(numbers)} values from {numbers[0]:.4g} to {numbers[-1]:.4g}"
    if numbers:
        return ", ".join(f"{v:.4g}" for v in numbers).replace("-", MINUS if logarithm else "-")
    return ", ".join(sorted(str(v) for v in values.values()))


def _figures(matching: Matching, shown: list[ResultRow]) -> Section:
    from reports.papers import ablation_figures, hyperparameter_scans, published_alignment

    makers: dict[str, Callable[[], list[Figure | None]]] = {
        "alignment-uniformity": lambda: [published_alignment.alignment_uniformity(matching)],
        "declutr-sampling": lambda: [ablation_figures.sampling(matching)],
        "declutr-objective": lambda: [ablation_figures.objective(matching)],
        "declutr-extensions": lambda: [ablation_figures.extensions(matching)],
        "histograms": lambda: _histograms(matching, shown),
        "layers": lambda: _layers(matching),
        "tradeoff": lambda: _tradeoff(matching, shown),
        "scan-barlow-twins": lambda: [hyperparameter_scans.barlow_twins(matching)],
        "scan-vicreg": lambda: [hyperparameter_scans.vicreg(matching)],
    }
    blocks: list[Block] = []
    absent = []
    for name in matching.definition.figures:
        drawn = [figure for figure in makers[name]() if figure is not None]
        blocks += drawn
        absent += [] if drawn else [_ABSENT[name]]
    if absent:
        blocks.append(Text(tuple(f"Not drawn: {text}" for text in absent), bullets=True))
    return Section("figures", "Figures", blocks)


_ABSENT = {
    "alignment-uniformity": "alignment against uniformity. No run has the suite geometry.",
    "declutr-sampling": "score by anchors, positives, temperature and sampling (Figure 2). "
    "harness compare declutr-sampling --workdir WORKDIR makes its runs.",
    "declutr-objective": "objectives and amount of text (Figure 3). "
    "harness compare declutr-objective --workdir WORKDIR makes its runs.",
    "declutr-extensions": "projection head and memory bank (Figure S1). "
    "harness compare declutr-extensions --workdir WORKDIR makes its runs.",
    "histograms": "cosines by gold score. No run stored them: the suites geometry and embedded do.",
    "layers": "score by layer and pooling (Figure 1). No run has the suite layers.",
    "tradeoff": "score against cost. No run has a whole STS average.",
    "scan-barlow-twins": "scores of Barlow Twins by the weight of redundancy reduction (Figure 1). No study tried two "
    "values of it with an augmentation of Table 1: harness study run barlow-twins-shuffle --workdir WORKDIR does.",
    "scan-vicreg": "scores of VICReg by the weights of covariance and variance (Figure 2). No study tried two values "
    "of each with an augmentation of Table 1: harness study run vicreg-shuffle --workdir WORKDIR does.",
}


def _histograms(matching: Matching, shown: list[ResultRow]) -> list[Figure | None]:
    from reports.figures.cosine_histograms import histograms
    from reports.stats.targets import targets

    comparison = matching.library.as_comparison(matching.definition.name, shown)
    target = next(iter(targets(comparison)), None)
    return [histograms(comparison, task, source, target) for task, source in comparison.columns("geometry")]


def _layers(matching: Matching) -> list[Figure | None]:
    from reports.figures.layer_maps import layer_map
    from reports.stats.layer_grids import grids

    rows = [row for row in matching.library.rows if any(s.suite == "layers" for r in row.finished for s in r.scores)]
    comparison = matching.library.as_comparison(matching.definition.name, rows)
    return [layer_map(comparison, grid) for grid in grids(comparison)]


def _tradeoff(matching: Matching, shown: list[ResultRow]) -> list[Figure | None]:
    from reports.figures.cost_tradeoff import tradeoff
    from reports.stats.targets import targets

    comparison = matching.library.as_comparison(matching.definition.name, shown)
    return [tradeoff(comparison, next(iter(targets(comparison)), None))]


def _studies(library: RunLibrary, definition: Definition) -> Section:
    """The summaries of the studies of the work directory as they wrote them."""
    section = Section("studies", "Studies of this work directory")
    if not any(table.kind == "study" for table in definition.tables):
        return section
    rows = []
    settings: dict[str, set[str]] = {}
    for trial in library.trials:
        settings.setdefault(trial.study, set()).add(f" · {library.setting_names[trial.setting]}")
    for name, lines in library.summaries.items():
        said = next(iter(settings[name])) if len(settings.get(name, ())) == 1 else ""
        for line in lines:
            best = next((key for key in ("max", "min") if key in line), "max")
            cells = [Cell(line.get("category", ""))]
            for key in (best, "q75", "q50"):
                text = line.get(key, "")
                try:
                    value = float(text)
                except ValueError:
                    cells.append(Cell("–", state="empty"))
                else:
                    cells.append(Cell(number_text(value, 2), value=value, state="value"))
            cells.append(Cell(line.get("scored trials", "")))
            rows.append(TableRow(tuple(cells), name + said))
    if rows:
        columns = (
            Column("category", "Category", numeric=False), Column("max", "Best"), Column("q75", "q75"),
            Column("q50", "q50"), Column("trials", "Trials"),
        )  # fmt: skip
        caption = "Each study's own objective, times 100; quartiles by linear interpolation."
        section.blocks.append(Table("studies", "Studies", caption, columns, tuple(rows)))
    return section


def _limits(matching: Matching, shown: list[ResultRow], warnings: list[str]) -> Text:
    said = [
        "The interval of a row holds its spread over seeds on the same test pairs, under a normal distribution; with "
        "few seeds it is wide, and a published number inside of it is no proof of agreement.",
        "Comparable means: the same weights of the base model, the same training text and size, the same data, "
        "preparation and metric of the score, as the records say. Hyperparameters may still differ: the cards say "
        "which were used.",
    ]
    if any(len(row.finished) == 1 for row in shown):
        said.append("A row with one seed has no spread: its difference to a published number says little.")
    if len({row.base_model for row in shown}) > 1 or any(base_name(r.base_model) == "mini-bert" for r in shown):
        said.append("Small base models show how methods order among themselves, not what a paper's model reaches.")
    found = [*matching.library.warnings, *warnings]
    return Text((*said, *(f"Warning: {text}." for text in dict.fromkeys(found))), bullets=True)
