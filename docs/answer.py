"""The answer that the documentation begins with: the rows that ship, ranked, a page for each of
them, and the live page of any two.

The table is that of `studies/shipped.md`, which `python tools/shipped.py WORKDIR` writes; settings
and curves are those of the records that ship.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from harness.files.printable import markdown_text
from harness.results.elsewhere import open_workdir
from harness.results.store import RunFolder
from reports.document.blocks import slug
from reports.joined.joined_document import describe_joined
from reports.load import RecordedRow, read_comparison
from reports.tables.run_details import describe_row_card
from reports.write.report_folder import write
from studies import SHIPPED, SHIPPED_NAME, SHIPPED_TABLE

_SHOWN = 15
_COLUMNS = 6  # of the table: place, row, score, deviation, seeds, group
_GROUP = 5  # of these columns: the letters of a row
_START = "mean"
FOLDER = "docs/rows"
LIVE = "answer"


def read_table() -> list[list[str]]:
    """Return the head and the rows of the table that ships, without the columns of single tags."""
    lines = SHIPPED_TABLE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, _, *rows = cells
    return [head[:_COLUMNS], *[row[:_COLUMNS] for row in rows if row[0]]]


def describe_answer() -> str:
    """Return which row is the best, what is better than the untrained start, and how far that
    reaches.
    """
    _, *rows = read_table()
    best = rows[0]
    alike = [row[1] for row in rows[1:] if _share_group(best, row)]
    said = f"Of {len(rows)} rows {best[1]} has the highest score, {best[2]}"
    if alike:
        said += f"; it does not differ significantly from {'; '.join(alike)}"
    start = next(row for row in rows if row[1] == _START)
    above = [row for row in rows if float(row[2]) > float(start[2])]
    better = [row for row in above if not _share_group(start, row)]
    return (
        f"{said}. {len(better)} rows are significantly better than untrained mean pooling ({start[2]}); "
        f"{len(above)} have a higher mean.\n\n"
        "This holds for a model of 7 million parameters after 100 training steps of 32 texts, on one set of pairs. "
        "Small runs predict the order of large ones only in part ([what they predict](prediction.md))."
    )


def _share_group(one: list[str], other: list[str]) -> bool:
    return not set(one[_GROUP]).isdisjoint(other[_GROUP])


def answer(link: Callable[[str], str] = markdown_text, shown: int = _SHOWN) -> str:
    """Return the answer and the first rows of the table, in Markdown.

    Args:
        link: label of a row -> its cell.
        shown: number of rows; those of the untrained start are shown in any case.
    """
    head, *rows = read_table()
    lines = [f"| {' | '.join(head)} |", "| ---: | --- | ---: | ---: | ---: | --- |"]
    for place, row in enumerate(rows):
        if place < shown or row[1] == _START:
            cells = [row[0], link(row[1]), *row[2:]]
            lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines)
    return (
        f"{describe_answer()}\n\n{table}\n\nRows that share a letter do not differ significantly.\n"
    )


def name_page(label: str) -> str:
    """Return the name of a row's page, without its ending."""
    return slug(label).lower()


def row_pages() -> dict[str, str]:
    """Return the page of each row that ships, by its path in the site: score, command, curve,
    settings.
    """
    pages = {}
    with open_workdir(SHIPPED) as folder:
        for row in read_comparison(folder, SHIPPED_NAME).rows:
            if not row.added:
                pages[f"{FOLDER}/{name_page(row.label)}.md"] = _describe_row(row, folder)
    return pages


def _describe_row(row: RecordedRow, folder: Path) -> str:
    card = describe_row_card(row)
    lines = [f"# {markdown_text(row.label)}", "", _describe_score(row.label), ""]
    if card.commands:
        lines += ["## To repeat it", "", "```sh", *card.commands, "```", ""]
    curve = _curve(row, folder)
    if curve:
        lines += ["## Dev score during training", "", *curve, ""]
    lines += ["## Settings", "", "| setting | value |", "| --- | --- |"]
    for name, value in card.items:
        lines.append(f"| {markdown_text(name)} | {markdown_text(value)} |")
    return "\n".join(lines) + "\n"


def _describe_score(label: str) -> str:
    """Return the score of a row, its place, and how many rows are better or worse than it."""
    head, *rows = read_table()
    found = next((row for row in rows if row[1] == label), None)
    if found is None:  # its block is ranked in a table of its own
        return "One of the [rows that ship](../index.md)."
    place, _, score, deviation, seeds, _ = found
    spread = f" ± {deviation} over {seeds} seeds" if int(seeds) > 1 else ""
    others = [row for row in rows if row is not found and not _share_group(found, row)]
    better = sum(int(row[0]) < int(place) for row in others)
    worse = len(others) - better
    return (
        f"**{score}**{spread} ({head[2]}): place {place} of the {len(rows)} [rows that ship](../index.md). "
        f"{better} of them are significantly better than it, {worse} significantly worse."
    )


def _curve(row: RecordedRow, folder: Path) -> list[str]:
    """Return a table of the dev score by training step over seeds; nothing of an untrained row."""
    by_step: dict[int, list[float]] = defaultdict(list)
    for record in row.records:
        for line in RunFolder(folder, record.id).curves():
            if line["kind"] == "dev" and "spearman" in line:
                by_step[line["step"]].append(100 * line["spearman"])
    if not by_step:
        return []
    found = ["| training step | mean over seeds | least | most |", "| ---: | ---: | ---: | ---: |"]
    for step, scores in sorted(by_step.items()):
        numbers = (statistics.mean(scores), min(scores), max(scores))
        cells = [str(step), *[f"{number:.2f}" for number in numbers]]
        found.append(f"| {' | '.join(cells)} |")
    return found


def write_live_page(site: Path) -> None:
    """Write the page on which rows are sorted and any two of them compared."""
    with open_workdir(SHIPPED) as folder:
        found = describe_joined(read_comparison(folder, SHIPPED_NAME), [])
    write(found.document, site / LIVE, ["html"], extra={}, data={"pairs": found.pairs})
