"""Were the texts of the tasks in what a comparison trained or selected on? Checked at its end; it never fails by it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from harness.comparison.plan import Plan, describe_data

if TYPE_CHECKING:
    from harness.contamination.check import CheckedText
    from harness.results.overlaps import Overlap

log = logging.getLogger(__name__)

LARGE = 0.05  # of a task's texts: told
_NAMED = 5  # tasks that a line names


def check_overlaps(plan: Plan, workdir: Path) -> list[str]:
    """Check every text of a plan against its tasks and keep what is found; a line for each text that holds much."""
    lines = []
    try:
        from harness.contamination.check import check

        for name, text in _texts(plan).items():
            lines += _told(name, check(workdir, text, plan.tasks))
    except Exception as error:  # the runs are finished and kept; whatever is wrong here costs a remark
        log.warning("texts of the tasks were not looked for in the training text: %s", error)
    return lines


def _texts(plan: Plan) -> dict[str, CheckedText]:
    """By name: each corpus, and the set that selects checkpoints."""
    from harness.contamination.check import selection_text, training_text

    texts: dict[str, CheckedText] = {}
    for row in plan.rows:
        if (corpus := plan.corpus(row)) is not None:
            texts.setdefault(f"training text {corpus.uri} ({corpus.kind})", training_text(corpus))
        about = describe_data(plan, row).get("dev")
        if plan.dev is not None and about:
            texts.setdefault(f"dev set {plan.dev.name}", selection_text(plan.dev, about))
    return texts


def _told(name: str, overlap: Overlap) -> list[str]:
    much = sorted(
        ((one.share, key) for key, one in overlap.tasks.items() if one.share >= LARGE), key=lambda item: -item[0]
    )
    if not much:
        return []
    named = ", ".join(f"{key.partition(':')[2]} {100 * share:.0f} %" for share, key in much[:_NAMED])
    more = f" and {len(much) - _NAMED} more" if len(much) > _NAMED else ""
    return [f"note: texts of tasks stand in the {name}: {named}{more} (report: scores without them, --without-overlap)"]
