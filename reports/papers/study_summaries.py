"""The studies of a work directory, as they summarised themselves."""

from __future__ import annotations

from reports.document.blocks import Section
from reports.document.table import Cell, Column, Table, TableRow, number_text
from reports.papers.definition import Definition
from reports.read.run_library import RunLibrary


def study_summaries(library: RunLibrary, definition: Definition) -> Section:
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
