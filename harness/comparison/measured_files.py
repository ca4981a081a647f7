"""What a work directory measures once, as it travels: to a worker that does not see it, and back.

Precision and seconds of an update decide what a run is: a worker takes the coordinator's, and measures what is not
known there. Passes of inference are added up, those of every worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.comparison import measured_precision, timed_updates, utilisation
from harness.files.atomic import sweep, write_atomic
from harness.results.inference import InferenceCost, add_passes, inference_file, read_inference

_ONCE: dict[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {  # file -> its lock, and what reads it
    measured_precision.FILE: (measured_precision.LOCK, measured_precision.read),
    timed_updates.FILE: (timed_updates.LOCK, timed_updates.read),
    utilisation.FILE: (utilisation.LOCK, utilisation.read),
}


def measured_texts(workdir: Path) -> dict[str, str]:
    """What is known, by the name of its file."""
    known = {name: read(workdir / name) for name, (_, read) in _ONCE.items()}
    known[inference_file(workdir).name] = {key: one.model_dump() for key, one in read_inference(workdir).items()}
    return {name: json.dumps(tree) for name, tree in known.items() if tree}


def put_texts(texts: Mapping[str, str], workdir: Path) -> None:
    """Write them into a work directory that has none yet."""
    for name, text in texts.items():
        write_atomic(workdir / name, text)


def added_texts(given: Mapping[str, str], workdir: Path) -> dict[str, str]:
    """What was measured here since `put_texts` of `given`; of inference the further passes alone."""
    texts = {name: text for name, text in measured_texts(workdir).items() if text != given.get(name)}
    inference = inference_file(workdir).name
    if inference in texts:
        before = {key: len(one["seconds"]) for key, one in json.loads(given.get(inference, "{}")).items()}
        tree = json.loads(texts[inference])
        for key, one in tree.items():
            one["seconds"] = one["seconds"][before.get(key, 0) :]
        texts[inference] = json.dumps({key: one for key, one in tree.items() if one["seconds"]})
    return texts


def keep_texts(texts: Mapping[str, str], workdir: Path) -> None:
    """Add what a worker has measured to what is kept; what was there first stays."""
    from filelock import FileLock

    for name, text in texts.items():
        tree = json.loads(text)
        if name not in _ONCE:
            for one in tree.values():
                add_passes(workdir, InferenceCost.model_validate(one))
            continue
        lock, read = _ONCE[name]
        with FileLock(workdir / lock):  # another comparison may be measuring here
            known = read(workdir / name)
            if not tree.keys() <= known.keys():
                sweep(workdir / name)
                write_atomic(workdir / name, json.dumps(tree | known, indent=1) + "\n")
