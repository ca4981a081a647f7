"""`python -m tools.mteb_licences`: what mteb's metadata state of the licences of the tasks of its
benchmarks here, as harness/tasks/mteb/licences.toml.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.files.atomic import write_atomic
from harness.files.printable import tell
from harness.tasks.mteb.benchmarks import MTEB_SUITES, names_of

FILE = Path(__file__).parents[1] / "harness" / "tasks" / "mteb" / "licences.toml"
_NOT_STATED = (None, "", "not specified")


def main() -> None:
    """Write the file."""
    import mteb

    names = sorted({name for suite in MTEB_SUITES.values() for name in names_of(suite)})
    lines = [
        f"# Made by `python -m tools.mteb_licences` from the metadata of mteb {mteb.__version__}."
    ]
    for name in names:
        metadata = mteb.get_task(name).metadata
        stated = metadata.license
        licence = "" if stated in _NOT_STATED else str(stated)
        entry = {"licence": licence, "link": str(metadata.reference or "")}
        lines.append("")
        lines.append(f"[{json.dumps(name)}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    write_atomic(FILE, ("\n".join(lines) + "\n").encode())
    tell(f"{FILE.name}: {len(names)} tasks")


if __name__ == "__main__":
    main()
