"""`harness compare`: run every cell of an experiment, track it, print the table and write the report."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from harness.commands.executor_options import add_executor_options, given_executor
from harness.commands.terminal import print_table
from harness.errors import InputError
from harness.files.printable import one_line, tell
from harness.machine.distributed import follower
from harness.machine.progress import Reporter

if TYPE_CHECKING:
    from harness.api import Comparison
    from harness.comparison.tuning import Budget
    from harness.comparison.until import Until

SEARCH_SEEDS = "101"
FULL_SIZE = "full-size"
MOST_SEEDS = 15  # of harness.comparison.until, which is slow to import


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness compare` to the command line."""
    parser = subparsers.add_parser(
        "compare",
        help="train, evaluate, track and report the methods of an experiment file",
        description="Train every method of an experiment under the same conditions, evaluate, track in MLflow, write a "
        "report. Finished cells are kept: the same command goes on where it stopped.",
        epilog="example: harness compare demo --workdir work/demo --set seeds='[1, 2]'; meanwhile "
        "WORKDIR/live/index.html and harness status WORKDIR say how far it is; harness pause WORKDIR ends it "
        "cleanly",
    )
    parser.add_argument("experiment", help="a TOML file or a preset (see: harness list presets)")
    parser.add_argument("--workdir", default="work", help="everything that is kept (default: work)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="override a value, as seeds='[1]' or methods.simcse.temperature=0.1")  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="make this block of the file alone, or the rows of this pattern, as 'SCD*'; may be "
                        "repeated")  # fmt: skip
    parser.add_argument("--rehearse", nargs="?", const="laptop", choices=("laptop", FULL_SIZE), help="try the file "
                        "out: every row with the embedded model, little text and few updates (see [rehearsal]); "
                        "full-size: two updates of every row as it is, and what all of the file asks for")  # fmt: skip
    parser.add_argument("--tune", type=int, metavar="TRIALS", help="search every row's declared ranges with so many "
                        "trials on the dev set, and add the best configuration as a row of its own")  # fmt: skip
    parser.add_argument("--tune-steps", type=int, metavar="N", help="updates of a trial (default: max_steps)")
    parser.add_argument("--tune-seeds", metavar="LIST", help="seeds of the search, none of them one of the "
                        f"comparison's (default: {SEARCH_SEEDS})")  # fmt: skip
    parser.add_argument("--until", choices=("decided",), help="add seeds, one after the other, to the rows between "
                        "which a decision is open; verdicts are corrected for every look")  # fmt: skip
    parser.add_argument("--most-seeds", type=int, metavar="N", help="seeds of a row at most, with --until (default: "
                        f"{MOST_SEEDS}); fixed beforehand: every look's level depends on it")  # fmt: skip
    parser.add_argument("--more-seeds", metavar="LIST", help="the seeds that follow the experiment's, in this order "
                        "(default: the integers after its largest)")  # fmt: skip
    parser.add_argument("--budget", metavar="40runs|3h", help="with --until: no round is begun beyond so many runs, or "
                        "after so many hours of training and scoring; kept runs count")  # fmt: skip
    parser.add_argument("--equivalence", type=float, metavar="POINTS", help="with --until: less is no difference that "
                        "matters, and no seeds are spent on it (default: 0.5)")  # fmt: skip
    parser.add_argument("--rescore", choices=("outcomes",), help="score finished runs again whose scores an earlier "
                        "version made without the outcome of each example, from kept weights and vectors")  # fmt: skip
    parser.add_argument("--against", action="append", default=[], metavar="shipped|PATH", help="set the rows of "
                        "another work directory, an archive of one or the records that ship with the package "
                        "beside these, where made under the same conditions; nothing of them is trained")  # fmt: skip
    add_executor_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the cells and an estimate; run nothing")
    parser.add_argument("--tracking-uri", help="MLflow server or store (default: sqlite in the work directory)")
    parser.add_argument("--no-tracking", action="store_true", help="leave MLflow out; harness track sync can follow")
    parser.add_argument("--format", default="html,md,latex,csv", help="report formats (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress; only the table and the report's path")
    parser.set_defaults(run=run, several=True)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every cell came to a record, 1 when one failed."""
    from harness import api

    budget = _budget(args.tune, args.tune_steps, args.tune_seeds)
    until = _until(args)
    if args.dry_run or args.rehearse == FULL_SIZE:
        from harness.commands import dry_run

        if follower():
            return 0
        full_size = args.rehearse == FULL_SIZE
        small = bool(args.rehearse) and not full_size
        return dry_run.show(args.experiment, args.workdir, args.overrides, args.only, budget, rehearse=small,
                            full_size=full_size, until=until, against=args.against)  # fmt: skip
    result = api.compare(
        args.experiment,
        workdir=args.workdir,
        overrides=args.overrides,
        only=args.only,
        rehearse=bool(args.rehearse),
        tune=budget,
        until=until,
        tracked=not args.no_tracking,
        tracking_uri=args.tracking_uri,
        formats=args.format.split(","),
        executor=given_executor(args),
        progress=Reporter(quiet=args.quiet),
        say=tell,
        rescore=args.rescore is not None,
        against=args.against,
    )
    if follower():
        return 0
    _show(result)
    return 1 if result.failed else 0


def _budget(trials: int | None, steps: int | None, seeds: str | None) -> Budget | None:
    """What `--tune` and the options beside it ask for; None without it."""
    from harness.comparison.tuning import Budget

    if trials is None:
        for name, value in (("--tune-steps", steps), ("--tune-seeds", seeds)):
            if value is not None:
                raise InputError(f"{name}: goes with --tune TRIALS")
        return None
    return Budget(trials, steps, _numbers("--tune-seeds", seeds or SEARCH_SEEDS))


def _until(args: argparse.Namespace) -> Until | None:
    """What `--until` and the options beside it ask for; None without it."""
    from harness.comparison.until import Until

    given = {
        "--most-seeds": args.most_seeds,
        "--more-seeds": args.more_seeds,
        "--budget": args.budget,
        "--equivalence": args.equivalence,
    }
    if args.until is None:
        for name, value in given.items():
            if value is not None:
                raise InputError(f"{name}: goes with --until decided")
        return None
    asked: dict[str, Any] = {}
    if args.most_seeds is not None:
        asked["most"] = args.most_seeds
    if args.equivalence is not None:
        asked["equivalence"] = args.equivalence
    if args.more_seeds is not None:
        asked["order"] = _numbers("--more-seeds", args.more_seeds)
    if args.budget is not None:
        found = re.fullmatch(r"(\d+) ?runs|(\d+(?:\.\d+)?) ?h", args.budget)
        if found is None:
            raise InputError(f"--budget {args.budget}: expected runs or hours, as 40runs or 3h")
        runs, hours = found.groups()
        asked |= {"runs": int(runs)} if runs else {"hours": float(hours)}
    return Until(**asked)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InputError(f"{option} {text}: expected numbers with commas, as 101,102") from None


def _show(result: Comparison) -> None:
    """Print the table of scores, where the report lies, what a search chose, and which cells failed."""
    from harness.results.report_builder import report_builder

    builder = report_builder()
    if builder is None:
        tell(f"no reporter is installed; the records are in {result.workdir / 'runs'}")
    else:
        name = result.name
        assert result.experiment is not None  # of one that was just run
        for part, block in result.experiment.parts.items():
            title = block.title or part or result.experiment.title or name
            columns, rows, *legend = builder.summary_table(result.workdir, name, part)
            print_table(title, columns, rows, *legend)
        for kind, path in result.report.items():
            tell(f"{kind}: {path}")
        for report, written in result.further.items():
            for kind, path in written.items():
                tell(f"report {report}, {kind}: {path}")
    if result.tuning is not None:
        print_table(*result.tuning.table())
    for record in result.left_out:
        tell(f"n/a: {one_line(record.row)}: {one_line(record.reason)}")
    for record in result.records:
        if record.status in ("collapsed", "diverged"):
            tell(f"{record.status}: {one_line(record.row)}, seed {record.seed}: {one_line(record.reason)}")
    for record in result.failed:
        tell(f"failed: {one_line(record.row)}, seed {record.seed}: {one_line(record.reason)} "
              f"(details: {result.workdir / 'runs' / record.id / 'error.txt'}; all other runs are kept)")  # fmt: skip
