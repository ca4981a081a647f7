"""`harness study`: run a hyperparameter search, see what it found, join it from another machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from studies.definition.space import Space
    from studies.definition.study import Study
    from studies.show.findings import Sheet


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness study` to the command line."""
    parser = subparsers.add_parser(
        "study",
        help="search hyperparameters under an equal budget: run, list, show, best, export, work",
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
    run_.add_argument("--workers", type=int, default=1, metavar="N", help="local processes (default: 1)")
    run_.add_argument("--force-new", action="store_true", help="delete the trials of an earlier study of this name")
    run_.add_argument("--dry-run", action="store_true", help="print the space and the number of trials; run nothing")
    run_.add_argument("--tracking-uri", help="MLflow server or store (default: sqlite in the work directory)")
    run_.add_argument("--no-tracking", action="store_true", help="leave MLflow out")
    run_.add_argument("--quiet", action="store_true", help="no progress; only the tables")
    with_storage(run_)
    run_.set_defaults(run=run)

    list_ = add("list", "the presets, and the studies of a work directory or storage")
    with_storage(list_)
    list_.set_defaults(run=list_studies)
    show_ = add("show", "tables of a study: statistics, best trials, time")
    best_ = add("best", "the best configuration of a study")
    export_ = add("export", "tables as CSV, figures as SVG, PNG and PDF, experiment files with the best configuration")
    export_.add_argument("--out", metavar="FOLDER", help="where to (default: WORKDIR/studies/NAME)")
    best_.add_argument("--held-out", action="store_true", help="print the experiment file with the held-out seeds")
    for made, function in ((show_, show), (best_, best), (export_, export)):
        made.add_argument("name", help="name of the study")
        with_storage(made)
        made.set_defaults(run=function)
    show_.add_argument("--top", type=int, default=10, metavar="N", help="how many of the best trials (default: 10)")

    work_ = commands.add_parser("work", help="join a running study, from this or another machine",
                                description="Run trials of a study until all are finished.")  # fmt: skip
    work_.add_argument("url", help="the study's storage")
    work_.add_argument("name", help="name of the study")
    work_.add_argument("--workdir", help="where runs are kept (default: the study's own, where it is reachable)")
    work_.add_argument("--quiet", action="store_true", help="no progress")
    work_.set_defaults(run=join)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 when every planned trial has a result, 1 when one failed."""
    from harness.files.locks import work_lock
    from harness.results.run_folder import checked_workdir
    from studies import samplers
    from studies.coordinator import conduct
    from studies.definition.planned import planned_trials
    from studies.definition.space import make_space
    from studies.definition.study import read_study
    from studies.run.storage import bring_home, default_url
    from studies.run.tracking import tracker_of
    from studies.run.trial import Desk
    from studies.run.trials import finished_trials

    if args.workers < 1:
        raise InputError(f"--workers {args.workers}: expected 1 or more")
    study = read_study(args.study, args.overrides, quick=args.quick, name=args.name)
    space = make_space(study, args.study)
    remarks = samplers.check(study, space, args.study)
    planned = planned_trials(study, space)
    workdir = checked_workdir(args.workdir, create=not args.dry_run)
    if not args.quiet or args.dry_run:
        _introduce(study, space, len(planned), remarks)
    if args.dry_run:
        return 0
    desk = Desk(study, workdir)
    desk.plan({**space.first_point(), **planned[0]})  # data and models that are not there are told before anything
    url = args.storage or default_url(workdir)
    tracker = None
    if not args.no_tracking:
        tracker = tracker_of(study, space, workdir, args.tracking_uri)
    with work_lock(workdir):
        stored = conduct(study, space, desk, url=url, where=args.study, workers=args.workers, tracker=tracker,
                        force_new=args.force_new, quiet=args.quiet)  # fmt: skip
    trials = finished_trials(stored)
    _print(stored, study, space, trials, workdir, top=5)
    from studies.show.export import write

    print(f"tables and figures: {write(stored, study, space, trials, workdir, None)}")
    bring_home(url, study.name, workdir)
    failed = [t for t in trials if t.state.name == "FAIL"]
    for t in failed:
        reason = t.user_attrs.get("about", {}).get("reason") or t.user_attrs.get("reason", "")
        print(f"failed: trial {t.number}: {reason} (the same command tries it again)")
    return 1 if failed else 0


def join(args: argparse.Namespace) -> int:
    """Run trials of a study that another process made."""
    from harness.machine.progress import Reporter
    from harness.results.run_folder import checked_workdir
    from studies import slots
    from studies.definition.planned import planned_trials
    from studies.definition.space import make_space
    from studies.run.storage import WORKDIR, definition_of, load, open_storage
    from studies.run.trials import line_about
    from studies.worker import work

    stored = load(open_storage(args.url, create=False), args.name, args.url)
    study = definition_of(stored)
    workdir = checked_workdir(args.workdir or stored.user_attrs[WORKDIR])
    planned = planned_trials(study, make_space(study, args.name))
    # A worker that joins must not draw what another one draws: its stream is as good as its process id.
    import os

    with Reporter(slots.repair(stored, planned), quiet=args.quiet) as reporter:
        work(
            stored,
            workdir,
            number=100 + os.getpid(),
            started=lambda number: reporter.start(f"trial {number}"),
            progress=reporter.step,
            ended=lambda number, _: reporter.done(line_about(stored.get_trials(deepcopy=False)[number])),
        )
    return 0


def list_studies(args: argparse.Namespace) -> int:
    """Print presets and studies; always 0."""
    import tomllib

    from studies.definition.study import presets

    print("presets (each with --quick):")
    known = presets()
    width = max(map(len, known), default=0)
    for name, file in known.items():
        print(f"  {name:<{width}}  {tomllib.loads(file.read_text(encoding='utf-8')).get('title', '')}")
    workdir = Path(args.workdir)
    if args.storage is None and not (workdir / "studies.journal").exists():
        print(f"no studies in {workdir}")
        return 0
    import optuna

    from studies.run.storage import DEFINITION, default_url, open_storage
    from studies.run.trials import finished_trials

    url = args.storage or default_url(workdir)
    print(f"studies in {url.removeprefix('journal:') if args.storage is None else 'the storage'}:")
    for summary in optuna.study.get_all_study_summaries(storage := open_storage(url, create=False)):
        if DEFINITION in summary.user_attrs:
            opened = optuna.load_study(study_name=summary.study_name, storage=storage)
            print(f"  {summary.study_name}: {len(finished_trials(opened))} finished trials")
    return 0


def _opened(args: argparse.Namespace) -> tuple[optuna.Study, Study, Space, list[FrozenTrial]]:
    from studies.definition.space import make_space
    from studies.run.storage import default_url, definition_of, load, open_storage
    from studies.run.trials import finished_trials

    url = args.storage or default_url(Path(args.workdir))
    stored = load(open_storage(url, create=False), args.name, url)
    study = definition_of(stored)
    return stored, study, make_space(study, args.name), finished_trials(stored)


def show(args: argparse.Namespace) -> int:
    """Print the tables of a study."""
    from studies.definition.planned import planned_trials

    stored, study, space, trials = _opened(args)
    _introduce(study, space, len(planned_trials(study, space)), [])
    _print(stored, study, space, trials, Path(args.workdir), top=args.top)
    return 0


def best(args: argparse.Namespace) -> int:
    """Print the best trial and the experiment file that holds its configuration."""
    from studies.show.export import experiment_file

    stored, study, _, _ = _opened(args)
    print(experiment_file(stored, study, study.held_out_seeds if args.held_out else study.seeds), end="")
    return 0


def export(args: argparse.Namespace) -> int:
    """Write the files of a study."""
    from studies.run.storage import bring_home
    from studies.show.export import write

    stored, study, space, trials = _opened(args)
    folder = write(stored, study, space, trials, Path(args.workdir), Path(args.out) if args.out else None)
    if args.storage:
        bring_home(args.storage, study.name, Path(args.workdir))
    print(f"tables and figures: {folder}")
    return 0


def _introduce(study: Study, space: Space, planned: int, remarks: list[str]) -> None:
    print(f"{study.name}: {study.title or study.method}, sampler {study.sampler}, pruner {study.pruner}, "
          f"{planned} trials of {f'{study.steps} updates' if study.steps else 'whole runs'}, "
          f"seed{'s' if len(study.seeds) > 1 else ''} {', '.join(map(str, study.seeds))}")  # fmt: skip
    for p in space.parameters:
        condition = f" (when {', '.join(f'{k} = {v}' for k, v in p.when)})" if p.when else ""
        print(f"  {p.name}: {p.describe()}{condition}")
    for remark in remarks:
        print(remark)


def _print(
    stored: optuna.Study, study: Study, space: Space, trials: list[FrozenTrial], workdir: Path, *, top: int
) -> None:
    from harness.commands.terminal import print_table
    from studies.run.trials import best_trials
    from studies.show.export import sheets
    from studies.show.findings import Sheet, objective_names

    by_key = {sheet.key: sheet for sheet in sheets(stored, study, space, trials, workdir)}
    leading = best_trials(stored)[:top]
    rows = tuple(
        (t.number, *(t.params.get(n) for n in space.names), *(100 * v for v in t.values),
         " ".join(map(str, t.user_attrs["about"]["seeds"])))
        for t in leading
    )  # fmt: skip
    names = [f"{name} x 100" for name in objective_names(study)]
    shown: list[Sheet] = [Sheet("best", "Best trials", ("trial", *space.names, *names, "seeds"), rows)]
    for sheet in [*shown, by_key["summary"], by_key["time"]]:
        print_table(sheet.title, list(sheet.columns), sheet.text())
    if leading:
        print(f"The best score was chosen among {len(trials)} trials by seeds {study.seeds}: confirm it with held-out "
              f"seeds {study.held_out_seeds} (harness study best {study.name} --held-out).")  # fmt: skip
