"""`harness compare` and `plan`: run an experiment, track it, print the table, write the report; or only plan it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.commands import options
from harness.commands.terminal import print_table
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_lines

if TYPE_CHECKING:
    from harness.api import Comparison

_OF_UNTIL = {"max_seeds": "most", "equivalence": "equivalence"}


def register(commands: options.Commands) -> None:
    """Add `harness compare` and `plan` to the command line."""
    choices = argparse.ArgumentParser(add_help=False)
    _add_choices(choices.add_argument)
    compare = options.add_command(
        commands, "compare", run, choices, *options.RUNS, options.FORMATS,
        help="train, evaluate, track and report the methods of an experiment file",
        description="Train every method of an experiment under the same conditions, evaluate, track in MLflow, write a "
        "report. Finished runs are reused: the same command resumes where it stopped. harness status and "
        "DIR/progress.html show the progress; Ctrl-C or harness stop stops it cleanly.",
        example="harness compare demo --workdir work/demo --set seeds='[1, 2]'",
    )  # fmt: skip
    compare.add_argument("--dry-run", action="store_true", help="as harness plan: run nothing")
    compare.set_defaults(freeze=False)
    plan = options.add_command(
        commands, "plan", run, choices, options.WORKDIR, options.SET,
        help="print what a comparison would run, how rows differ and a cost estimate",
        example="harness plan demo --freeze --workdir work/demo",
    )  # fmt: skip
    plan.add_argument("--freeze", action="store_true", help="write the plan, its date and hash into DIR/plans, before "
                      "any result: the report says whether the comparison was run as planned")  # fmt: skip
    plan.set_defaults(dry_run=True)


def _add_choices(add: Callable[..., object]) -> None:
    add("experiment", help="a TOML file or a preset (see: harness list presets)")
    add("--only", action="append", default=[], metavar="NAME", help="run only this block of the file, or the rows that "
        "match this pattern, as 'SCD*'; may be repeated")  # fmt: skip
    add("--rehearse", action="store_true", help="try the file: every row with the embedded model, little text and few "
        "training steps (see [rehearsal])")  # fmt: skip
    add("--measure", action="store_true", help="of a plan: time two training steps of each row")
    add("--tune", type=int, metavar="TRIALS", help="search every row's declared ranges with this many trials on the "
        "dev set, and add the best configuration as a row")  # fmt: skip
    add("--tune-steps", type=int, metavar="N", help="with --tune: training steps of a trial (default: max_steps)")
    add("--against", action="append", default=[], metavar="shipped|PATH", help="compare with rows that were "
        "made elsewhere under the same conditions: a work directory or an archive of one; may be repeated")  # fmt: skip
    add("--until", choices=("decided",), help="add seeds, one at a time, to the rows between which a decision is open; "
        "verdicts are corrected for the interim analyses")  # fmt: skip
    add("--max-seeds", type=int, metavar="N", help="with --until: largest number of seeds per row (default: 15)")
    add("--equivalence", type=float, metavar="POINTS", help="with --until: smaller differences do not matter "
        "(default: 0.5)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every run has a result, 1 when one failed."""
    from harness import api
    from reports.write import report_folder

    until = {name: value for option, name in _OF_UNTIL.items() if (value := getattr(args, option)) is not None}
    for wrong, message in (
        (until and not args.until, "--max-seeds, --equivalence: require --until decided"),
        (args.tune_steps is not None and args.tune is None, "--tune-steps: requires --tune"),
        (args.measure and not args.dry_run, "--measure: is an option of harness plan"),
        (args.freeze and args.rehearse, "--freeze: a rehearsal decides nothing; leave one of them out"),
    ):
        if wrong:
            raise InputError(message)
    choices = {
        "overrides": args.overrides,
        "only": args.only,
        "rehearse": args.rehearse,
        "tune": None if args.tune is None else api.Budget(args.tune, args.tune_steps),
        "until": api.Until(**until) if args.until else None,
        "against": args.against,
    }
    if args.dry_run:
        from harness.commands import dry_run

        return dry_run.show(args.experiment, args.workdir, measure=args.measure, freeze=args.freeze, **choices)
    result = api.compare(
        args.experiment,
        workdir=args.workdir,
        formats=args.format or report_folder.FORMATS,
        **options.run_settings(args),
        **choices,
    )
    _show(result)
    return 1 if result.failed else 0


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
