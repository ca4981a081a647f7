"""Work directories of before, and comparisons of which no coordinator has told: what manifests and records say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.live.state import KEPT, Cell, State, judged, states, with_signs
from harness.results.manifest import manifest_files, read_manifest
from harness.results.record import Record
from harness.results.run_folder import RunFolder
from harness.seeds import seed_of, seed_text


def all_states(workdir: Path) -> list[State]:
    """All comparisons and studies of a work directory as they stand now, the latest first.

    Raises:
        InputError: it is no work directory.
    """
    from harness.live.signs import signs

    if not any((workdir / name).is_dir() for name in ("runs", "live", "comparisons")):
        raise InputError(f"{workdir}: no work directory; name one of `harness compare` or `harness study run`")
    told = [judged(state) for state in states(workdir)]
    seen = signs(workdir)
    told = [with_signs(state, seen) if state.phase == "running" else state for state in told]
    known = {state.name for state in told if state.kind == "comparison"}
    return told + [of_manifest(workdir, name) for name in manifest_files(workdir) if name not in known]


def of_manifest(workdir: Path, name: str) -> State:
    """A comparison by its manifest and the records of its runs; one that cannot be read has no cells, and says so."""
    try:
        manifest = read_manifest(workdir, name) or {}
        cells = [_cell(workdir, cell) for cell in manifest["cells"]]
    except (InputError, KeyError, TypeError, ValueError) as error:
        return State(name, phase="failed", reason=str(error))
    state = State(name, title=manifest.get("title") or "", phase="ended", cells=cells)
    newest = max(((workdir / "runs" / cell.id / "record.json") for cell in cells), key=_time, default=None)
    state.time = _time(newest) if newest is not None else 0.0
    if state.ended < len(cells):
        state.phase, state.reason = "interrupted", "no coordinator has told of it"
    return state


def _cell(workdir: Path, told: Mapping[str, Any]) -> Cell:
    seed = seed_text(seed_of(told))
    label = f"{told['row']} · {told.get('base_model', '')} · seed {seed}"
    cell = Cell(told["id"], label, told["row"], told.get("base_model", ""), seed)
    try:
        record = RunFolder(workdir, cell.id).read()
    except InputError as error:
        cell.reason = str(error)
        return cell
    if record is not None:
        cell.state, cell.reason = state_of(record, kept=True), record.reason
    return cell


def state_of(record: Record, *, kept: bool = False) -> str:
    """The state of a cell by its record."""
    if record.lacking:
        return "n/a"
    return KEPT if kept and record.status == "finished" else record.status


def _time(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0
