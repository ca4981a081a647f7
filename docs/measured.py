"""Tables and sentences of figures that campaigns measured, and of public runs, for `docs.make`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from tools.campaigns.measured import FOLDER, Figure, read_figures

SMALLEST = 0.001  # a smaller p is printed as "< 0.001"


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown, whose first column is text."""
    titles = list(head)
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@cache
def all_figures() -> dict[str, list[Figure]]:
    """Return the figures of all campaigns, by the part that measured them."""
    found: dict[str, list[Figure]] = {}
    for file in sorted(FOLDER.glob("*.csv")):
        for figure in read_figures(file):
            found.setdefault(figure.part, []).append(figure)
    return found


def value_of(part: str, cell: str, name: str) -> float:
    """Return one figure.

    Raises:
        KeyError: no campaign measured it.
    """
    for figure in all_figures()[part]:
        if (figure.cell, figure.name) == (cell, name):
            return figure.value
    raise KeyError(f"{part}: {cell}: {name}")


def table_of(part: str, first: str) -> str:
    """Return the table of a part: a line for each cell, a column for each name.

    What all figures of a column share, their draws or their bound, is in its head.

    Args:
        first: the head of the first column.
    """
    figures = all_figures()[part]
    cells = list(dict.fromkeys(one.cell for one in figures))
    names = list(dict.fromkeys(one.name for one in figures))
    known = {(one.cell, one.name): one for one in figures}
    shared = {name: _shared([one for one in figures if one.name == name]) for name in names}
    draws = {_draws(one) for one in figures} - {""}
    if len(draws) == 1:  # in the first head alone
        first = f"{first} ({draws.pop()})"
        in_head = {
            name: [one for one in words if "draws" not in one] for name, words in shared.items()
        }
    else:
        in_head = shared
    rows = []
    for cell in cells:
        texts = [_text(known.get((cell, name)), shared[name]) for name in names]
        rows.append([cell, *texts])
    head = [first]
    for name in names:
        head.append(f"{name} ({', '.join(in_head[name])})" if in_head[name] else name)
    return markdown(head, rows)


def _shared(figures: Sequence[Figure]) -> list[str]:
    """Return what all figures of a column have in common, in words."""
    found: list[str] = []
    for words in (_draws, lambda one: one.bound):
        texts = {words(one) for one in figures}
        if len(texts) == 1 and texts != {""}:
            found += texts
    return found


def _draws(figure: Figure) -> str:
    return f"{figure.draws:,} draws" if figure.draws else ""


def _text(figure: Figure | None, shared: Sequence[str]) -> str:
    """Return a figure with its draws and its bound, unless these are in the head."""
    if figure is None:
        return "–"
    more = [one for one in (_draws(figure), figure.bound) if one and one not in shared]
    return f"{figure.text} ({', '.join(more)})" if more else figure.text


def until_cost() -> str:
    """Return what adding seeds until it is decided costs, in a paragraph."""
    one = "1 point apart, seeds vary by 0.84 and 0.84"
    wider = "1.5 points apart, seeds vary by 0.84 and 0.84"
    equal = "equal, seeds vary by 0.84 and 0.84"
    found, seeds = (value_of("until", one, name) for name in ("called different", "seeds of a row"))
    return (
        f"That costs power: of two rows one point apart, with seeds 0.84 points apart, {found:.0f} % are found, after\n"
        f"{seeds:.1f} seeds on average; fifteen seeds of each, judged once, find "
        f"{value_of('until', one, 'by 15 seeds at once'):.0f} %. Rows 1.5 points apart are found in\n"
        f"{value_of('until', wider, 'called different'):.0f} %, and equal ones are called different in "
        f"{value_of('until', equal, 'called different'):.1f} %. "
        "[The appendix](#seeds-added-until-it-is-decided) has other spreads.\n"
    )


def naive_looks() -> str:
    """Return how often whoever adds seeds until p < 0.05 is wrong, as the start of a paragraph."""
    name = "by p < 0.05 after each seed"
    figures = [one for one in all_figures()["until"] if one.name == name]
    wrong = [one.value for one in figures if one.cell.startswith("equal")]
    return (
        f"Adding seeds until p < 0.05, up to fifteen, calls equal rows different in {min(wrong):.0f} to "
        f"{max(wrong):.0f} % of comparisons.\n"
    )


def beyond_five() -> str:
    """Return the designs in which one planned pair errs in more than 5 %, by their seeds."""
    of_seeds = []
    for seeds, word in ((3, "three"), (4, "four"), (5, "five"), (10, "ten")):
        cells = [f"{rows} x {seeds}, first 0.84, others 0.2" for rows in (10, 20)]
        values = [
            one.value
            for one in all_figures()["planned"]
            if one.cell in cells and one.name == "called different"
        ]
        of_seeds.append(f"{max(values):.1f} % with {word}")
    lost = [one.value for one in all_figures()["families"] if one.name == "best set"]
    calm = "5 x 3, any two rows"
    found = value_of("calm", calm, "found")
    without = value_of("calm", calm, "found without its seeds")
    return (
        "- **Few seeds of a row that varies four times as much as the others**: they may lie close together by\n"
        f"  chance. Equal rows are called different in up to {', '.join(of_seeds)} seeds. Of two such rows the\n"
        f"  best one is not among those that may be best in up to {max(lost):.1f} %.\n"
        "- **A row that hardly varies beside four others of three seeds** costs more than 5 % of the power for any\n"
        f"  two rows: {found:.1f} % are found where 80 are found without it. Its seeds say nothing about the spread\n"
        f"  of the others, and without them no more than {without:.1f} % can be found. From ten rows on it costs\n"
        "  less than 5 %.\n"
    )


def public_runs() -> str:
    """Return the verdicts on fifty public runs each of SimCSE on four base models, and how many runs
    a difference of one point takes, as `harness verdict` and `harness power` answer today.
    """
    import pandas as pd

    import harness
    from reports.papers import definition
    from reports.papers.public_runs import read_public_runs, values_of

    simcse = definition.load("simcse")
    assert simcse is not None
    runs = read_public_runs(simcse)
    lines = []
    spreads = []
    for row in runs:
        if row["task"] == "Avg.":
            values = pd.Series(values_of(runs, row))
            lines += [(row["base_model"], n, score) for n, score in enumerate(values)]
            spreads.append(f"{row['base_model']} {values.mean():.2f} ({values.std():.2f})")
    frame = pd.DataFrame(lines, columns=["row", "seed", "score"])
    (block,) = harness.verdict(frame).data
    rows = []
    for pair in block["pairs"]:
        p = f"{pair['p']:.3f}" if pair["p"] >= SMALLEST else "< 0.001"
        interval = f"[{pair['low']:+.2f}, {pair['high']:+.2f}]"
        labels = f"{pair['a']}, {pair['b']}"
        rows.append([labels, f"{pair['difference']:+.2f} {interval}", p, pair["verdict"]])
    table = markdown(("rows", "points", f"p, of {block['family']}", "verdict"), rows)
    needed = harness.power(frame, 1.0).data[0]
    return (
        f"Mean and standard deviation of the runs: {', '.join(spreads)}.\n\n{table}\n"
        f"`harness power` takes one spread for all rows, here {needed['sd']:.2f}: a difference of one point then takes "
        f"{needed['needed']} runs of every\nrow, or {needed['needed_planned']} for one planned pair.\n"
    )


MADE: dict[str, Callable[[], str]] = {
    "measured-planned": lambda: table_of("planned", "design (the pair is the first two rows)"),
    "measured-calm": lambda: table_of("calm", "design, beside one row of 0.02"),
    "measured-fifty-seeds": lambda: table_of("fifty-seeds", "rows"),
    "measured-families": lambda: table_of("families", "design"),
    "measured-families-with-examples": lambda: table_of("families-with-examples", "design"),
    "measured-until": lambda: table_of("until", "two rows"),
    "measured-until-in-full": lambda: table_of("until-in-full", "rows"),
    "measured-examples": lambda: table_of("examples", "design"),
    "measured-accuracies": lambda: table_of("accuracies", "true accuracy"),
    "measured-ties": lambda: table_of("ties", "equal rows of three seeds"),
    "measured-power": lambda: table_of("power", "design"),
    "measured-coverage": lambda: table_of("coverage", "a mean of"),
    "measured-gate-loops": lambda: table_of("loops", "changes and rule"),
    "measured-gate-unlike": lambda: table_of("unlike", "loop"),
    "measured-gate-labels": lambda: table_of("labels", "changes of one label"),
    "measured-streams": lambda: table_of("streams", "what a stream brings, runs"),
    "measured-repeated": lambda: table_of("repeated", "effects and score"),
    "measured-published": lambda: table_of("published", "published number"),
    "until-cost": until_cost,
    "naive-looks": naive_looks,
    "beyond-five": beyond_five,
    "public-runs": public_runs,
}
