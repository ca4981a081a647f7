"""What a comparison cannot say."""

from __future__ import annotations

from reports.document.blocks import Text
from reports.read.comparison_runs import Comparison, seeded
from reports.stats.significance import Significance
from reports.tables import contamination

_ENOUGH = 5  # seeds whose spread says something of the runs' own


def limits(comparison: Comparison, significance: Significance) -> Text:
    """What a reader must not conclude. Call last: reading pairs and curves fills the comparison's
    warnings.
    """
    said = []
    seeds = [len(row.finished) for row in comparison.rows if row.finished and seeded(row)]
    if seeds and min(seeds) < _ENOUGH:
        said.append(
            f"Some rows have only {min(seeds)} seed{'s' if min(seeds) > 1 else ''}. What is known of their spread "
            "comes in part from other rows and from assumptions (docs/statistics.md). Rows that depend on a "
            "seed and have one or two are not tested."
        )
    said.append(
        "Intervals cover the choice of seeds and of test examples. They do not cover the choice of hyperparameters, "
        "training text and base model: with other settings the order of rows may differ."
    )
    if selected := sorted(
        {str(r.dev["task"]) for r in comparison.records if r.dev and r.dev.get("task")}
    ):
        said.append(
            f"Trained rows use the checkpoint with the best score on the dev part of {', '.join(selected)}. No test "
            "score took part in this choice, but tasks of the same kind are favoured."
        )
    said += contamination.remarks(comparison)
    if changed := comparison.schedule.get("instead_of"):
        own = ", ".join(f"{label} (every {every:,})" for label, every in changed.items())
        said.append(
            f"All rows were scored on the dev set every {comparison.schedule['every']:,} training steps; the presets "
            f"of some rows say otherwise: {own}."
        )
    if comparison.columns("embedded"):
        said.append(
            "Texts and gold scores of the embedded tasks were written by language models. They show how methods differ "
            "on a small model, not how methods rank on STS-B or another public benchmark."
        )
    names = ", ".join(row.label for row in comparison.rows if row.unfinished and row.finished)
    lacking = ", ".join(
        r.id for row in comparison.rows for r in row.finished if significance.lacks_examples(r)
    )
    unlike = ", ".join(sorted({run for run, _, _ in significance.unlike}))
    aside = ", ".join(r.id for r in comparison.set_aside)
    found = {
        f"Means are over the seeds that finished, which flatters a method that sometimes collapses: {names}.": names,
        f"Runs without stored examples have no intervals and are not tested: {lacking}.": lacking,
        f"Runs scored on other examples than the rest have no intervals and are not tested: {unlike}.": unlike,
        f"Runs in no table, since their row has newer runs or another configuration: {aside}.": aside,
    }
    said += [text for text, used in found.items() if used]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for left in comparison.not_compared:
        by_reason.setdefault((left["source"], left["why"]), []).append(left["row"])
    said += [
        f"Rows of {source} that are not compared: {', '.join(rows)}: {why}."
        for (source, why), rows in by_reason.items()
    ]
    said += [f"Warning: {text}." for text in dict.fromkeys(comparison.warnings)]
    return Text(tuple(said), bullets=True)
