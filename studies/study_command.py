"""`harness study`: run a hyperparameter search, see what it found."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from harness.commands.options import add_executor_options, given_executor
from harness.files.printable import tell, tell_lines

if TYPE_CHECKING:
    from studies.definition.space import Space
    from studies.definition.study import Study
    from studies.study_api import StudyResult


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness study` to the command line."""
    parser = subparsers.add_parser(
        "study",
        help="search hyperparameters under an equal budget: run, list, show, best, export",
        description="Search a method's hyperparameters. Every trial gets the same budget, and its runs are saved like "
        "those of a comparison.",
        epilog="example: harness study run barlow-twins-dropout --quick --workdir work/study --workers 2",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, help: str, description: str = "") -> argparse.ArgumentParser:
        words = {"run": "run barlow-twins-dropout --quick", "list": "list"}.get(name, f"{name} barlow-twins-dropout")
        made: argparse.ArgumentParser = commands.add_parser(
            name, help=help, description=description or help, epilog=f"example: harness study {words} --workdir work"
        )
        made.add_argument("--workdir", default="work", help="the work directory (default: work)")
        return made

    def with_storage(made: argparse.ArgumentParser) -> None:
        made.add_argument("--storage", metavar="URL", help="where trials are: a journal file, sqlite:///FILE, "
                          "postgresql://..., mysql://... (default: a journal file in the work directory)")  # fmt: skip

    run_ = add("run", "run a study file or preset; the same command resumes",
               "Run a study until its planned trials have ended. The same command resumes; runs that have a record "
               "are reused.")  # fmt: skip
    run_.add_argument("study", help="a TOML file or a preset (see: harness study list)")
    run_.add_argument("--quick", action="store_true", help="the file's small size: embedded data, minutes")
    run_.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                      help="override a value, as trials=20 or space.temperature='[0.05, 0.1]'")  # fmt: skip
    run_.add_argument("--name", help="name of the study (default: the file's)")
    add_executor_options(run_)
    run_.add_argument("--force-new", action="store_true", help="delete the trials of an earlier study of this name")
    run_.add_argument("--dry-run", action="store_true", help="print the space and the number of trials; run nothing")
    run_.add_argument("--tracking-uri", help="MLflow server or store (default: sqlite in the work directory)")
    run_.add_argument("--no-tracking", action="store_true", help="do not write to MLflow")
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
    from harness.results.store import checked_workdir
    from studies.study_api import plan_study, run_study

    planned = plan_study(args.study, args.overrides, quick=args.quick, name=args.name)
    if args.dry_run or not args.quiet:
        _introduce(planned.study, planned.space, len(planned.trials), planned.remarks)
    if args.dry_run:
        return 0
    result = run_study(
        planned, checked_workdir(args.workdir), storage=args.storage, executor=given_executor(args),
        tracked=not args.no_tracking, tracking_uri=args.tracking_uri, force_new=args.force_new, quiet=args.quiet,
    )  # fmt: skip
    _print(result, top=5)
    tell(f"tables and figures: {result.files}")
    for number, reason in result.failed.items():
        tell(f"failed: trial {number}: {reason} (the same command tries it again)")
    return 1 if result.failed else 0


def _list(args: argparse.Namespace) -> int:
    """Print presets and studies; always 0."""
    from studies.definition.study import presets
    from studies.storage import count_trials, default_url

    tell("presets (each with --quick):")
    titles = {name: tomllib.loads(file.read_text("utf-8")).get("title", "") for name, file in presets().items()}
    width = max(map(len, titles), default=0)
    for name, title in titles.items():
        tell(f"  {name:<{width}}  {title}")
    workdir = Path(args.workdir)
    if args.storage is None and not (workdir / "studies.journal").exists():
        tell(f"no studies in {workdir}")
        return 0
    tell(f"studies in {workdir if args.storage is None else 'the storage'}:")
    for name, ended in count_trials(args.storage or default_url(workdir)).items():
        tell(f"  {name}: {ended} finished trials")
    return 0


def _show(args: argparse.Namespace) -> int:
    """Print the tables of a study."""
    from studies.definition.planned import planned_trials

    result = _open(args)
    _introduce(result.study, result.space, len(planned_trials(result.study, result.space)), [])
    _print(result, top=args.top)
    return 0


def _best(args: argparse.Namespace) -> int:
    """Print the best trial and the experiment file that holds its configuration."""
    tell_lines(_open(args).experiment_file(held_out=args.held_out))
    return 0


def _export(args: argparse.Namespace) -> int:
    """Write the files of a study."""
    tell(f"tables and figures: {_open(args).export(Path(args.out) if args.out else None, storage=args.storage)}")
    return 0


def _open(args: argparse.Namespace) -> StudyResult:
    from studies.study_api import open_study

    return open_study(args.name, Path(args.workdir), args.storage)


def _introduce(study: Study, space: Space, planned: int, remarks: list[str]) -> None:
    tell(f"{study.name}: {study.title or study.method}, sampler {study.sampler}, pruner {study.pruner}, "
          f"{planned} trials of {f'{study.steps} training steps' if study.steps else 'whole runs'}, "
          f"seed{'s' if len(study.seeds) > 1 else ''} {', '.join(map(str, study.seeds))}")  # fmt: skip
    for p in space.parameters:
        condition = f" (when {', '.join(f'{k} = {v}' for k, v in p.when)})" if p.when else ""
        tell(f"  {p.name}: {p.describe()}{condition}")
    for remark in remarks:
        tell(remark)


def _print(result: StudyResult, *, top: int) -> None:
    from harness.commands.terminal import print_table
    from studies.show.findings import Sheet
    from studies.trials import best_trials, result_of

    study, names, sheets = result.study, result.space.names, result.sheets()
    leading = best_trials(result.stored)[:top]
    rows = tuple(
        (t.number, *(t.params.get(n) for n in names), *(100 * v for v in t.values),
         " ".join(map(str, result_of(t).seeds)))
        for t in leading
    )  # fmt: skip
    columns = ("trial", *names, *(f"{name} x 100" for name in study.objective_names), "seeds")
    for sheet in (Sheet("best", "Best trials", columns, rows), sheets["summary"], sheets["time"]):
        print_table(sheet.title, list(sheet.columns), sheet.text())
    if leading:
        tell(f"The best score was chosen among {len(result.ended)} trials by seeds {study.seeds}: confirm it with "
             f"held-out seeds {study.held_out_seeds} (harness study best {study.name} --held-out).")  # fmt: skip
