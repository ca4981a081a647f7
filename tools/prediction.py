"""`python tools/prediction.py [WORKDIR]`: do small runs predict the published order? Writes
docs/prediction.md.

For each row whose method has a published STS average with BERT-base: both numbers, their rank
correlation with the interval of Bonett & Wright (Psychometrika 65, 2000), and a figure. Small runs
are the shipped rows, and with WORKDIR also the rows of tools/real_sts.toml, whose finished
comparison it has.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from scipy.stats import spearmanr

from harness.results.elsewhere import open_workdir
from harness.results.published import published_rows
from reports.decide.question import comparison_of, question_of
from reports.document.table import number_text
from reports.figures.labels import place_labels
from reports.figures.style import COLOURS, finish, new, style
from studies import SHIPPED

DOCS = Path(__file__).parent.parent / "docs"
KINDS = ("not trained", "contrastive", "non-contrastive", "supervised")
ROWS = {  # shipped row -> kind, "FILE:MODEL" and task of its published average
    "cls": (0, "scd.csv:BERT [CLS]-embedding"),
    "first-last average": (0, "scd.csv:BERT (first-last avg)"),
    "WK pooling": (0, "sg.csv:BERT + WK pooling"),
    "whitening": (0, "scd.csv:BERT-whitening"),
    "flow": (0, "scd.csv:BERT-flow"),
    "SimCSE": (1, "simcse.csv:SimCSE-BERT unsup"),
    "CT": (1, "scd.csv:CT-BERT"),
    "IS-BERT": (1, "scd.csv:IS-BERT"),
    "CoT-BERT": (1, "reference_repos.csv:Unsupervised CoT-BERT-base"),
    "SG": (1, "sg.csv:SG (L_base)"),
    "SG-OPT": (1, "sg.csv:SG-OPT (L_opt3)"),
    "SG back-translation form (embedded pairs)": (1, "sg.csv:BERT + contrastive (BT)"),
    "SCD": (2, "scd.csv:SCD-BERT"),
    "SBERT (embedded pairs, two classes)": (3, "simcse.csv:SBERT"),
    "SimCSE (supervised, embedded pairs)": (3, "simcse.csv:SimCSE-BERT sup"),
}
NAMES = {
    "SG back-translation form (embedded pairs)": "SG, back-translation",
    "SimCSE (supervised, embedded pairs)": "SimCSE, supervised",
}
SHIPPED_TARGETS = ("Embedded-STS-natural", "Embedded-Phenomena")
REAL = "STS12-16, STS-B, SICK-R"


def published(key: str) -> float:
    """The STS average of a published row with BERT-base."""
    found = [
        float(row["value"])
        for row in published_rows(key)
        if row["task"] in ("Avg.", "STS Avg.", "STS Avg. (all STS test sets)")
        and row["base_model"] == "bert-base"
    ]
    return found[0]


def interval(rho: float, n: int) -> tuple[float, float]:
    """Of Spearman's correlation of n pairs, 95 % (Bonett & Wright 2000)."""
    half = 1.96 * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def correlation(pairs: list[tuple[float, float]]) -> str:
    """ "0.43 [-0.35, 0.86], 9 methods"."""
    rho = float(spearmanr(*zip(*pairs, strict=True)).statistic)
    known = abs(rho) < 1 - 1e-12  # the interval of a perfect order has no width
    limits = (
        f" [{', '.join(number_text(x, 2) for x in interval(rho, len(pairs)))}]" if known else ""
    )
    return f"{number_text(rho, 2)}{limits}, {len(pairs)} methods"


def scores_of(folder: Path, comparison: str, target: str) -> dict[str, float]:
    """Label -> mean of the rows of a comparison."""
    blocks = question_of(comparison_of(folder, comparison), target).blocks().values()
    return {row.label: block.mean(row) for block in blocks for row in block.judged}


def main(workdir: Path | None) -> None:
    """Write the page and its figure."""
    with open_workdir(SHIPPED) as folder:
        found = {target: scores_of(folder, "shipped", target) for target in SHIPPED_TARGETS}
    if workdir is not None:
        found[REAL] = scores_of(workdir, "real_sts", "sts")
    known = {
        label: published(key)
        for label, (_, key) in ROWS.items()
        if any(label in some for some in found.values())
    }
    lines = ["| kind | " + " | ".join(found) + " |", "| --- |" + " ---: |" * len(found)]
    for kind in (None, *range(len(KINDS))):
        cells = []
        for scores in found.values():
            some = [label for label in known if kind in (None, ROWS[label][0]) and label in scores]
            cells.append(
                correlation([(scores[one], known[one]) for one in some]) if len(some) > 4 else "–"
            )
        if set(cells) != {"–"}:
            lines.append(f"| {'all' if kind is None else KINDS[kind]} | {' | '.join(cells)} |")
    table = [
        "| row | published, BERT-base | " + " | ".join(found) + " |",
        "| --- |" + " ---: |" * (len(found) + 1),
    ]
    for label in sorted(known, key=lambda label: -known[label]):
        own = [
            number_text(scores[label], 2) if label in scores else "–" for scores in found.values()
        ]
        table.append(f"| {label} | {known[label]:.2f} | {' | '.join(own)} |")
    with style():
        plot = new(3.8 * len(found), 4.2)
        for axes, (target, scores) in zip(
            plot.subplots(1, len(found), sharey=True), found.items(), strict=True
        ):
            for kind, name in enumerate(KINDS):
                some = [label for label in known if ROWS[label][0] == kind and label in scores]
                if not some:
                    continue
                axes.plot(
                    [scores[one] for one in some],
                    [known[one] for one in some],
                    "o",
                    color=COLOURS[kind],
                    label=name,
                )
            axes.margins(0.18, 0.08)
            axes.set_xlabel(target)
        plot.axes[0].set_ylabel("published STS average, BERT-base")
        plot.axes[0].legend(loc="lower right", fontsize=7)
        for axes, scores in zip(plot.axes, found.values(), strict=True):
            some = [label for label in known if label in scores]
            names = [NAMES.get(label, label.partition(" (")[0]) for label in some]
            place_labels(axes, [(scores[one], known[one]) for one in some], names)
        drawn = finish(plot, "prediction", "", "", "Published scores against those of small runs")
    (DOCS / "static" / "prediction.svg").write_text(drawn.svg, encoding="utf-8")
    text = (DOCS / "prediction.md").read_text("utf-8")
    for name, block in (("correlations", lines), ("scores", table)):
        start, end = f"<!-- {name}: tools/prediction.py -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = before + start + "\n".join(block) + "\n" + rest[rest.index(end) :]
    (DOCS / "prediction.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
