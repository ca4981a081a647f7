"""`python tools/search_table.py WORKDIR`: what `harness compare shipped --tune N --workdir WORKDIR`
found.

Rows of tools/mini_search.csv are added or replaced, and docs/mini-recipes.md is written from them.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

from harness.files.printable import tell
from studies.storage import studies_in
from studies.trials import best_trials, ended_trials, has_result

TABLE = Path(__file__).with_name("mini_search.csv")
PAGE = Path(__file__).parent.parent / "docs" / "mini-recipes.md"
COLUMNS = ("row", "trials", "recipe before", "best", "values")
TEXT = """# Recipes for the embedded model

This page shows how the presets called "mini" were found: the best of twelve configurations of each method by the
embedded dev set (439 pairs, Spearman ×100), after 100 training steps with batches of 32, on one seed that no comparison
uses. The untrained mean pooling has 63.83. "Before" is the dev score of the configuration that the search began with.

`harness compare shipped --tune 12 --workdir WORKDIR` searches; `python tools/search_table.py WORKDIR` writes this page.

| row | trials | before | best | values of the best |
| --- | ---: | ---: | ---: | --- |
"""
END = """
Rows on pairs end after the 15 to 57 steps that the embedded pairs allow. A gain over 63.83 of less than half a point is
within the noise of one seed: from mean pooling, views by dropout alone do not help this model, whatever their loss;
shuffled words and labelled pairs do. Crops of documents gain on the dev set with all five seeds of the shipped row, and
lose 2.4 points on the test pairs. The best configurations of SimCSE, MixCSE, DCLR and InfoNCE (shuffle) have so low a
temperature that their loss is nearly 0 from the start: they hardly train.
"""


def found(workdir: Path) -> list[dict[str, Any]]:
    """A line for each study of the search."""
    lines = []
    for name, stored in studies_in(workdir).items():
        trials = [trial for trial in ended_trials(stored) if has_result(trial)]
        (first, *_), best = [t for t in trials if t.number == 0] or trials, best_trials(stored)[0]
        values = {
            key: f"{value:.2g}" if isinstance(value, float) else str(value)
            for key, value in best.params.items()
        }
        lines.append(
            {
                "row": name.rpartition("--")[2],
                "trials": len(trials),
                "recipe before": f"{100 * first.values[0]:.2f}",
                "best": f"{100 * best.values[0]:.2f}",
                "values": ", ".join(f"{key} {value}" for key, value in values.items()),
            }
        )
    return lines


def main(workdir: Path) -> None:
    """Update the table, and write the page."""
    known: dict[str, dict[str, Any]] = {}
    if TABLE.exists():
        with TABLE.open(newline="") as file:
            known = {line["row"]: line for line in csv.DictReader(file)}
    known |= {line["row"]: line for line in found(workdir)}
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(known.values())
    rows = sorted(known.values(), key=lambda line: -float(line["best"]))
    lines = [f"| {' | '.join(str(line[column]) for column in COLUMNS)} |" for line in rows]
    PAGE.write_text(TEXT + "\n".join(lines) + "\n" + END, encoding="utf-8")
    tell(f"{PAGE}: {len(rows)} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
