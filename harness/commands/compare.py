"""`harness compare`: run every cell of an experiment, track it, print the table and write the report."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from harness import registry
from harness.comparison import other_code, tuning
from harness.comparison.cell import finished, remaining, run_cell, take_part
from harness.comparison.estimate import estimate_seconds, steps_of
from harness.comparison.experiment import Experiment, read_experiment
from harness.comparison.plan import Cell, Plan, make_plan
from harness.errors import InputError
from harness.files.atomic import write_atomic
from harness.files.locks import work_lock
from harness.files.printable import one_line
from harness.machine.distributed import join
from harness.machine.progress import Reporter
from harness.results.manifest import asked, manifest_file
from harness.results.migrations import MANIFEST
from harness.results.record import Record
from harness.results.run_folder import checked_workdir

if TYPE_CHECKING:
    from rich.text import Text as RichText

REPORTER = "comparison"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness compare` to the command line."""
    parser = subparsers.add_parser(
        "compare",
        help="train, evaluate, track and report the methods of an experiment file",
        description="Train every method of an experiment under the same conditions, evaluate, track in MLflow, write a "
        "report. Finished cells are kept: the same command goes on where it stopped.",
        epilog="example: harness compare demo --workdir work/demo --set seeds='[1, 2]'",
    )
    parser.add_argument("experiment", help="a TOML file or a preset (see: harness list presets)")
    parser.add_argument("--workdir", default="work", help="everything that is kept (default: work)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="override a value, as seeds='[1]' or methods.simcse.temperature=0.1")  # fmt: skip
    tuning.add_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the cells and an estimate; run nothing")
    parser.add_argument("--tracking-uri", help="MLflow server or store (default: sqlite in the work directory)")
    parser.add_argument("--no-tracking", action="store_true", help="leave MLflow out; harness track sync can follow")
    parser.add_argument("--format", default="html,md,latex,csv", help="report formats (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress; only the table and the report's path")
    parser.set_defaults(run=run, several=True)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every cell came to a record, 1 when one failed."""
    experiment = read_experiment(args.experiment, args.overrides)
    budget = tuning.budget_of(args, experiment)
    team = join(experiment.device)
    if budget is not None and team.size > 1:
        raise InputError("--tune: searches in one process; start it without a launcher (the search goes on later)")
    with team.main_first():
        plan = make_plan(experiment, args.experiment, Path(args.workdir))
        workdir = checked_workdir(args.workdir, create=not args.dry_run)
    if args.dry_run:
        if budget is not None:
            print(f"before that (not in the estimate): {budget.trials} trials of {budget.steps} updates for each row")
        return dry_run(plan, workdir) if team.main else 0
    plan.team, plan.device = team, team.device or plan.device
    if not team.main:
        take_part(plan, workdir)
        return 0
    with work_lock(workdir):
        if budget is None:
            return compare(plan, workdir, args)
        found = tuning.tune(experiment, budget, workdir, args)
        whole = make_plan(found.with_winners(experiment), args.experiment, workdir)
        whole.device = plan.device
        return compare(whole, workdir, args, found)


def dry_run(plan: Plan, workdir: Path) -> int:
    """Print what a comparison would do and about how long it would take on this machine."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=_plain(f"{plan.experiment.name}: {len(plan.cells)} cells"))
    for heading in ("id", "row", "base model", "seed", "updates", "state", "about"):
        table.add_column(heading, justify="right" if heading in ("seed", "updates", "about") else "left")
    total, known = 0.0, dict[tuple[str, str, str], float]()
    for cell in plan.cells:
        state, seconds = "finished", 0.0
        if finished(cell, plan, workdir) is None:
            train, tasks = remaining(cell, plan, workdir)
            state = "to do" if train else "to score"
            key = (cell.row.label, cell.base_model, state)
            seconds = known[key] = known[key] if key in known else estimate_seconds(cell, plan, train, tasks)
        total += seconds
        steps = steps_of(cell, plan)
        names = (_plain(cell.row.label), _plain(cell.base_model))
        table.add_row(cell.id, *names, str(cell.seed), f"{steps:,}", state, f"{seconds:.0f} s")
    console = Console()
    console.print(table)
    if cost := other_code.told(plan, workdir):
        print(cost)
    console.print(f"about {total / 60:.1f} minutes in all on {plan.device}, report and tracking apart")
    return 0


def compare(plan: Plan, workdir: Path, args: argparse.Namespace, tuned: tuning.Tuning | None = None) -> int:
    """Run the cells, track, report; see `run`."""
    if cost := other_code.told(plan, workdir):
        print(cost)
    write_manifest(plan, workdir, tuned)
    tracker = None
    if not args.no_tracking:
        from harness.tracking.tracker import Tracker

        tracker = Tracker(workdir, plan.experiment.name, args.tracking_uri)
    records: list[Record] = []
    with ExitStack() as ending:
        if tracker is not None:
            ending.callback(tracker.close)
        reporter = ending.enter_context(Reporter(len(plan.cells), quiet=args.quiet))
        for cell in plan.cells:
            reporter.start(cell.label)
            known = finished(cell, plan, workdir)
            command = command_of(args, cell, tuned.overrides(cell.row.label) if tuned else [])
            record = known or run_cell(cell, plan, workdir, command=command, progress=reporter.step)
            record = asked(record, plan.evaluation)
            record = record.model_copy(update={"row": cell.row.label, "comparison": plan.experiment.name})
            records.append(record)
            reporter.done(summary(record) + (" (kept)" if known else ""))
            if tracker is not None:
                tracker.log(record)
        plan.team.from_main("")  # no more training: the other processes end
    show_results(workdir, plan.experiment, args)
    if tuned is not None:
        print_table(*tuned.table())
    failed = [record for record in records if record.status == "failed"]
    for record in failed:
        print(f"failed: {one_line(record.row)}, seed {record.seed}: {one_line(record.reason)} "
              f"(details: {workdir / 'runs' / record.id / 'error.txt'}; all other runs are kept)")  # fmt: skip
    return 1 if failed else 0


def write_manifest(plan: Plan, workdir: Path, tuned: tuning.Tuning | None = None) -> None:
    """Write which runs the comparison consists of, the experiment as it was resolved, and how its rows were tuned."""
    manifest = {
        MANIFEST.key: MANIFEST.version,
        "name": plan.experiment.name,
        "title": plan.experiment.title,
        "description": plan.experiment.description,
        "experiment": plan.experiment.model_dump(mode="json"),
        "tasks": list(plan.evaluation),
        "cells": [{"id": c.id, "row": c.row.label, "base_model": c.base_model, "seed": c.seed} for c in plan.cells],
        **({"tuned": tuned.manifest()} if tuned else {}),
    }
    write_atomic(manifest_file(workdir, plan.experiment.name), json.dumps(manifest, indent=1) + "\n")


def command_of(args: argparse.Namespace, cell: Cell, tuned: list[str]) -> str:
    """The command that makes this run again, alone; `tuned`: the values that a search found for its row."""
    keep = [f"seeds=[{cell.seed}]", f'base_models=["{cell.base_model}"]']
    words = ["harness", "compare", args.experiment, "--workdir", "NEW_FOLDER"]
    for override in [*args.overrides, *keep, *tuned]:
        words += ["--set", override]
    return shlex.join(words)


def summary(record: Record) -> str:
    """One line about a record: its main scores, or why it has none."""
    if record.status != "finished":
        return f"{record.status}: {record.reason}"
    main = [s for s in record.scores if s.metric == "spearman" and s.aggregation == "all" and s.split == "test"]
    scores = ", ".join(f"{s.task} {100 * s.value:.2f}" for s in main[:7])
    without = f"; without {', '.join(record.missing)}" if record.missing else ""
    return f"{scores}{without} ({record.cost.get('train_seconds', 0):.0f} s training)"


def _plain(text: str) -> RichText:
    """Text for a rich table as it is: no markup in it, nothing that the terminal obeys."""
    from rich.text import Text

    return Text(one_line(text))


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table of scores; where it would not fit the terminal, without the deviations."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    def table(cells: list[list[str]]) -> Table:
        made = Table(title=_plain(title))
        for i, column in enumerate(columns):
            made.add_column(_plain(column), justify="left" if i == 0 else "right", no_wrap=i > 0)
        for row in cells:
            made.add_row(*(_plain(cell) for cell in row))
        return made

    console = Console() if sys.stdout.isatty() else Console(width=240)
    whole = table(rows)
    if Measurement.get(console, console.options.update(width=1000), whole).maximum > console.width:
        whole = table([[cell.partition(" ± ")[0] for cell in row] for row in rows])
        whole.caption = "standard deviations are in the report"
    console.print(whole)


def show_results(workdir: Path, experiment: Experiment, args: argparse.Namespace) -> None:
    """Print the table with rich and write the report; without an installed reporter only say so."""
    if REPORTER not in registry.names(registry.REPORTERS):
        print(f"no reporter is installed; the records are in {workdir / 'runs'}")
        return
    reporter = registry.load(registry.REPORTERS, REPORTER)
    written = reporter(workdir, experiment.name, formats=args.format.split(","))
    summary_of = getattr(__import__(reporter.__module__, fromlist=["summary_table"]), "summary_table", None)
    if summary_of is not None:
        print_table(experiment.title or experiment.name, *summary_of(workdir, experiment.name))
    for kind, path in written.items():
        print(f"{kind}: {path}")
