"""What several commands share: how a command is added, and the options that they have in common."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from harness.config import drop_unset, nearest, setting
from harness.errors import InputError
from harness.files.printable import safe_line
from harness.files.reading import is_there
from harness.machine.progress import Reporter

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Options: TypeAlias = argparse.ArgumentParser


# Commands of earlier versions, and what they are told.
REPLACED = {
    "plan": "harness plan was replaced by harness compare --dry-run, and with --freeze by harness "
    "compare --freeze"
}

_NUMBERS: dict[Any, str] = {int: "a whole number", float: "a number"}


class Parser(argparse.ArgumentParser):
    """argparse's parser without abbreviations of options, whose errors are one line that is safe to
    print.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """One line on standard error, exit code 2."""
        fault = safe_line(message.removeprefix("argument "))
        self.exit(2, f"harness: {fault}; {self.prog} --help shows what there is\n")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type not in _NUMBERS:
                raise
            expected = f'expected {_NUMBERS[action.type]}, not "{arg_string}"'
            raise argparse.ArgumentError(action, expected) from None

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: Any = None,
    ) -> tuple[Any, list[str]]:
        """As argparse's; an unknown option is reported with the nearest one, before missing
        arguments are.
        """
        given = list(sys.argv[1:] if args is None else args)
        known = [option for option in self._option_string_actions if option.startswith("--")]
        for word in given:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break  # the rest are no options, or those of the sub-command
            name = word.partition("=")[0]
            if name.startswith("--") and " " not in word and name not in known:
                self.error(f"unknown option {name}{nearest(name, known)}")
        return super().parse_known_args(given, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # argparse suggests no choice before Python 3.14
        if action.choices is not None and value not in action.choices:
            is_command = action.nargs == argparse.PARSER and " " not in self.prog
            if is_command and value in REPLACED:
                raise argparse.ArgumentError(None, REPLACED[value])
            known = [str(choice) for choice in action.choices]
            hint = nearest(str(value), known)
            message = f'unknown "{value}"{hint}; known: {", ".join(known)}'
            raise argparse.ArgumentError(action, message)


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *parents: Options,
    help: str,
    example: str,
    description: str = "",
) -> argparse.ArgumentParser:
    """Add a command whose help ends with an example.

    Args:
        run: takes the parsed options and returns the exit code.
        parents: options that the command shares with others.
    """
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description or f"{help[0].upper()}{help[1:]}.",
        epilog=f"example: {example}",
        parents=parents,
    )
    parser.set_defaults(run=run)
    return parser


def add_group(commands: Commands, name: str, *, help: str, example: str) -> Commands:
    """Add a command that has commands of its own."""
    parser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.",
        epilog=f"example: {example}",
    )
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def reading(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Have a command that only reads a work directory take an archive of one as --workdir, too."""

    @wraps(run)
    def run_on_folder(args: argparse.Namespace) -> int:
        if not is_there(args.workdir) or not args.workdir.is_file():
            return run(args)
        from harness.results.elsewhere import open_workdir

        with open_workdir(args.workdir) as folder:
            args.workdir = folder
            return run(args)

    return run_on_folder


def one_name(text: str) -> str:
    """One name of an option that takes several by being repeated; benchmarks of mteb have commas in
    brackets, and files may have some.

    >>> one_name("mteb-benchmark:MTEB(eng, v2)")
    'mteb-benchmark:MTEB(eng, v2)'
    """
    outside = re.sub(r"\([^()]*\)", "", text)
    if "," in outside and not is_there(Path(text)):
        raise argparse.ArgumentTypeError(
            f'expected one name, not "{text}"; repeat the option for each'
        )
    return text


def name_or_table(text: str) -> str | dict[str, Any]:
    """Parse a name, or settings of a file as an experiment has them.

    >>> name_or_table('{ task = "pairs.csv", share = 0.3 }')
    {'task': 'pairs.csv', 'share': 0.3}
    """
    if not text.lstrip().startswith("{"):
        return text
    _, value = setting(f"table={text}")
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(
            f'expected a name, or a table as {{ task = "pairs.csv" }}, not {text}'
        )
    return value


def one_suite(text: str) -> str | dict[str, Any]:
    """Parse a suite, a task or a file, or a table of a file's settings."""
    if text.lstrip().startswith("{"):
        return name_or_table(text)
    return one_name(text)


def parse_seeds(text: str) -> int | list[int]:
    """Parse a number of seeds, or a list.

    >>> parse_seeds("3"), parse_seeds("[4, 5]")
    (3, [4, 5])
    """
    if text.isdecimal():
        return int(text)
    try:
        value = tomllib.loads(f"v = [{text.strip('[]')}]")["v"]
    except ValueError:  # no TOML, or a number of thousands of digits
        value = []
    if not value or not all(type(one) is int for one in value):
        raise argparse.ArgumentTypeError(f'expected a number of seeds, or a list, not "{text}"')
    return value  # type: ignore[no-any-return]


def _option(*names: str, **about: Any) -> Options:
    """An option that several commands have."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(*names, **about)
    return parser


WORKDIR = _option(
    "--workdir",
    type=Path,
    default=Path("work"),
    metavar="DIR",
    help="folder of the runs and reports (default: work)",
)

JSON = _option("--json", action="store_true", help="print JSON")

QUIET = _option("--quiet", action="store_true", help="show no progress")

TRACKING = _option(
    "--tracking-uri",
    metavar="URI|none",
    help="MLflow server or database, or another tracker, as trackio://; none: track nothing "
    "(default: DIR/mlflow.db)",
)

SET = _option(
    "--set",
    action="append",
    default=[],
    metavar="KEY=VALUE",
    dest="overrides",
    help="override a value "
    "of the file, as max_steps=50 or executor.gpus_per_run=1; may be repeated",
)

CONDITIONS = _option(
    "--base-model",
    action="append",
    metavar="MODEL",
    help="hub id, folder or embedded:NAME, in place of the file's; may be repeated",
)
CONDITIONS.add_argument(
    "--corpus",
    type=name_or_table,
    metavar="URI|FILE",
    help="the training text, in place of the file's; or '{ uri = \"FILE\", columns = { text = "
    '"NAME" } }\'',
)
CONDITIONS.add_argument(
    "--suite",
    action="append",
    type=one_suite,
    metavar="NAME|FILE",
    help="a suite, a task or a file to evaluate on, in place of the file's; or '{ task = \"FILE\", "
    "columns = { ... } }'; may be repeated",
)
CONDITIONS.add_argument(
    "--dev",
    type=name_or_table,
    metavar="TASK|FILE",
    help="what selects checkpoints, in place of the file's; of a file that --suite names too, half",
)
CONDITIONS.add_argument(
    "--seeds",
    type=parse_seeds,
    metavar="N",
    help="number of seeds, or a list as '[4, 5]', in place of the file's",
)
CONDITIONS.add_argument("--device", help="auto, cpu, cuda, cuda:N or mps, in place of the file's")
"""What experiments and studies are run under; see `conditions_of`."""

COMPARISON = _option(
    "--comparison", default="", metavar="NAME", help="which one, if the folder holds several"
)

ROW_BASE_MODEL = _option(
    "--base-model", default="", metavar="MODEL", help="which one, if a row has several"
)

ON = _option(
    "--on",
    default="",
    metavar="NAME",
    help="what to compare by: a task, a suite or a block, as "
    "STS, MR, transfer (default: as the report does)",
)

SCORES = _option(
    "--scores",
    action="append",
    default=[],
    metavar="PATH",
    help="scores that others made, in place of a work "
    "directory: a CSV or Parquet file (row, seed, task, example, score), results of mteb, logs of "
    "lm-evaluation-harness or Inspect; may be repeated",
)

EQUIVALENCE = _option(
    "--equivalence",
    type=float,
    default=0.5,
    metavar="POINTS",
    help="differences below this do not matter (default: 0.5)",
)

FORMATS = _option(
    "--format",
    action="append",
    type=one_name,
    metavar="NAME",
    help="of the report: html, md, latex, csv, pdf, ro-crate or every-eval-ever; may be repeated "
    "(default: the first four)",
)

EXECUTOR = _option(
    "--executor",
    metavar="NAME",
    help="where runs are executed: serial (this process), processes "
    "(of this machine), ray or slurm (default: that of the file, else serial)",
)
EXECUTOR.add_argument(
    "--workers", type=int, metavar="N", help="number of runs at a time (default: as many as fit)"
)

RUNS = (WORKDIR, SET, EXECUTOR, TRACKING, QUIET)
"""Of the commands that execute runs."""

CONFIG = _option("--preset", help="a preset of the method (see: harness list methods NAME)")
CONFIG.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="KEY=VALUE",
    dest="config",
    type=setting,
    help="a value of the method's configuration, as temperature=0.1; may be repeated",
)
CONFIG.add_argument(
    "--base-model",
    default="embedded:mini-bert",
    metavar="MODEL",
    help="hub id, folder or embedded:NAME (default: %(default)s)",
)


def executor_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of `EXECUTOR` say, as the functions of the API take it."""
    return drop_unset({"name": args.executor, "workers": args.workers})


def run_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What the options of `RUNS` say, as the functions of the API take it."""
    return {
        "executor": executor_of(args),
        "tracking_uri": args.tracking_uri,
        "progress": Reporter(quiet=args.quiet),
    }


def conditions_of(args: argparse.Namespace, *, study: bool = False) -> list[str]:
    """Return what the options of `CONDITIONS` say as `--set` takes it; those of --set come after.

    Raises:
        InputError: two base models for a study.
    """
    from harness.api.keywords import as_overrides

    models = args.base_model or []
    if study and len(models) > 1:
        raise InputError("a study has one base model", key="--base-model")
    if study:
        model = {"base_model": models[0] if models else None}
    else:
        model = {"base_models": models or None}
    given = as_overrides(
        **model,
        corpus=args.corpus,
        suites=args.suite,
        dev=args.dev,
        seeds=args.seeds,
        device=args.device,
    )
    return [*given, *args.overrides]
