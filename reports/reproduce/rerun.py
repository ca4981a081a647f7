"""Do the runs behind a cell again, under the same conditions, and hold the new number against the report's."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from harness.comparison.experiment import Experiment
from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.printable import one_line, tell
from harness.results.manifest import manifest_file
from harness.results.record import Record
from harness.seeds import PartSeed, seed_fields, seed_of
from reports.document.blocks import Document
from reports.reproduce.report_cells import ReportCell

_MARKER = "reproduce.json"  # tells a folder of this command from a work directory of comparisons


def rerun(reference: ReportCell, data: dict[str, Any], workdir: Path | None) -> bool:
    """Is the number, as the report shows it, the same again? Says what differs.

    Raises:
        InputError: a method, corpus or model is not there or not the same, or `workdir` is not new.
    """
    kept = workdir is not None
    folder = _prepared(workdir, reference) if workdir is not None else Path(tempfile.mkdtemp(prefix="reproduce-"))
    try:
        records = _runs(reference, data, folder)
        for record in records:
            if record.status != "finished":
                tell(f"run {record.id}: {record.status}: {one_line(record.reason)}")
            for task, reason in record.missing.items():
                tell(f"run {record.id}: no scores of {one_line(task)}: {one_line(str(reason))}")
        same = _judge(reference, _cell(reference, data, folder))
        _surroundings(reference, data, records)
        if kept:
            tell(f"the new runs are in {folder}")
        return same
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _prepared(workdir: Path, reference: ReportCell) -> Path:
    """The folder, which is new, or one where the same cell was begun before (finished runs are kept)."""
    marker = workdir / _MARKER
    mine = json.dumps({"cell": reference.name, "runs": reference.runs}) + "\n"
    if workdir.exists() and (not workdir.is_dir() or any(workdir.iterdir())):
        known = marker.read_text("utf-8") if marker.is_file() else ""
        if known != mine:
            raise InputError(f"--workdir {workdir}: holds other things; name a new folder")
    try:
        write_atomic(marker, mine)
    except OSError as error:
        why = f"cannot be used ({error.strerror}); name a folder you can write"
        raise InputError(f"--workdir {workdir}: {why}") from None
    return workdir


def experiment_of(data: dict[str, Any], run: str) -> Experiment:
    """An experiment of one row, one base model and one seed: just this run.

    Raises:
        InputError: the data does not hold it, or the method or its configuration is not known here.
    """
    from harness import registry
    from harness.method import DEFAULT_BASE_MODEL, Method

    try:
        entry = data["runs"][run]
        setup = data["setups"][entry["setup"]]
        conditions = dict(data["experiments"][entry["comparison"]])
        row: dict[str, Any] = {"method": setup["method"], "name": entry["row"], "config": setup["config"]}
        corpus, dev, base = setup.get("corpus"), setup.get("dev"), setup["base_model"]
        if corpus:
            limited = {"uri": corpus["uri"], "kind": corpus["kind"], "limit": corpus["count"]}
            row["corpus"] = limited | {"columns": corpus.get("columns")}
        dev = {"task": dev["task"], "source": dev["source"]} if dev else None
        row["max_steps"] = entry.get("max_steps")  # what the comparison's, a block's or a budget's came to
        seed = seed_of(entry)
        streams = {"vary": seed.vary, "held_seed": seed.held} if isinstance(seed, PartSeed) else {}
        name = entry["comparison"]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"run {run}: the report lacks what it takes to repeat it ({error}); build it again") from None
    kind: type[Method] = registry.load(registry.METHODS, row["method"])
    config = kind.configure(row["config"], where=f"run {run}")
    if kind.base_for(config, DEFAULT_BASE_MODEL) == base:  # it starts from something that its configuration names
        base = DEFAULT_BASE_MODEL
    tree = {**conditions, "name": name, "base_models": [base], "seeds": [int(seed)], **streams, "dev": dev}
    tree["methods"] = [row]
    return Experiment.parse(tree | {"device": "auto"}, f"run {run}")


def _runs(reference: ReportCell, data: dict[str, Any], folder: Path) -> list[Record]:
    from harness.comparison.cell import run_cell
    from harness.comparison.plan import Plan, make_plan
    from harness.files.locks import work_lock
    from harness.machine.progress import Reporter

    plans: dict[str, Plan] = {}
    for run in reference.runs:  # all of them are looked at before the first one runs
        plans[run] = make_plan(experiment_of(data, run), f"run {run}")
        _same_data(run, plans[run], data)
    records = []
    with work_lock(folder), Reporter(len(plans), quiet=False) as reporter:
        for run, plan in plans.items():
            _same_conditions(data, run, plan, folder)
            cell = plan.cells[0]
            reporter.start(one_line(cell.label))
            record = run_cell(cell, plan, folder, command=data["runs"][run].get("command", ""), progress=reporter.step)
            changed = "" if cell.id == run else f"; its id is {cell.id} now: code or base model have changed since"
            reporter.done(f"{record.status} (recorded as {run}{changed})")
            records.append(record)
    for name in dict.fromkeys(plan.experiment.name for plan in plans.values()):
        cells = [
            {"id": cell.id, "row": cell.row.label, "base_model": cell.base_model, **seed_fields(cell.seed)}
            for plan in plans.values() if plan.experiment.name == name for cell in plan.cells
        ]  # fmt: skip
        write_atomic(manifest_file(folder, name), json.dumps({"name": name, "cells": cells}, indent=1) + "\n")
    return records


def _same_data(run: str, plan: Any, data: dict[str, Any]) -> None:
    """Refuse text other than the recorded one: another number would be no surprise.

    Raises:
        InputError: names what differs.
    """
    setup = data["setups"][data["runs"][run]["setup"]]
    row = plan.rows[0]
    corpus = plan.corpus(row)
    now = {"corpus": corpus.sha256 if corpus is not None else None, "dev": plan.dev.sha256 if plan.dev else None}
    for part, what in (("corpus", "uri"), ("dev", "task")):
        recorded = setup.get(part) or {}
        if recorded.get("sha256") not in (None, now[part]):
            raise InputError(
                f"run {run}: {part} {recorded[what]} holds other text now (sha256 {str(now[part])[:16]}, recorded "
                f"{recorded['sha256'][:16]}); put the recorded text back"
            )
    inputs = row.method.inputs(row.config)
    for name, fingerprint in (setup.get("inputs") or {}).items():
        if inputs.get(name) != fingerprint:
            raise InputError(f"run {run}: its input {name} is another one now ({inputs.get(name)}, not {fingerprint})")


def _same_conditions(data: dict[str, Any], run: str, plan: Any, folder: Path) -> None:
    """The recorded precision, where a measurement chose it, and number of threads: sums depend on both."""
    import torch

    from harness.machine.environment import device_name

    entry = data["runs"][run]
    environment = data["environments"][entry["environment"]]
    recorded = environment.get("precision") if entry.get("trained") else "fp32"
    chosen = recorded if isinstance(recorded, dict) else {"choice": str(recorded or "fp32"), "reason": "as recorded"}
    write_atomic(folder / "precision.json", json.dumps({device_name(plan.device): chosen}) + "\n")
    if isinstance(environment.get("threads"), int) and environment["threads"] > 0:
        torch.set_num_threads(environment["threads"])


def _cell(reference: ReportCell, data: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    """The same cell of the same report, built from the new runs."""
    for table in _document(data, folder).tables():
        if table.key != reference.table:
            continue
        for row in table.as_dict()["rows"]:
            head = next(iter(row["cells"].values()))["text"]
            if (head, row["block"]) == (reference.row, reference.block):
                cell: dict[str, Any] | None = row["cells"].get(reference.column)
                return cell
    return None


def _document(data: dict[str, Any], folder: Path) -> Document:
    """The report of the same name from the new runs: a comparison's, a paper's or another package's."""
    from reports.build import describe_comparison, describe_elsewhere, describe_paper
    from reports.papers import definition

    if "comparison" in data:
        return describe_comparison(folder, data["comparison"]).document
    name = str(data.get("report"))
    if (defined := definition.load(name)) is not None:
        return describe_paper(folder, defined).document
    if (document := describe_elsewhere(folder, name)) is not None:
        return document
    raise InputError(f'no report "{name}" is known here; give its definition file the name that it was built from')


def _judge(reference: ReportCell, cell: dict[str, Any] | None) -> bool:
    if cell is None:
        tell("the report of the new runs has no such cell")
        return False
    old, new = reference.cell.get("value"), cell.get("value")
    before, after = reference.shown, f"{cell['text']} {cell.get('spread', '')}".strip()
    if old is None or new is None:
        same = before == after
        tell(f"in the report: {one_line(before)}; now: {one_line(after)}: {'equal' if same else 'differs'}")
        return same
    said = "equal to the last digit" if old == new else f"differs by {new - old:+.3g}"
    shown: bool = reference.cell["text"] == cell["text"]
    if old != new and shown:
        said += ", the same as shown"
    tell(f"in the report: {one_line(before)} ({old!r}); now: {one_line(after)} ({new!r}): {said}")
    return shown


def _surroundings(reference: ReportCell, data: dict[str, Any], records: list[Record]) -> None:
    """What is not as it was where the report's runs were made."""
    old = data["environments"][data["runs"][reference.runs[0]]["environment"]]
    new = records[0].environment
    pairs = [(key, old.get(key), new.get(key)) for key in ("python", "device_name", "threads", "precision")]
    names = sorted({*old.get("versions", {}), *new.get("versions", {})})
    pairs += [(name, old.get("versions", {}).get(name), new.get("versions", {}).get(name)) for name in names]
    pairs += [("commit", (old.get("git") or {}).get("commit"), (new.get("git") or {}).get("commit"))]
    for name, before, after in pairs:
        if before != after:
            tell(f"  {name}: recorded {_short(before)}, now {_short(after)}")


def _short(value: Any) -> str:
    value = value.get("choice") if isinstance(value, dict) else value
    return one_line(str(value)) if value is not None else "nothing"
