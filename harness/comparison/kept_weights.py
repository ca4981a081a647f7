"""The finished training of a cell as its folder keeps it: the saved method, and what the fit had to say.

The weights are safe on the disk, and their hashes taken, before `fitted.json` says that they are there: whatever a kill
or a failing disk leaves behind is not mistaken for a finished training.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from harness.files.atomic import settle, write_atomic
from harness.method import METHOD_FILE, FitReport, Method
from harness.results.checksums import MODEL, changed, lost, weights
from harness.results.record import Record
from harness.results.run_folder import RunFolder


def keep(method: Method, folder: RunFolder, card: str) -> None:
    """Save a fitted method with its report; the checkpoint may go only after the record was written."""
    method.save(folder.model, card=card)
    settle(folder.model)
    said = {**asdict(method.fit_report), "weights": weights(folder)}
    write_atomic(folder.fitted_file, json.dumps(said) + "\n")


def kept_report(folder: RunFolder) -> FitReport | None:
    """What the fit said whose weights are kept; None where there are none, or not as they were saved."""
    if not folder.fitted_file.is_file() or not (folder.model / METHOD_FILE).exists():
        return None
    record = folder.read_if_sound()
    said = _said(folder) or _said_in(record)
    if said is None:
        return None
    hashes: dict[str, str] = said.pop("weights", {})  # older folders have none: the weights are taken as they are
    if record is not None:
        hashes |= {name: digest for name, digest in record.files.items() if name.startswith(MODEL)}
    if lost(folder, hashes) or any(changed(folder, hashes)):
        return None
    return FitReport(**said)


def _said(folder: RunFolder) -> dict[str, Any] | None:
    """The content of `fitted.json`, None where it is damaged."""
    try:
        said = json.loads(folder.fitted_file.read_text("utf-8"))
        whole = all(isinstance(said[key], dict) for key in ("training", "cost"))
    except (ValueError, TypeError, KeyError):
        return None
    return said if whole and said.keys() <= {"training", "cost", "weights"} else None


def _said_in(record: Record | None) -> dict[str, Any] | None:
    """The same from a record that vouches for the weights."""
    if record is None or not any(name.startswith(MODEL) for name in record.files):
        return None
    return {"training": {key: what for key, what in record.training.items() if key != "notes"}, "cost": {}}
