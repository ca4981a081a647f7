"""`python tools/shipped.py WORKDIR`: the runs of comparisons/shipped.toml there become the records
that ship with the package, and their table that of the documentation (`python -m docs.make` puts it
in).
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from harness.errors import HarnessError, InputError
from harness.files.atomic import write_atomic
from harness.files.printable import tell, tell_error
from harness.results.elsewhere import open_workdir, without_weights
from harness.results.facts import facts_of
from harness.results.store import (
    RunFolder,
    comparison_file,
    read_comparison_file,
)
from harness.sources.pair_sets import PHENOMENA
from harness.tasks.phenomena import TAGS
from reports.decide.question import comparison_of, question_of
from studies import SHIPPED, SHIPPED_TABLE

NAME = "shipped"
BITS = 11  # scores of examples are rounded to 1/2048 of their spread in a task: a run's score moves by 0.01 points


def table() -> str:
    """The shipped rows of the base model that most have, by what their report goes by, best first,
    in Markdown; rows that share a letter do not differ significantly. Behind it Embedded-Phenomena,
    over all pairs and by tag.
    """
    with open_workdir(SHIPPED) as folder:
        comparison = comparison_of(folder, NAME)
        question = question_of(comparison, "")
        block = max(question.blocks().values(), key=lambda one: len(one.judged))
        groups = block.groups()
        tasks = [PHENOMENA, *(f"{PHENOMENA}-{tag}" for tag in TAGS)]
        others = [question_of(comparison, task).block(block.judged) for task in tasks]
        known = facts_of(RunFolder(folder, comparison.records[0].id).figures())
        lines = [
            f"| | row | {question.target.title}, Spearman ×100 | deviation over seeds | seeds | group "
            f"| {PHENOMENA} | {' | '.join(TAGS)} |",
            f"| ---: | --- | ---: | ---: | ---: | --- |{' ---: |' * len(tasks)}",
        ]
        for place, row in enumerate(block.judged):
            letters = "".join(
                ascii_lowercase[i % 26] for i, group in enumerate(groups) if place in group
            )
            seeds = len(row.finished)
            spread = f"{100 * block.runs(row).std(ddof=1):.2f}" if seeds > 1 else "–"
            apart = [f"{one.mean(row):.2f}" for one in others]
            cells = (place + 1, row.label, f"{block.mean(row):.2f}", spread, seeds, letters, *apart)
            lines.append(f"| {' | '.join(map(str, cells))} |")
        agreements = [known[task].agreement for task in tasks]
        ceiling = ["–" if one is None else f"{100 * one:.2f}" for one in agreements]
        lines.append(f"| | *second annotator* | | | | | {' | '.join(ceiling)} |")
    return "\n".join(lines) + "\n"


def small(folder: RunFolder, name: str) -> bytes:
    """A file of a run as it is shipped: scores of examples rounded, details without the files of
    other tools.
    """
    if name == folder.examples_file.name and (examples := folder.examples()) is not None:
        spread = examples.groupby("task")["outcome"].transform("std").clip(lower=1e-9)
        step = 2.0 ** (np.floor(np.log2(spread)) - BITS)
        rounded = examples.assign(outcome=(examples["outcome"] / step).round() * step)
        dictionaries = [column for column in examples if column != "outcome"]
        buffer = io.BytesIO()
        # Not compressed: the archive is, over the equal columns of all runs.
        encoding = {"outcome": "BYTE_STREAM_SPLIT"}
        rounded.to_parquet(
            buffer,
            index=False,
            compression=None,
            use_dictionary=dictionaries,
            column_encoding=encoding,
        )
        return buffer.getvalue()
    if name == folder.details_file.name:
        return json.dumps(
            {key: value for key, value in folder.details().items() if key != "artifacts"}
        ).encode()
    return (folder.path / name).read_bytes()


def pack(workdir: Path, comparison: str, archive: Path) -> list[str]:
    """Write the runs of a comparison as an archive (.tar.xz); equal runs give equal bytes.

    Returns:
        The rows that are left out, as some of their runs have not finished.

    Raises:
        InputError: no such comparison, or a damaged record.
    """
    file = read_comparison_file(workdir, comparison)
    if file is None:
        raise InputError(f'no comparison "{comparison}"', file=workdir, key=comparison)
    folders = {run.id: RunFolder(workdir, run.id) for run in file.runs}
    records = {
        run: record for run, folder in folders.items() if (record := folder.read()) is not None
    }
    unfinished = {run.row for run in file.runs if run.id not in records}
    runs = tuple(run for run in file.runs if run.row not in unfinished)
    text = file.model_copy(update={"runs": runs}).to_text()
    members = {comparison_file(Path(), comparison).as_posix(): text.encode()}
    for run in dict.fromkeys(run.id for run in runs):
        light = without_weights(records[run])
        content = {name: small(folders[run], name) for name in light.files}
        light = light.model_copy(
            update={"files": {name: sha256(data).hexdigest() for name, data in content.items()}}
        )
        members |= {f"runs/{run}/{name}": data for name, data in content.items()}
        members[f"runs/{run}/record.json"] = light.to_json().encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=9) as tar:
        # Files of one kind are neighbours: they are alike, and an archive of like files is small.
        for name, data in sorted(
            members.items(), key=lambda one: (one[0].rpartition("/")[2], one[0])
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    write_atomic(archive, buffer.getvalue())
    return sorted(unfinished)


def main(workdir: Path) -> None:
    """Write the archive and the table, and name what is not made yet.

    Raises:
        InputError: no such comparison there, or a damaged record.
    """
    left = pack(workdir, NAME, SHIPPED)
    write_atomic(SHIPPED_TABLE, table())
    tell(f"{SHIPPED.name}: {SHIPPED.stat().st_size:,} bytes")
    if left:
        tell(f"not in it, as some of their runs are not made yet: {', '.join(left)}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except HarnessError as error:
        tell_error(str(error))
        sys.exit(error.exit_code)
