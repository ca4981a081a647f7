"""How what was done in a comparison differs from the plan that was written before it
(`harness compare --freeze`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.results.comparison import ComparisonFile
from harness.results.record import Record
from harness.runs.frozen_plan import Deviation, find_deviations, plan_file, read_plan, settings_of


@dataclass(frozen=True)
class FrozenPlan:
    """The plan of a comparison, and how what was done differs from it.

    Attributes:
        date: when it was written.
        sha256: its hash.
        deviations: in the order of the plan; empty where everything is as planned.
    """

    date: str
    sha256: str
    deviations: tuple[Deviation, ...]

    @property
    def deviates_by_choice(self) -> bool:
        """True if its pairs are not those of the plan any more: somebody chose another baseline,
        other rows, settings or seeds.
        """
        return any(one.of_choice for one in self.deviations)

    @property
    def texts(self) -> list[str]:
        """The deviations in words."""
        return [one.text for one in self.deviations]


def read_frozen_plan(
    workdir: Path,
    comparison: ComparisonFile,
    records: Iterable[Record],
) -> FrozenPlan | None:
    """Return a comparison's plan with the deviations of its records; None without a plan.

    Raises:
        InputError: the plan is damaged, or was changed since it was written.
    """
    file = plan_file(workdir, comparison.name)
    if not file.exists():
        return None
    plan = read_plan(file)
    runs = [run for run in comparison.runs if not (run.added or run.source)]
    known = {record.id: record for record in records}
    settings = {
        record.id: settings_of(record.spec.model_dump(mode="json")) for record in known.values()
    }
    listed = [run.model_dump() for run in runs]
    found = find_deviations(
        plan, listed, comparison.tasks, comparison.experiment, settings, comparison.until
    )
    for run in runs:
        record = known.get(run.id)
        if record is not None and record.status != "finished":
            text = f"{run.row} · {run.base_model}: seed {run.seed} has no result ({record.status})"
            found.append(Deviation(text, of_choice=False))
    own = []
    for run in comparison.runs:
        if not run.source and run.id in known:
            own.append(known[run.id])
    found += _find_early(own, plan["date"][:19])
    return FrozenPlan(plan["date"], plan["sha256"], tuple(found))


def _find_early(records: Sequence[Record], written: str) -> list[Deviation]:
    """Return the deviation of runs that had begun before the plan was written; none without such."""
    early = [one for one in records if one.started and one.started[:19] < written]
    if not early:
        return []
    text = f"{len(early)} of {len(records)} runs had begun before the plan was written"
    return [Deviation(text, of_choice=False)]
