"""A comparison that was run: records as tidy frames, tables and figures of its report, verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

from harness.config import nearest
from harness.errors import InputError
from harness.results.answer import Answer
from harness.results.record import Record
from harness.results.store import DESIGN, comparison_files, read_comparison_file, read_records
from harness.runs.experiment import Experiment, read_experiment
from reports.comparison.terminal_summary import summary_table
from reports.decide.examples_answer import examples
from reports.decide.verdict_answer import verdict
from reports.with_report import WithReport


@dataclass(frozen=True)
class Comparison(WithReport):
    """The result of a comparison. Printed or in a notebook it shows its table of scores.

        >>> found = harness.load(work)
        >>> found.rows, found.status
        (['cls', 'mean'], 'finished')
        >>> found.pairs().columns.tolist()[5:10]
        ['task', 'source', 'split', 'subset', 'pair']
        >>> str(found).splitlines()[-1]
        '* highest mean, which may be chance'
        >>> found.table("embedded suite").columns[0]
        'Method'
        >>> type(found.plot("overview")).__name__
        'Figure'

    Attributes:
        name: of the comparison and of its files.
        workdir: its work directory.
        records: one per run, in the order of the table.
        experiment: what was compared; None where its file cannot be read.
        report: format -> what was written.
        further: the same of other reports that the experiment requests.
        decision: whether to keep the experiment's incumbent, in words; empty without one.
    """

    name: str
    workdir: Path
    records: list[Record] = field(repr=False)
    experiment: Experiment | None = field(default=None, repr=False)
    report: dict[str, Path] = field(default_factory=dict, repr=False)
    further: dict[str, dict[str, Path]] = field(default_factory=dict, repr=False)
    decision: str = field(default="", repr=False)

    @property
    def rows(self) -> list[str]:
        """The labels of its rows."""
        return list(dict.fromkeys(record.row for record in self.records))

    @property
    def failed(self) -> list[Record]:
        """The records of runs that failed; the same call tries them again."""
        failed = [record for record in self.records if record.status == "failed"]
        return [record for record in failed if record not in self.left_out]

    @property
    def left_out(self) -> list[Record]:
        """The records of a rehearsal whose row needs something that is not available."""
        return [r for r in self.records if r.rehearsal and r.unavailable]

    @property
    def status(self) -> Literal["finished", "failed"]:
        """Did every run come to a result? A collapsed or diverged training is one."""
        return "failed" if self.failed else "finished"

    def verdict(self, a: str = "", b: str = "", **options: Any) -> Answer:
        """Is row `a` better than `b`? All pairs of rows without them; options as `harness.verdict`
        has them.

        >>> found.verdict("mean", "cls", equivalence=1).data["verdict"]
        'better'
        """
        return verdict(self, a, b, **options)

    def examples(self, a: str = "", b: str = "", **options: Any) -> Answer:
        """The examples on which rows `a` and `b` differ most, or that most rows get wrong; options
        as `harness.examples` has them.

        >>> found.examples(top=3).frame()["task"].unique().tolist()
        ['Embedded-STS-natural']
        """
        return examples(self, a, b, **options)

    def why(self, a: str, b: str = "", **options: Any) -> Answer:
        """Which settings make the difference between row `a` and row `b`? Options as `harness.why`
        has them.

        >>> found.why("mean", "cls", seeds=3).data["missing"]
        0
        """
        from harness.api.explain import why

        return why(self, a, b, **options)

    def __str__(self) -> str:
        """Why runs have no result, and the tables of scores."""
        import pandas as pd

        lost = (record for record in self.records if record.status != "finished")
        lines = []
        for r in lost:
            lines.append(
                f"{'n/a' if r.unavailable else r.status}: {r.row}, seed {r.seed}: {r.reason}"
            )
        lines += [
            f"  traceback: {self.workdir / 'runs' / r.id / 'details.json'}" for r in self.failed[:1]
        ]
        whole = self.experiment or Experiment.model_construct()
        for part, block in whole.parts.items():
            columns, rows, legend = summary_table(self.workdir, self.name, part)
            table = pd.DataFrame(rows, columns=columns).set_index("Method")
            title = block.title or part or whole.title or self.name
            with pd.option_context("display.unicode.east_asian_width", True):
                text = table.to_string(index_names=False)
            lines += ["", title, text, *legend]
        return "\n".join(lines).lstrip()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def load(path: str | Path, name: str = "") -> Any:
    """What lies in a folder: a comparison or study of a work directory, or a model; nothing is
    computed.

        >>> found = harness.load(work)
        >>> found.rows
        ['cls', 'mean']
        >>> found.scores()["task"].unique().tolist()
        ['Embedded-STS-natural']
        >>> harness.load("embedded:mini-bert").encode("A dog runs.").shape
        (256,)

    Args:
        path: a work directory; or a model, as `harness.load_model` takes it.
        name: of the comparison or study, where the work directory holds several.

    Returns:
        A `Comparison`, the result of a `study`, or a model with `encode`.

    Raises:
        InputError: no such folder or model, nothing of that name, or several to choose from; a
            damaged record.
    """
    from harness.api.models import load_model
    from harness.api.studies import open_study, study_names

    folder = Path(path)
    compared = sorted(comparison_files(folder))
    compared = [one for one in compared if DESIGN not in one] or compared
    known = compared or study_names(folder)
    if not known:
        try:
            return load_model(path)
        except InputError as error:
            raise InputError(
                f"holds no comparison and no study, and is no model ({error})", file=path
            ) from None
    if not name and len(known) == 1:
        name = known[0]
    if name not in known:
        if name:
            wanted = f'no comparison "{name}"{nearest(name, known)}; '
        else:
            wanted = ""
        held = ", ".join(known)
        raise InputError(f"{wanted}it holds {held}: name one of them", file=folder)
    if not compared:
        return open_study(name, folder)
    file = read_comparison_file(folder, name)
    try:
        if file is not None:
            experiment = read_experiment(file.experiment)
        else:
            experiment = None
    except InputError:
        experiment = None
    return Comparison(name, folder, read_records(folder, name), experiment)
