"""What a comparison stores and says about the files that it is scored and selected on."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files.atomic import write_atomic
from harness.files.reading import inline, is_there, toml_comment, toml_lines
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
                settings=settings.with_full_path().model_dump(exclude_defaults=True),
                sha256=task.sha256,
                examples=own.counts if isinstance(own, OwnData) else {},
            )
    return described


def remarks_on_files(plan: Plan) -> list[str]:
    """Return sentences about sizes, parts and texts of the files that rows are scored on."""
    found: list[str] = []
    for task in plan.tasks:
        found.extend(getattr(task, "data_remarks", ()))
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
        folder = workdir / "splits" / plan.experiment.name
        file = folder / f"{name}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, text.getvalue())
        written.append(file)
    return written


def write_experiment(plan: Plan, workdir: Path) -> Path:
    """Write WORKDIR/comparisons/NAME.toml: the experiment as it was resolved, to be run again or
    edited.
    """
    keys = plan.experiment.model_dump(mode="json", exclude_unset=True, exclude={"executor"})
    file = workdir / "comparisons" / f"{plan.experiment.name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, experiment_text(_locate_files(keys)))
    return file


def experiment_text(keys: Mapping[str, Any]) -> str:
    """Return the keys of an experiment as the text of its file, which has the name "NAME.toml"."""
    kept = _drop_nulls(dict(keys))
    name = kept.pop("name")
    rows = kept.pop("methods")
    blocks = kept.pop("blocks", {})
    about = f"{name} as it was resolved; run it with: harness compare {name}.toml"
    parts = [toml_comment(about), toml_lines(kept)]
    for block, of_block in blocks.items():
        key = inline(block).as_string()
        parts.append(f"\n[blocks.{key}]\n{toml_lines(of_block)}")
    parts += [f"\n[[methods]]\n{toml_lines(row)}" for row in rows]
    return "".join(parts)


_OPTIONS = ("config", "shared")  # of methods, of which some are not empty by default


def _drop_nulls(value: Any) -> Any:
    """Return a tree without the keys that are None by default."""
    if isinstance(value, dict):
        kept = {}
        for key, part in value.items():
            if key in _OPTIONS:
                kept[key] = part
            elif part is not None or key == "dev":
                kept[key] = _drop_nulls(part)
        return kept
    if isinstance(value, list):
        return [_drop_nulls(part) for part in value]
    return value


def _locate_files(keys: dict[str, Any]) -> dict[str, Any]:
    """Return keys of an experiment with absolute paths of the files that they name."""
    located = dict(keys)
    if "suites" in keys:
        located["suites"] = [_locate(entry) for entry in keys["suites"]]
    if isinstance(keys.get("dev"), dict):
        located["dev"] = _locate_in(keys["dev"], "task")
    if isinstance(keys.get("corpus"), dict):
        located["corpus"] = _locate_in(keys["corpus"], "uri")
    if keys.get("corpora"):
        located["corpora"] = {}
        for kind, text in keys["corpora"].items():
            located["corpora"][kind] = _locate_in(text, "uri")
    blocks = keys.get("blocks")
    if blocks and isinstance(blocks, dict):  # those of a row are names
        located["blocks"] = {}
        for name, block in blocks.items():
            located["blocks"][name] = _locate_files(block)
    if "methods" in keys:
        located["methods"] = [_locate_files(row) for row in keys["methods"]]
    return located


def _locate_in(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a table in which `key` has the absolute path of the file that it names."""
    located = dict(table)
    if table.get(key):
        located[key] = _locate(table[key])
    else:
        located.pop(key, None)
    return located


def _locate(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {**entry, "task": _locate(entry["task"])}
    file = TaskFile(task=entry)
    if is_there(file.path) and file.path.is_file():
        return str(file.with_full_path())
    return entry
