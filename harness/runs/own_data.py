"""What a comparison stores and says about the files that it is scored and selected on."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from harness.files.atomic import write_atomic
from harness.results.comparison import ListedFile
from harness.runs.plan import Plan
from harness.tasks.own.data import OwnData, TaskFile


def describe_files(plan: Plan) -> dict[str, ListedFile]:
    """Return "SOURCE:TASK" -> settings, sha256 and examples of each part, of the tasks that are
    files.
    """
    described = {}
    for task in plan.tasks:
        settings = getattr(task, "settings", None)
        if isinstance(settings, TaskFile):
            own = getattr(task, "own", None)
            described[f"{task.source}:{task.name}"] = ListedFile(
                settings=settings.located().model_dump(exclude_defaults=True),
                sha256=task.sha256,
                examples=own.counts if isinstance(own, OwnData) else {},
            )
    return described


def remarks_on_files(plan: Plan) -> list[str]:
    """Return sentences about sizes, parts and texts of the files that rows are scored on."""
    found = [remark for task in plan.tasks for remark in getattr(task, "data_remarks", ())]
    return list(dict.fromkeys(found))


def write_splits(plan: Plan, workdir: Path) -> list[Path]:
    """Write WORKDIR/splits/NAME/FILE.csv for each file whose dev part was drawn: a line and its part
    for each example.
    """
    written = []
    for task in plan.tasks:
        own = getattr(task, "own", None)
        if not isinstance(own, OwnData) or own.split != "drawn":
            continue
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["line", "split"])
        writer.writerows(own.part.items())
        name = own.name.replace("/", "_").removesuffix(".csv")
        file = workdir / "splits" / plan.experiment.name / f"{name}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, text.getvalue())
        written.append(file)
    return written
