"""`harness compare`: run an experiment, track it, print the table, write the report; or only plan
it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.commands import options
from harness.commands.dry_run import show_differences, show_runs
from harness.config import drop_unset
from harness.errors import InputError
from harness.files.printable import join_some, tell, tell_lines

if TYPE_CHECKING:
    from harness.api import Comparison
    from harness.runs.experiment import Experiment
    from harness.runs.selection import Budget


def register(commands: options.Commands) -> None:
    """Add `harness compare` to the command line."""
    compare = options.add_command(
        commands,
        "compare",
        run,
        options.CONDITIONS,
        *options.RUNS,
        options.FORMATS,
        help="train, evaluate, track and report the methods of an experiment file",
        description="Train every method of an experiment under the same conditions, evaluate them, track the runs in "
        "MLflow and write a report. Finished runs are reused: the same command resumes where it stopped. `harness "
        "status` and DIR/progress.html show the progress; Ctrl-C or `harness stop` stops it cleanly.",
        example="harness compare demo --workdir work/demo --seeds 2",
    )
    _add_choices(compare.add_argument)
    compare.add_argument(
        "--rehearse",
        action="store_true",
        help="try the file: every row with the embedded model, "
        "little text and few training steps; [rehearsal] of the file sets the sizes",
    )
    compare.add_argument(
        "--dry-run",
        action="store_true",
        help="run nothing: print the runs, how rows differ and the estimated time",
    )
    compare.add_argument(
        "--measure",
        action="store_true",
        help="as --dry-run; time two training steps and an encoding of each row for the estimate",
    )
    compare.add_argument(
        "--freeze",
        action="store_true",
        help="as --dry-run; also write the plan, its date and hash into DIR/plans: the report then says "
        "whether the comparison was run as planned",
    )


def _add_choices(add: Callable[..., object]) -> None:
    add("experiment", help="a TOML file, or the name of a preset (see: harness list presets)")
    add(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="run only this block of the file, or the rows that "
        "match this pattern, as 'SCD*'; may be repeated",
    )
    add(
        "--tune",
        type=int,
        metavar="TRIALS",
        help="first search the ranges that each row's method declares, with "
        "this many trials on the dev set; the best configuration is added as a row",
    )
    add(
        "--against",
        action="append",
        default=[],
        metavar="shipped|PATH",
        help="compare with rows that were "
        "made elsewhere under the same conditions: those that ship, or those of a work directory or of an archive of "
        "one; may be repeated",
    )
    add(
        "--until",
        choices=("decided",),
        help="add seeds, one at a time, to the rows that are not decided yet; "
        "verdicts are corrected for the interim analyses",
    )
    add(
        "--max-seeds",
        type=int,
        metavar="N",
        help="with --until: largest number of seeds per row (default: 15)",
    )
    add(
        "--equivalence",
        type=float,
        metavar="POINTS",
        help="with --until: differences below this do not matter (default: 0.5)",
    )


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every run has a result, 1 when one failed."""
    from harness import api
    from reports.write import report_folder

    until = drop_unset({"most": args.max_seeds, "equivalence": args.equivalence})
    if until and not args.until:
        raise InputError("--max-seeds, --equivalence: require --until decided", key="--max-seeds")
    choices = {name: getattr(args, name) for name in ("only", "rehearse", "against")}
    choices["overrides"] = options.conditions_of(args)
    if args.tune is None:
        choices["tune"] = None
    else:
        choices["tune"] = api.Budget(args.tune)
    if args.until:
        choices["until"] = api.Until(**until)
    else:
        choices["until"] = None
    if args.dry_run or args.measure or args.freeze:
        return show_plan(
            args.experiment,
            args.workdir,
            measure=args.measure,
            freeze=args.freeze,
            executor=options.executor_of(args),
            **choices,
        )
    choices |= {"formats": args.format or report_folder.FORMATS, **options.run_settings(args)}
    result = api.compare(args.experiment, workdir=args.workdir, **choices)
    _show(result)
    return 1 if result.failed else 0


def show_plan(
    source: Any,
    workdir: Path,
    *,
    measure: bool = False,
    freeze: bool = False,
    **choices: Any,
) -> int:
    """Print what a comparison would run, how its rows differ, and about how long it would take.

    Args:
        source: as in `harness.compare`, like `choices`.
        measure: time two training steps and an encoding of each row for the estimate.
        freeze: write the plan.
    """
    from harness.api.experiments import more_seeds_of, notices, plan_comparison, sources_of
    from harness.results.store import checked_workdir
    from harness.runs.against import find_other_rows
    from harness.runs.code_changes import describe_code_changes
    from harness.runs.frozen_plan import describe_changes, freeze_plan

    folder = checked_workdir(workdir, create=False)
    planned = plan_comparison(source, to_run=freeze, **choices)
    plan = planned.plan
    experiment = plan.experiment
    if planned.budget is not None:
        tell(_describe_searches(experiment, planned.budget, folder))
    if planned.choices.until is not None:
        more = more_seeds_of(planned.choices.until, experiment)
        plan = more.begin(plan)
        tell(
            f"{more.first} seeds per row up to the first interim analysis; then one more where a decision is open,"
            f" at most {planned.choices.until.most} per row"
        )
    show_runs(plan, folder, measure=measure)
    show_differences(plan)
    amount, unit = experiment.budget.describe()
    if amount:
        tell(f"budget: {amount} {unit}")
    others = find_other_rows(plan, sources_of(planned.choices.against), None)
    for line in [
        *others.summary(),
        *notices(plan, differences_shown=True),
        *describe_code_changes(plan, folder),
    ]:
        tell(line)
    if changes := describe_changes(folder, plan, planned.choices.until):
        tell(changes)
    if freeze:
        file, digest = freeze_plan(folder, plan, planned.choices.until)
        tell(f"plan {digest} written to {file}: publish the hash before the first result")
    return 0


def _describe_searches(experiment: Experiment, budget: Budget, workdir: Path) -> str:
    """Say which rows are searched before they are compared, and with how many trials."""
    from studies.tune import plan_searches

    searches = plan_searches(experiment, budget, workdir)
    searched = []
    for entry, study in zip(experiment.methods, searches, strict=True):
        if not isinstance(study, str):
            searched.append(entry.label)
    return (
        f"first a search of {len(searched)} rows: {budget.trials} trials of up to {budget.steps:,} training steps "
        f"each ({join_some(searched)}); each adds a tuned row"
    )


def _show(result: Comparison) -> None:
    """Print which runs failed, the table of scores, the answer, and where the report is."""
    tell_lines(str(result))
    for written in (result.report, *result.further.values()):
        if "json" in written:
            data = json.loads(written["json"].read_text("utf-8"))
            tell_lines(data["answer"])
            tell(f"report: {next(iter(written.values()))}")
    if result.decision:
        tell_lines(result.decision)
