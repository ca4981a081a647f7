"""`harness compare`: run an experiment, track it, print the table and write the report."""

from __future__ import annotations

import argparse
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.commands.options import Commands, add_command, add_executor_options, given_executor
from harness.commands.terminal import print_table
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_lines
from harness.machine.distributed import follower
from harness.machine.progress import Reporter

if TYPE_CHECKING:
    from harness.api import Comparison

# Option -> its name in `Budget` and `Until`.
_TUNE = {"tune_steps": "steps", "tune_seeds": "seeds"}
_UNTIL = {"most_seeds": "most", "budget": "budget", "equivalence": "equivalence"}


def register(commands: Commands) -> None:
    """Add `harness compare` to the command line."""
    parser = add_command(
        commands, "compare", run,
        help="train, evaluate, track and report the methods of an experiment file",
        description="Train every method of an experiment under the same conditions, evaluate, track in MLflow, write a "
        "report. Finished runs are reused: the same command resumes where it stopped. harness status WORKDIR and "
        "WORKDIR/progress.html show the progress; Ctrl-C or harness stop WORKDIR stops it cleanly.",
        example="harness compare demo --workdir work/demo --set seeds='[1, 2]'",
        several=True,
    )  # fmt: skip
    add = parser.add_argument
    add("experiment", help="a TOML file or a preset (see: harness list presets)")
    add("--workdir", default="work", help="the work directory (default: work)")
    add("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="override a value, as seeds='[1]' or methods.simcse.temperature=0.1")  # fmt: skip
    add("--only", action="append", default=[], metavar="NAME", help="run only this block of the file, or the rows that "
        "match this pattern, as 'SCD*'; may be repeated")  # fmt: skip
    add("--rehearse", action="store_true", help="try the file: every row with the embedded model, little text and few "
        "training steps (see [rehearsal])")  # fmt: skip
    add("--tune", type=int, metavar="TRIALS", help="search every row's declared ranges with this many trials on the "
        "dev set, and add the best configuration as a row")  # fmt: skip
    add("--tune-steps", type=int, metavar="N", help="training steps of a trial (default: max_steps)")
    add("--tune-seeds", type=partial(_numbers, "--tune-seeds"), metavar="LIST",
        help="seeds of the search; the comparison must not use them (default: 101)")  # fmt: skip
    add("--until", choices=("decided",), help="add seeds, one at a time, to the rows between which a decision is open; "
        "verdicts are corrected for the interim analyses")  # fmt: skip
    add("--most-seeds", type=int, metavar="N", help="with --until: largest number of seeds per row (default: 15)")
    add("--budget", type=_amount, metavar="40runs|3h", help="with --until: start no round beyond this "
        "many runs, or hours of training and scoring; reused runs count")  # fmt: skip
    add("--equivalence", type=float, metavar="POINTS", help="with --until: smaller differences do not matter "
        "(default: 0.5)")  # fmt: skip
    add("--against", action="append", default=[], metavar="shipped|PATH", help="compare with the rows of another work "
        "directory, an archive of one or the shipped runs, where training conditions are the same")  # fmt: skip
    add_executor_options(parser)
    add("--dry-run", action="store_true", help="print the runs, how rows differ and a cost estimate; run nothing")
    add("--measure", action="store_true", help="with --dry-run: time two training steps of each row")
    add("--tracking-uri", help="MLflow server or store (default: sqlite in the work directory)")
    add("--no-tracking", action="store_true", help="do not write to MLflow; harness track sync can do it later")
    add("--format", default="html,md,latex,csv", help="report formats (default: %(default)s)")
    add("--quiet", action="store_true", help="no progress; only the table and the report's path")


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every run has a result, 1 when one failed."""
    from harness import api

    tune, until = _given(args, "tune", _TUNE), _given(args, "until", _UNTIL)
    options = {
        "overrides": args.overrides,
        "only": args.only,
        "rehearse": args.rehearse,
        "tune": None if tune is None else api.Budget(args.tune, **tune),
        "until": None if until is None else api.Until(**until.pop("budget", {}), **until),
        "against": args.against,
    }
    if args.measure and not args.dry_run:
        raise InputError("--measure: requires --dry-run")
    if args.dry_run:
        from harness.commands import dry_run

        return 0 if follower() else dry_run.show(args.experiment, args.workdir, measure=args.measure, **options)
    result = api.compare(
        args.experiment,
        workdir=args.workdir,
        tracked=not args.no_tracking,
        tracking_uri=args.tracking_uri,
        formats=args.format.split(","),
        executor=given_executor(args),
        progress=Reporter(quiet=args.quiet),
        say=tell,
        **options,
    )
    if follower():
        return 0
    _show(result)
    return 1 if result.failed else 0


def _given(args: argparse.Namespace, option: str, names: dict[str, str]) -> dict[str, Any] | None:
    """What the options in `names` give, under other names; None without the option that they go with.

    Raises:
        InputError: one of them is given without that option.
    """
    given = {name: value for one, name in names.items() if (value := getattr(args, one)) is not None}
    if getattr(args, option) is not None:
        return given
    if given:
        first = next(one for one in names if getattr(args, one) is not None)
        raise InputError(f"--{first.replace('_', '-')}: requires --{option}")
    return None


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"{option} {text}: expected numbers with commas, as 101,102") from None


def _amount(text: str) -> dict[str, Any]:
    """The bound of `--budget`, as "40runs" or "3h"."""
    found = re.fullmatch(r"(\d+) ?runs|(\d+(?:\.\d+)?) ?h", text)
    if found is None:
        raise InputError(f"--budget {text}: expected runs or hours, as 40runs or 3h")
    return {"runs": int(found[1])} if found[1] else {"hours": float(found[2])}


def _show(result: Comparison) -> None:
    """Print which runs failed, the table of scores, the answer, and where the report is."""
    from reports.comparison.terminal_summary import summary_table

    for record in result.left_out:
        tell(f"n/a: {one_line(record.row)}: {one_line(record.reason)}")
    for record in result.records:
        if record.status in ("collapsed", "diverged"):
            tell(f"{record.status}: {one_line(record.row)}, seed {record.seed}: {one_line(record.reason)}")
    for record in result.failed:
        tell(f"failed: {one_line(record.row)}, seed {record.seed}: {one_line(record.reason)} (traceback: "
             f"{result.workdir / 'runs' / record.id / 'details.json'}; all other runs are finished)")  # fmt: skip

    assert result.experiment is not None
    for part, block in result.experiment.parts.items():
        title = block.title or part or result.experiment.title or result.name
        columns, rows, *legend = summary_table(result.workdir, result.name, part)
        print_table(title, columns, rows, *legend)
    for written in (result.report, *result.further.values()):
        if "json" in written:
            tell_lines(json.loads(written["json"].read_text("utf-8"))["answer"])
            tell(f"report: {next(iter(written.values()))}")
