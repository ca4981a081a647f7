"""What a comparison cannot say."""

from __future__ import annotations

from collections.abc import Sequence

from reports.document.blocks import Text
from reports.load import RecordedResults
from reports.results import ResultRow
from reports.stats.significance import Significance
from reports.stats.verdicts import Ranking, own_against_others, planned_family, starts
from reports.tables import contamination

_ENOUGH = 5  # seeds whose spread says something of the runs' own


def limits(comparison: RecordedResults, significance: Significance) -> Text:
    """What a reader must not conclude. Call last: reading pairs and curves fills the comparison's
    warnings.
    """
    said = [
        *_limits_of_seeds(comparison),
        "Intervals cover the choice of seeds and of test examples. They do not cover the choice of hyperparameters, "
        "training text, base model and tasks: with others the order of rows may differ.",
        *_limits_of_families(comparison, significance),
        *_limits_of_selection(comparison),
        *contamination.remarks(comparison),
        *_limits_of_schedule(comparison),
    ]
    if comparison.columns("embedded"):
        said.append(
            "Texts and gold scores of the embedded tasks were written by language models. They show how methods differ "
            "on a small model, not how methods rank on STS-B or another public benchmark."
        )
    said += _runs_left_out(comparison, significance)
    said += _rows_not_compared(comparison)
    said += [f"Warning: {text}." for text in dict.fromkeys(comparison.warnings)]
    return Text(tuple(said), bullets=True)


def _limits_of_seeds(comparison: RecordedResults) -> list[str]:
    """Say that some rows have few seeds; nothing where all have enough."""
    seeds = []
    for row in comparison.rows:
        if row.finished and row.is_random:
            seeds.append(len(row.finished))
    if not seeds or min(seeds) >= _ENOUGH:
        return []
    if min(seeds) == 1:
        noun = "seed"
    else:
        noun = "seeds"
    return [
        f"Some rows have only {min(seeds)} {noun}. What is known of their spread "
        "comes in part from other rows and from assumptions (docs/statistics.md). Rows that depend on a "
        "seed and have one or two are not tested."
    ]


def _limits_of_families(comparison: RecordedResults, significance: Significance) -> list[str]:
    """Say that each family of differences and each score has 5 % of its own; nothing where there is
    one alone.
    """
    names = []
    if any(len(_find_judged_rows(rows, significance)) > 1 for rows in comparison.blocks.values()):
        names.append("all pairs of rows")
    named = [
        family
        for family in (planned_family(comparison), own_against_others(comparison))
        if family.apart
    ]
    names += [family.name for family in (*named, starts(comparison)) if family.pairs]
    scores = len(significance.targets)
    if not names or len(names) * scores == 1:
        return []
    if len(names) == 1:
        noun = "family"
    else:
        noun = "families"
    if scores == 1:
        by = "one score"
    else:
        by = f"{scores} scores"
    return [
        f"Differences are judged in {len(names)} {noun} ({'; '.join(names)}) by {by}, each with 5 % of its own: "
        "where all rows are equal, more than one such page in twenty shows some false difference."
    ]


def _find_judged_rows(rows: Sequence[ResultRow], significance: Significance) -> list[ResultRow]:
    """Return the rows of a block that are judged by the first target."""
    first = significance.first
    if first is None:
        return []
    return Ranking(rows, significance, first).judged


def _limits_of_selection(comparison: RecordedResults) -> list[str]:
    """Say on which dev sets checkpoints were selected; nothing where none was."""
    tasks = set()
    last: dict[str, None] = {}
    for record in comparison.records:
        if record.config.get("select") == "last":
            last[record.row] = None
        elif record.dev and record.dev.get("task"):
            tasks.add(str(record.dev["task"]))
    if not tasks:
        return []
    but = ""
    if last:
        but = f" (of {', '.join(last)} the last one)"
    return [
        f"Trained rows use the checkpoint with the best score on the dev part of {', '.join(sorted(tasks))}{but}. "
        "No test score took part in this choice, but tasks of the same kind are favoured."
    ]


def _limits_of_schedule(comparison: RecordedResults) -> list[str]:
    """Say of which rows the preset would score more or less often on the dev set; nothing where no
    training was so long that it makes a difference.
    """
    schedule = comparison.file.schedule
    if schedule is None or not schedule.instead_of:
        return []
    finished = [record for row in comparison.rows for record in row.finished]
    longest = max((record.training.get("steps") or 0 for record in finished), default=0)
    if longest <= min(schedule.every, *schedule.instead_of.values()):
        return []
    texts = []
    for label, every in schedule.instead_of.items():
        texts.append(f"{label} (every {every:,})")
    own = ", ".join(texts)
    return [
        f"All rows were scored on the dev set every {schedule.every:,} training steps; the presets "
        f"of some rows say otherwise: {own}."
    ]


def _runs_left_out(comparison: RecordedResults, significance: Significance) -> list[str]:
    """Name the rows and runs of which a part is not in means, intervals or tables."""
    said = []
    names = [row.label for row in comparison.rows if row.unfinished and row.finished]
    if names:
        said.append(
            "Means are over the seeds that finished, which flatters a method that sometimes collapses: "
            f"{', '.join(names)}."
        )
    finished = [record for row in comparison.rows for record in row.finished]
    lacking = [record.id for record in finished if significance.saved_no_examples(record)]
    if lacking:
        said.append(
            f"Runs without stored examples have no intervals and are not tested: {', '.join(lacking)}."
        )
    unlike = sorted({run for run, _, _ in significance.on_other_examples})
    if unlike:
        said.append(
            "Runs scored on other examples than the rest have no intervals and are not tested: "
            f"{', '.join(unlike)}."
        )
    aside = [record.id for record in comparison.superseded]
    if aside:
        said.append(
            "Runs in no table, since their row has newer runs or another configuration: "
            f"{', '.join(aside)}."
        )
    return said


def _rows_not_compared(comparison: RecordedResults) -> list[str]:
    """Name the rows made elsewhere that could not be compared, by source and reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for left in comparison.file.left_out:
        by_reason.setdefault((left.source, left.why), []).append(left.row)
    said = []
    for (source, why), rows in by_reason.items():
        said.append(f"Rows of {source} that are not compared: {', '.join(rows)}: {why}.")
    return said
