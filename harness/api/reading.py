"""Functions on runs that exist: load, report, verdict, power, a saved model. They train nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.api.result import Comparison
from harness.config import nearest
from harness.errors import InputError
from harness.method import METHOD_FILE
from harness.results.answer import Answer
from harness.results.store import comparison_files, read_comparison_file, read_records
from harness.runs.experiment import read_experiment

FORMATS = ("html", "md", "latex", "csv")

if TYPE_CHECKING:
    from harness.encoder import Encoder
    from harness.encoder.foreign import ForeignEncoder
    from harness.method import Method


def load(workdir: str | Path, comparison: str = "") -> Comparison:
    """A comparison that was run, from its work directory; nothing is computed. A saved model: `harness.load_model`.

        >>> found = harness.load(work)
        >>> found.rows
        ['cls', 'mean']
        >>> found.scores()["task"].unique().tolist()
        ['Embedded-STS-natural']

    Args:
        comparison: its name, where the work directory holds several.

    Raises:
        InputError: no work directory, no comparison of that name, or several to choose from; a damaged record.
    """
    folder = Path(workdir)
    known = sorted(comparison_files(folder))
    if not known:
        if (folder / METHOD_FILE).is_file() or (folder / "modules.json").is_file():
            raise InputError(f"{folder}: a saved model; open it with harness.load_model")
        raise InputError(f"{folder}: holds no comparison; give the work directory of harness.compare")
    name = comparison or known[0]
    if name not in known:
        raise InputError(f'{folder}: no comparison "{name}"{nearest(name, known)}; it holds {", ".join(known)}')
    if not comparison and len(known) > 1:
        raise InputError(f'{folder}: holds {", ".join(known)}: name one, as harness.load(workdir, "{known[0]}")')
    tree = read_comparison_file(folder, name) or {}
    try:
        experiment = read_experiment(tree["experiment"])
    except (KeyError, InputError):
        experiment = None
    return Comparison(name, folder, read_records(folder, name), experiment)


def load_model(model: str | Path) -> Method | Encoder | ForeignEncoder:
    """A saved method as it was fitted; any other folder, hub id or embedded:NAME as an encoder. All have `encode`.

        >>> harness.load_model("embedded:mini-bert").encode(["A dog runs.", "It rains."]).shape
        (2, 256)

    Returns:
        Something whose `encode` gives vectors (n, d) in float32 for n texts, (d,) for a single one.

    Raises:
        InputError: no such model, a damaged one, or one of a method that is not installed.
    """
    from harness.encoder.foreign import open_model
    from harness.evaluation.any_model import saved_method
    from harness.sources import resolve_model

    if comparison_files(Path(model)):
        raise InputError(f"{model}: a work directory; open it with harness.load, or name runs/ID/model in it")
    folder = Path(resolve_model(str(model)))
    return saved_method(folder) if (folder / METHOD_FILE).is_file() else open_model(str(model))


def report(
    name: str, workdir: str | Path = "work", *, formats: Sequence[str] = FORMATS, out: str | Path | None = None
) -> dict[str, Path]:
    """Build a report from records: a comparison's, a paper's or a study's; no run is repeated.

        >>> sorted(harness.report("poolings", work, formats=["md"]))
        ['json', 'md']

    Args:
        formats: any of "html", "md", "latex", "csv" and "pdf".
        out: the folder to write to; `WORKDIR/reports/NAME` when left out.

    Returns:
        Format -> what was written.

    Raises:
        InputError: nothing of that name, an unknown format, or nothing installed that builds reports.
        RunError: the folder cannot be written.
    """
    from reports.build import build_report

    return build_report(name, Path(workdir), formats=formats, out=Path(out) if out is not None else None)


def verdict(
    found: Comparison | str | Path,
    a: str = "",
    b: str = "",
    *,
    on: str = "",
    block: str = "",
    comparison: str = "",
    base_model: str = "",
    equivalence: float = 0.5,
    without_overlap: bool = False,
) -> Answer:
    """Is row `a` better than row `b`, and how sure is that? Without them: all pairs of rows, and which are not
    significantly different.

        >>> harness.verdict(work, "mean", "cls").data["verdict"]
        'better'

    Args:
        found: a comparison, or the work directory of one.
        a, b: labels of rows.
        on: what to compare by: "STS", a task, a suite, a block; as the report does, when left out.
        block: one block of the file, on what it asks for.
        comparison: its name, where the work directory holds several.
        base_model: where a row stands on several.
        equivalence: points; less is no difference that matters.
        without_overlap: leave out the pairs of which a sentence occurs in the training text of a row.

    Returns:
        In `data`: "verdict" ("better", "worse", "no difference", ...), "difference" with "low" and "high" in points
        (corrected for all pairs of rows), "p", "means", "seeds"; of all pairs a list by base model. `frame()`: one row
        a pair.

    Raises:
        InputError: no such folder, comparison, row or task, or nothing that can be judged.
    """
    from reports.decide.verdict_answer import verdict as judge

    workdir, name = _place(found, comparison)
    return judge(
        workdir,
        [a, b] if a or b else [],
        on=on,
        block=block,
        comparison=name,
        base_model=base_model,
        equivalence=equivalence,
        without_overlap=without_overlap,
    )


def power(
    found: Comparison | str | Path | None = None,
    difference: float | None = None,
    *,
    on: str = "",
    block: str = "",
    comparison: str = "",
    sd: float | None = None,
    pairs_sd: float | None = None,
    rows: int | None = None,
    correlation: float = 0.0,
) -> Answer:
    """What differences a number of seeds can see, and how many seeds `difference` takes (found in 80 % of comparisons).

        >>> harness.power(sd=0.84, difference=2, rows=2).data[0]["needed"]
        5

    Args:
        found: a comparison or its work directory, whose spread counts; None where `sd` is given.
        difference: in points.
        on, block, comparison: as `harness.verdict` has them.
        sd, pairs_sd: standard deviation in points over seeds, and of a difference by the choice of test pairs.
        rows: how many are compared.
        correlation: of the scores of two rows with the same seed.

    Returns:
        In `data`, by base model: "seeds" (number -> least difference in points), "needed". `frame()`: one row a number
        of seeds.

    Raises:
        InputError: neither records nor `sd`, a number out of range, or no spread of seeds known.
    """
    from reports.decide.power_answer import power as simulate

    workdir, name = (None, "") if found is None else _place(found, comparison)
    return simulate(
        workdir,
        difference=difference,
        on=on,
        block=block,
        comparison=name,
        sd=sd,
        pairs_sd=pairs_sd,
        rows=rows,
        correlation=correlation,
    )


def _place(found: Comparison | str | Path, comparison: str) -> tuple[Path, str]:
    return (found.workdir, found.name) if isinstance(found, Comparison) else (Path(found), comparison)
