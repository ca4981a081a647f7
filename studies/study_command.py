"""`harness study`: run a hyperparameter search, see what it found."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.executor_options import add_executor_options, given_executor
from harness.files.printable import tell, tell_lines

if TYPE_CHECKING:
    from studies.definition.space import Space
    from studies.definition.study import Study
    from studies.show.findings import Sheet
    from studies.study_api import StoredStudy


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness study` to the command line."""
    parser = subparsers.add_parser(
        "study",
        help="search hyperparameters under an equal budget: run, list, show, best, export",
        description="Search a method's hyperparameters: every trial gets the same budget, is kept as a run, and can "
        "enter a comparison.",
        epilog="example: harness study run barlow-twins-dropout --quick --workdir work/study --workers 2",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, help: str, description: str = "") -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(name, help=help, description=description or help)
        made.add_argument("--workdir", default="work", help="everything that is kept (default: work)")
        return made

    def with_storage(made: argparse.ArgumentParser) -> None:
        made.add_argument("--storage", metavar="URL", help="where trials are: a journal file, sqlite:///FILE, "
                          "postgresql://..., mysql://... (default: a journal file in the work directory)")  # fmt: skip

    run_ = add("run", "run a study file or preset; the same command goes on where it stopped",
               "Run a study until its planned trials are finished. Given again it goes on; configurations that are "
               "known are answered from the records.")  # fmt: skip
    run_.add_argument("study", help="a TOML file or a preset (see: harness study list)")
    run_.add_argument("--quick", action="store_true", help="the file's small size: embedded data, minutes")
    run_.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                      help="override a value, as trials=20 or space.temperature='[0.05, 0.1]'")  # fmt: skip
    run_.add_argument("--name", help="name of the study (default: the file's)")
    add_executor_options(run_)
    run_.add_argument("--force-new", action="store_true", help="delete the trials of an earlier study of this name")
    run_.add_argument("--dry-run", action="store_true", help="print the space and the number of trials; run nothing")
    run_.add_argument("--tracking-uri", help="MLflow server or store (default: sqlite in the work directory)")
    run_.add_argument("--no-tracking", action="store_true", help="leave MLflow out")
    run_.add_argument("--quiet", action="store_true", help="no progress; only the tables")
    with_storage(run_)
    run_.set_defaults(run=_run)

    list_ = add("list", "the presets, and the studies of a work directory or storage")
    with_storage(list_)
    list_.set_defaults(run=_list)
    show_ = add("show", "tables of a study: statistics, best trials, time")
    best_ = add("best", "the best configuration of a study")
    export_ = add("export", "tables as CSV, figures as SVG, PNG and PDF, experiment files with the best configuration")
    export_.add_argument("--out", metavar="FOLDER", help="where to (default: WORKDIR/studies/NAME)")
    best_.add_argument("--held-out", action="store_true", help="print the experiment file with the held-out seeds")
    for made, function in ((show_, _show), (best_, _best), (export_, _export)):
        made.add_argument("name", help="name of the study")
        with_storage(made)
        made.set_defaults(run=function)
    show_.add_argument("--top", type=int, default=10, metavar="N", help="how many of the best trials (default: 10)")


def _run(args: argparse.Namespace) -> int:
    """Exit code 0 when every planned trial has a result, 1 when one failed."""
    from studies.run.trial_result import result_of
    from studies.study_api import PlannedStudy, plan_study
    from studies.study_result import study

    def introduce(plan: PlannedStudy) -> None:
        _introduce(plan.study, plan.space, len(plan.trials), plan.remarks)

    if args.dry_run:
        introduce(plan_study(args.study, args.overrides, quick=args.quick, name=args.name))
        return 0
    finished = study(
        args.study,
        args.workdir,
        overrides=args.overrides,
        quick=args.quick,
        name=args.name,
        storage=args.storage,
        executor=given_executor(args),
        tracked=not args.no_tracking,
        tracking_uri=args.tracking_uri,
        force_new=args.force_new,
        quiet=args.quiet,
        planned=None if args.quiet else introduce,
    )
    ended = finished.opened
    _print(ended, top=5)
    tell(f"tables and figures: {finished.files}")
    for trial in ended.failed:
        tell(f"failed: trial {trial.number}: {result_of(trial).reason} (the same command tries it again)")
    return 1 if ended.failed else 0


def _list(args: argparse.Namespace) -> int:
    """Print presets and studies; always 0."""
    from studies.run.storage import default_url
    from studies.study_api import preset_titles, studies_in

    tell("presets (each with --quick):")
    titles = preset_titles()
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        tell(f"  {name:<{width}}  {title}")
    workdir = Path(args.workdir)
    if args.storage is None and not (workdir / "studies.journal").exists():
        tell(f"no studies in {workdir}")
        return 0
    url = args.storage or default_url(workdir)
    known = studies_in(url)
    tell(f"studies in {url.removeprefix('journal:') if args.storage is None else 'the storage'}:")
    for name, ended in known.items():
        tell(f"  {name}: {ended} finished trials")
    return 0


def _show(args: argparse.Namespace) -> int:
    """Print the tables of a study."""
    from studies.definition.planned import planned_trials
    from studies.study_api import open_study

    opened = open_study(args.name, Path(args.workdir), args.storage)
    _introduce(opened.study, opened.space, len(planned_trials(opened.study, opened.space)), [])
    _print(opened, top=args.top)
    return 0


def _best(args: argparse.Namespace) -> int:
    """Print the best trial and the experiment file that holds its configuration."""
    from studies.show.export import experiment_file
    from studies.study_api import open_study

    opened = open_study(args.name, Path(args.workdir), args.storage)
    seeds = opened.study.held_out_seeds if args.held_out else opened.study.seeds
    tell_lines(experiment_file(opened.stored, opened.study, seeds))
    return 0


def _export(args: argparse.Namespace) -> int:
    """Write the files of a study."""
    from studies.study_api import export_study, open_study

    opened = open_study(args.name, Path(args.workdir), args.storage)
    folder = export_study(opened, Path(args.out) if args.out else None, storage=args.storage)
    tell(f"tables and figures: {folder}")
    return 0


def _introduce(study: Study, space: Space, planned: int, remarks: list[str]) -> None:
    tell(f"{study.name}: {study.title or study.method}, sampler {study.sampler}, pruner {study.pruner}, "
          f"{planned} trials of {f'{study.steps} updates' if study.steps else 'whole runs'}, "
          f"seed{'s' if len(study.seeds) > 1 else ''} {', '.join(map(str, study.seeds))}")  # fmt: skip
    for p in space.parameters:
        condition = f" (when {', '.join(f'{k} = {v}' for k, v in p.when)})" if p.when else ""
        tell(f"  {p.name}: {p.describe()}{condition}")
    for remark in remarks:
        tell(remark)


def _print(opened: StoredStudy, *, top: int) -> None:
    from harness.commands.terminal import print_table
    from studies.run.trial_result import result_of
    from studies.run.trials import best_trials
    from studies.show.export import sheets
    from studies.show.findings import Sheet

    stored, study, space, trials = opened.stored, opened.study, opened.space, opened.trials
    by_key = {sheet.key: sheet for sheet in sheets(stored, study, space, trials, opened.workdir)}
    leading = best_trials(stored)[:top]
    rows = tuple(
        (t.number, *(t.params.get(n) for n in space.names), *(100 * v for v in t.values),
         " ".join(map(str, result_of(t).seeds)))
        for t in leading
    )  # fmt: skip
    names = [f"{name} x 100" for name in study.objective_names]
    shown: list[Sheet] = [Sheet("best", "Best trials", ("trial", *space.names, *names, "seeds"), rows)]
    for sheet in [*shown, by_key["summary"], by_key["time"]]:
        print_table(sheet.title, list(sheet.columns), sheet.text())
    if leading:
        tell(f"The best score was chosen among {len(trials)} trials by seeds {study.seeds}: confirm it with held-out "
              f"seeds {study.held_out_seeds} (harness study best {study.name} --held-out).")  # fmt: skip
