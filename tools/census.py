"""`python -m tools.census WORKDIR`: the runs of comparisons/census.toml there become what ships.

Written are the records (studies/census.tar.xz), the table of all rows (studies/census.csv) and the
figure of docs/census.md; `python -m docs.make` puts the table into the documentation.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.files.atomic import write_atomic
from harness.files.printable import tell, tell_error
from harness.results.elsewhere import open_workdir
from harness.sources.pair_sets import PHENOMENA
from harness.tasks.phenomena import TAGS
from reports.decide.question import comparison_of, question_of
from reports.document.table import letters
from reports.figures.intervals import name_lines
from reports.figures.labels import short
from reports.figures.style import COLOURS, MUTED, finish, new, style
from reports.load import RecordedResults
from reports.results import ResultRow, find_start
from reports.stats.verdicts import Question, Ranking
from studies import CENSUS, CENSUS_NAME, CENSUS_TABLE
from tools.shipped import pack

FIGURE = Path(__file__).parent.parent / "docs" / "static" / "census.svg"
OTHERS = ("STS-B", PHENOMENA, *(f"{PHENOMENA}-{tag}" for tag in TAGS))
COLUMNS = (
    "block",
    "place",
    "row",
    "base model",
    "score",
    "deviation",
    "seeds",
    "low",
    "high",
    "first rank",
    "last rank",
    "group",
    "start",
    *OTHERS,
)


def rank_rows(workdir: Path) -> list[dict[str, str]]:
    """Return a line for each row of each block of the file, best first.

    Scores are in points, on the primary task; `low` and `high` bound the 95 % interval of the mean
    over seeds and examples; rows of a block that share a letter of `group` do not differ
    significantly; `start` is the score of the row's untrained start.

    Raises:
        InputError: no census there, or none of its rows can be judged.
    """
    census = comparison_of(workdir, CENSUS_NAME)
    starts = question_of(census, "")
    lines: list[dict[str, str]] = []
    for part in census.parts:
        if not any(row.finished and row.is_trained for row in part.rows):
            continue  # its own rows are not made yet
        question = question_of(part, "")
        for ranking in question.blocks().values():
            lines += _rank_block(part, ranking, starts)
    return lines


def _rank_block(
    part: RecordedResults, ranking: Ranking, starts: Question
) -> Iterator[dict[str, str]]:
    every = [row for block in starts.blocks().values() for row in (*block.rows, *block.left_out)]
    others = _score_others(part, ranking)
    groups = ranking.groups()
    for place, row in enumerate(ranking.judged):
        scores = 100 * ranking.runs(row)
        interval = ranking.significance.interval_of_mean(row, ranking.target)
        ranks = ranking.rank_interval(row) or ("", "")
        start, _ = find_start(row, every)
        members = [i for i, group in enumerate(groups) if place in group]
        known: dict[str, Any] = {
            "block": part.title,
            "place": place + 1,
            "row": row.label,
            "base model": row.base_model,
            "score": f"{scores.mean():.2f}",
            "deviation": f"{scores.std(ddof=1):.2f}" if len(scores) > 1 else "",
            "seeds": len(scores),
            "low": f"{100 * interval.low:.2f}",
            "high": f"{100 * interval.high:.2f}",
            "first rank": ranks[0],
            "last rank": ranks[1],
            "group": " ".join(letters(i) for i in members),
            "start": "" if start is None else f"{_mean_of(starts, start):.2f}",
        }
        for task in OTHERS:
            known[task] = others.get((row.label, task), "")
        yield {key: str(value) for key, value in known.items()}


def _score_others(part: RecordedResults, ranking: Ranking) -> dict[tuple[str, str], str]:
    """(label, task) -> mean score on the other tasks, in points."""
    found = {}
    for task in OTHERS:
        target = question_of(part, task).target
        for row in ranking.judged:
            runs = ranking.significance.by_seed(row, target)
            if runs is not None:
                found[row.label, task] = f"{100 * runs.scores.mean():.2f}"
    return found


def _mean_of(question: Question, row: ResultRow) -> float:
    runs = question.significance.by_seed(row, question.target)
    assert runs is not None
    return 100 * float(runs.scores.mean())


def write_table(lines: list[dict[str, str]], path: Path) -> None:
    """Write the lines of `rank_rows` as CSV."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_atomic(path, buffer.getvalue().encode())


def draw(lines: list[dict[str, str]]) -> str:
    """Return the figure of all rows as SVG: a panel a block, means with their 95 % intervals and a
    mark at the untrained start.
    """
    blocks = list(dict.fromkeys(line["block"] for line in lines))
    by_block = {block: [one for one in lines if one["block"] == block] for block in blocks}
    sizes = [len(some) for some in by_block.values()]
    with style():
        plot = new(7.2, 0.6 * len(sizes) + 0.19 * sum(sizes))
        panels = plot.subplots(len(sizes), 1, sharex=True, squeeze=False, height_ratios=sizes)
        for axes, (block, some) in zip(panels[:, 0], by_block.items(), strict=True):
            for y, line in enumerate(reversed(some)):
                _draw_row(axes, y, line)
            name_lines([axes], [short(line["row"]) for line in reversed(some)])
            axes.tick_params(axis="y", labelsize=7)
            axes.set_title(block, fontsize=9)
        panels[-1, 0].set_xlabel("Embedded-STS-natural, Spearman ×100")
        alt = "; ".join(f"{line['row']} {line['score']}" for line in lines)
        return finish(plot, "census", "", "", f"All rows of the census: {alt}").svg


def _draw_row(axes: Any, y: int, line: dict[str, str]) -> None:
    is_first = line["first rank"] == "1"
    colour = COLOURS[0] if is_first else MUTED
    ends = [float(line["low"]), float(line["high"])]
    axes.plot(ends, [y, y], color=colour, linewidth=3, alpha=0.35, solid_capstyle="butt")
    axes.plot([float(line["score"])], [y], "o", color=colour, markersize=3.5)
    if line["start"]:
        start = float(line["start"])
        axes.plot([start, start], [y - 0.4, y + 0.4], color=COLOURS[1], linewidth=1)


def main(workdir: Path) -> None:
    """Write the archive, the table and the figure, and name what is not made yet.

    Raises:
        InputError: no census there, or a damaged record.
    """
    left = pack(workdir, CENSUS_NAME, CENSUS)
    with open_workdir(CENSUS) as folder:  # so that the table is that of the records that ship
        lines = rank_rows(folder)
    write_table(lines, CENSUS_TABLE)
    FIGURE.write_text(draw(lines), encoding="utf-8")
    tell(f"{CENSUS.name}: {CENSUS.stat().st_size:,} bytes")
    if left:
        tell(f"not in it, as some of their runs are not made yet: {', '.join(left)}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except HarnessError as error:
        tell_error(str(error))
        sys.exit(error.exit_code)
