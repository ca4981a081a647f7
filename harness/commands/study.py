"""`harness study`: run a hyperparameter search, see what it found."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from harness.commands import options
from harness.files.printable import tell, tell_lines

if TYPE_CHECKING:
    from harness.api.studies import StudyResult
    from studies.definition.space import Space
    from studies.definition.study import Study


def register(subparsers: options.Commands) -> None:
    """Add `harness study` to the command line."""
    example = "harness study {} --workdir work"
    commands = options.add_group(
        subparsers,
        "study",
        help="search hyperparameters under an equal budget: run, show",
        example=example.format("run barlow-twins-dropout --quick"),
    )
    run = options.add_command(
        commands,
        "run",
        run_study,
        options.CONDITIONS,
        *options.RUNS,
        help="run a study file or preset; the same command resumes",
        description="Run a study until its planned trials have ended. Every trial gets the same budget. The same "
        "command resumes; runs that have a record are reused.",
        example=example.format("run barlow-twins-dropout --quick"),
    )
    run.add_argument(
        "study", help="a TOML file, or the name of a preset (see: harness list studies)"
    )
    run.add_argument(
        "--quick", action="store_true", help="the small size that [quick] of the file sets"
    )
    run.add_argument(
        "--dry-run",
        action="store_true",
        help="run nothing: print the space and the number of trials",
    )
    show = options.add_command(
        commands,
        "show",
        show_study,
        options.WORKDIR,
        help="print the best trials and statistics of a study",
        description="Print the best trials and statistics of a study. Write its report, with the "
        "experiment files of its best configuration, to DIR/reports/NAME.",
        example=example.format("show barlow-twins-dropout"),
    )
    show.add_argument("name", help="name of the study")


def run_study(args: argparse.Namespace) -> int:
    """Exit code 0 when every planned trial has a result, 1 when one failed."""
    from harness.api import studies
    from studies.definition.study import read_study

    overrides = options.conditions_of(args, study=True)
    study = read_study(args.study, overrides, quick=args.quick)
    space = studies.read_space(study, args.study)
    if args.dry_run or not args.quiet:
        _introduce(study, space)
    if args.dry_run:
        tell_lines(studies.warn_of_test_parts(study))
        return 0
    result = studies.run_study(study, space, args.workdir, **options.run_settings(args))
    _show(result, top=5)
    for number, reason in result.failed.items():
        tell(f"failed: trial {number}: {reason} (the same command tries it again)")
    return 1 if result.failed else 0


def show_study(args: argparse.Namespace) -> int:
    """Print the tables of a study, and write its files."""
    from harness.api.studies import open_study

    result = open_study(args.name, args.workdir)
    result.write_report()
    _introduce(result.study, result.space)
    _show(result, top=10)
    return 0


def _introduce(study: Study, space: Space) -> None:
    """Print what is searched, and how."""
    from studies.definition.space import plan_trials

    if study.steps:
        length = f"{study.steps} training steps"
    else:
        length = "whole runs"
    tell(
        f"{study.name}: {study.title or study.method}, sampler {study.sampler}, pruner {study.pruner}, "
        f"{len(plan_trials(study, space))} trials of {length}, seeds {study.seeds}"
    )
    for line in space.describe():
        tell(f"  {line}")


def _show(result: StudyResult, *, top: int) -> None:
    """Print the best trials and statistics."""
    from harness.commands.terminal import print_table
    from reports.studies.findings import compare_with_start, untrained_score
    from reports.studies.study_tables import best_table, held_out_file, summary_table
    from studies.trials import best_trials

    study = result.study
    leading = best_trials(result.stored)
    if leading:
        start = untrained_score(result.stored, leading[0], study, result.workdir)
    else:
        start = None
    tables = (
        best_table(study, result.space, leading[:top], start),
        summary_table(study, result.space, result.ended),
    )
    for table in tables:
        if table is not None:
            heads = [column.title for column in table.columns]
            lines = []
            for row in table.rows:
                texts = [f"{cell.text} {cell.spread}" for cell in row.cells]
                lines.append([text.strip() for text in texts])
            print_table(table.title, heads, lines)
    tell(f"report: {result.files}/index.html")
    if leading:
        said = compare_with_start(leading[0], start)
        if said:
            tell(said)
        file = held_out_file(result.workdir, study.name)
        tell(
            f"The best score was chosen among {len(result.ended)} trials by seeds {study.seeds}: confirm it with "
            f"held-out seeds {study.held_out_seeds} (harness compare {file})."
        )
