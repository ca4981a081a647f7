"""Tables of docs/validation.md, from what `python -m tools.validate` and the campaigns measured."""

from __future__ import annotations

from collections.abc import Callable

from docs.measured import all_figures, markdown
from tools.validate.evidence import read_evidence
from tools.validate.public_models import PART, case_of, read_published


def public_models() -> str:
    """Return each published score of a public model with ours; a dash where it is not measured."""
    measured = {one.case: one for one in read_evidence() if one.part == PART}
    rows = []
    for (model, task), score in read_published().items():
        one = measured.get(case_of(model, task))
        if one is None:
            ours, date, versions = "–", "", ""
        else:
            ours, date, versions = f"{one.value:.2f}", one.date, one.versions
        rows.append([f"{model}, {task}", f"{score:.2f}", ours, date, versions])
    return markdown(("model, task", "published", "ours", "date", "versions"), rows)


def campaigns() -> str:
    """Return how many figures each part of the campaigns has, and how many break their bound."""
    rows = []
    for part, figures in all_figures().items():
        bounded = [one for one in figures if one.bound]
        broken = [one for one in bounded if one.is_broken]
        draws = sum(one.draws for one in figures)
        rows.append([part, f"{len(figures)}", f"{len(bounded)}", f"{len(broken)}", f"{draws:,}"])
    return markdown(("part", "figures", "with a bound", "beyond it", "draws"), rows)


MADE: dict[str, Callable[[], str]] = {
    "validation-models": public_models,
    "validation-campaigns": campaigns,
}
