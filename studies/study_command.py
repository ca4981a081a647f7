"""`harness study`: run a hyperparameter search, see what it found."""

from __future__ import annotations

import argparse
import tomllib
from typing import TYPE_CHECKING

from harness.commands.options import (
    EXECUTOR,
    QUIET,
    SET,
    TRACKING,
    WORKDIR,
    Commands,
    add_command,
    add_group,
    executor_keys,
    tracking,
)  # fmt: skip
from harness.files.printable import tell, tell_lines
from harness.machine.progress import Reporter

if TYPE_CHECKING:
    from studies.definition.space import Space
    from studies.definition.study import Study
    from studies.study_api import StudyResult


def register(subparsers: Commands) -> None:
    """Add `harness study` to the command line."""
    example = "harness study {} --workdir work"
    commands = add_group(
        subparsers, "study",
        help="search hyperparameters under an equal budget: run, list, show",
        example=example.format("run barlow-twins-dropout --quick"),
    )  # fmt: skip
    storage = argparse.ArgumentParser(add_help=False)
    storage.add_argument("--storage", metavar="URL", help="where trials are: a journal file, sqlite:///FILE, "
                         "postgresql://..., mysql://... (default: DIR/studies.journal)")  # fmt: skip
    run = add_command(
        commands, "run", run_study, WORKDIR, storage, SET, EXECUTOR, TRACKING, QUIET,
        help="run a study file or preset; the same command resumes",
        description="Run a study until its planned trials have ended. Every trial gets the same budget. The same "
        "command resumes; runs that have a record are reused.",
        example=example.format("run barlow-twins-dropout --quick"),
    )  # fmt: skip
    run.add_argument("study", help="a TOML file or a preset (see: harness study list)")
    run.add_argument("--quick", action="store_true", help="the file's small size: embedded data, minutes")
    run.add_argument("--force-new", action="store_true", help="delete the trials of an earlier study of this name")
    run.add_argument("--dry-run", action="store_true", help="print the space and the number of trials; run nothing")
    add_command(
        commands, "list", list_studies, WORKDIR, storage,
        help="the presets, and the studies of a work directory or storage",
        example=example.format("list"),
    )  # fmt: skip
    show = add_command(
        commands, "show", show_study, WORKDIR, storage,
        help="print the best trials, statistics and times of a study",
        description="Print the best trials, statistics and times of a study. Write its report, with the experiment "
        "files of its best configuration, to DIR/reports/NAME.",
        example=example.format("show barlow-twins-dropout"),
    )  # fmt: skip
    show.add_argument("name", help="name of the study")


def run_study(args: argparse.Namespace) -> int:
    """Exit code 0 when every planned trial has a result, 1 when one failed."""
    from studies import study_api
    from studies.definition.space import make_space
    from studies.definition.study import read_study
    from studies.samplers import check

    study = read_study(args.study, args.overrides, quick=args.quick)
    space = make_space(study, args.study)
    remarks = check(study, space, args.study)
    if args.dry_run or not args.quiet:
        _introduce(study, space)
        tell_lines("\n".join(remarks))
    if args.dry_run:
        tell_lines(study_api.warn_of_test_parts(study))
        return 0
    result = study_api.study(
        study, args.workdir, storage=args.storage, executor=executor_keys(args), force_new=args.force_new,
        progress=Reporter(quiet=args.quiet), **tracking(args),
    )  # fmt: skip
    _show(result, top=5)
    for number, reason in result.failed.items():
        tell(f"failed: trial {number}: {reason} (the same command tries it again)")
    return 1 if result.failed else 0


def list_studies(args: argparse.Namespace) -> int:
    """Print presets and studies; always 0."""
    import optuna

    from harness.commands.terminal import print_columns
    from studies.definition.study import presets
    from studies.storage import DEFINITION, default_url, open_storage
    from studies.trials import finished_trials

    tell("presets (each with --quick):")
    titles = {name: tomllib.loads(file.read_text("utf-8")).get("title", "") for name, file in presets().items()}
    print_columns([("", name, title) for name, title in titles.items()])
    workdir = args.workdir
    if args.storage is None and not (workdir / "studies.journal").exists():
        tell(f"no studies in {workdir}")
        return 0
    tell(f"studies in {workdir if args.storage is None else 'the storage'}:")
    storage = open_storage(args.storage or default_url(workdir), create=False)
    for name in optuna.get_all_study_names(storage):
        stored = optuna.load_study(study_name=name, storage=storage)
        if DEFINITION in stored.user_attrs:
            tell(f"  {name}: {len(finished_trials(stored))} finished trials")
    return 0


def show_study(args: argparse.Namespace) -> int:
    """Print the tables of a study, and write its files."""
    from studies.study_api import open_study

    result = open_study(args.name, args.workdir, args.storage)
    result.write_report(args.storage)
    _introduce(result.study, result.space)
    _show(result, top=10)
    return 0


def _introduce(study: Study, space: Space) -> None:
    """Print what is searched, and how."""
    from studies.definition.space import planned_trials

    tell(f"{study.name}: {study.title or study.method}, sampler {study.sampler}, pruner {study.pruner}, "
         f"{len(planned_trials(study, space))} trials of "
         f"{f'{study.steps} training steps' if study.steps else 'whole runs'}, seeds "
         f"{', '.join(map(str, study.seeds))}")  # fmt: skip
    for p in space.parameters:
        condition = f" (when {', '.join(f'{k} = {v}' for k, v in p.when.items())})" if p.when else ""
        tell(f"  {p.name}: {p.describe()}{condition}")


def _show(result: StudyResult, *, top: int) -> None:
    """Print the best trials, statistics and times."""
    from harness.commands.terminal import print_table
    from studies.show.study_tables import best_table, held_out_file, summary_table, time_table
    from studies.trials import best_trials

    study, leading = result.study, best_trials(result.stored)
    tables = (best_table(study, result.space, leading[:top]), summary_table(study, result.space, result.ended))
    for table in (*tables, time_table(result.ended)):
        if table is not None:
            lines = [[f"{cell.text} {cell.spread}".strip() for cell in row.cells] for row in table.rows]
            print_table(table.title, [column.title for column in table.columns], lines)
    tell(f"report: {result.files}/index.html")
    if leading:
        tell(
            f"The best score was chosen among {len(result.ended)} trials by seeds {study.seeds}: confirm it with "
            f"held-out seeds {study.held_out_seeds} (harness compare {held_out_file(result.workdir, study.name)})."
        )
