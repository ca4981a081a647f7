"""What a comparison cannot say."""

from __future__ import annotations

from reports.document.blocks import Text
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Significance
from reports.tables import contamination


def limits(comparison: Comparison, significance: Significance) -> Text:
    """What a reader must not conclude. Call last: reading pairs and curves fills the comparison's warnings."""
    said = []
    counts = {len(row.finished) for row in comparison.rows if row.supervision != "untrained" and row.finished}
    if counts and min(counts) < 5:
        few = min(counts)
        said.append(
            f"{'A single seed says' if few == 1 else f'Few seeds ({few} for some rows) say'} little about the spread "
            "between runs. Intervals are widened for few seeds (Student's t in place of the normal; rows on one base "
            "model tell each other's spread), but with fewer than five they rest on that more than on data"
            + ("; rows with one seed are not judged." if few == 1 else ".")
        )
    said.append(
        "Intervals hold the chance of test examples and seeds. They do not hold the choice of hyperparameters, "
        "corpus or base model: another setting of a method may reverse its place."
    )
    selected = sorted({str(r.dev["task"]) for r in comparison.records if r.dev and r.dev.get("task")})
    if selected:
        said.append(
            f"Trained rows use the checkpoint that scored best on the dev part of {', '.join(selected)}: no "
            "test score was looked at, but tasks like it are favoured."
        )
    said += contamination.remarks(comparison)
    if changed := comparison.schedule.get("instead_of"):
        own = ", ".join(f"{label} (every {every:,})" for label, every in changed.items())
        said.append(
            f"All rows were scored on the dev set every {comparison.schedule['every']:,} training steps; by "
            f"themselves some are at other times: {own}."
        )
    if comparison.columns("embedded"):
        said.append(
            "Texts and scores of the embedded tasks were made by language models. They show how methods differ on a "
            "small model, not their rank on public benchmarks, and they are not STS-B or any of its kin."
        )
    lost = [row for row in comparison.rows if row.unfinished]
    if any(row.finished for row in lost):
        names = ", ".join(row.label for row in lost if row.finished)
        said.append(
            f"Means of {names} are over the seeds that finished, which flatters a method that sometimes collapses."
        )
    stored = [r.id for row in comparison.rows for r in row.finished if significance.lacks_examples(r)]
    if stored:
        said.append(f"Without stored examples, so left out of intervals and separation marks: {', '.join(stored)}.")
    if significance.unlike:
        runs = ", ".join(sorted({run for run, _, _ in significance.unlike}))
        said.append(f"Scored on other examples than the rest, so left out of intervals and separation marks: {runs}.")
    if comparison.set_aside:
        ids = ", ".join(r.id for r in comparison.set_aside)
        said.append(f"Set aside, since their row has newer runs or another configuration: {ids}.")
    by_reason: dict[tuple[str, str], list[str]] = {}
    for left in comparison.not_compared:
        by_reason.setdefault((left["source"], left["why"]), []).append(left["row"])
    said += [f"Not compared, of {source}: {', '.join(rows)}: {why}." for (source, why), rows in by_reason.items()]
    said += [f"Warning: {text}." for text in dict.fromkeys(comparison.warnings)]
    return Text(tuple(said), bullets=True)
