"""The `harness` command. Nothing slow is imported to show help."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from harness import __version__, registry
from harness.config import nearest
from harness.errors import HarnessError
from harness.files.atomic import refusal
from harness.files.printable import SafeFormatter, safe_line, tell_error
from harness.machine.environment import disable_telemetry

DESCRIPTION = """\
Which self-supervised sentence-embedding method is really better, and by how much?

  harness compare demo               train, evaluate and report a comparison (see: harness list presets)
  harness status                     how far it is, and what failed (harness stop: stop it cleanly)
  harness evaluate MODEL             score any model of the hub or a folder
  harness train METHOD               train one method and save it as a SentenceTransformer
  harness list methods               what there is to compare
"""
EPILOG = """exit codes: 0 done, 1 something failed (the message says what was saved), 2 wrong input
example: harness compare demo --workdir work/demo"""

# In the order of the help. Each has a function `register`.
COMMANDS = (
    "harness.commands.compare",
    "harness.commands.status",
    "harness.commands.models",
    "harness.commands.list",
    "harness.commands.check_method",
    "harness.commands.doctor",
    "studies.study_command",
    "reports.report_command",
    "reports.decide_commands",
    "reports.reproduce",
)

# What a path that a user names may cause anywhere, whichever module opens it.
OUT_OF_REACH = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


class Parser(argparse.ArgumentParser):
    """argparse's parser without abbreviations of options, whose errors are safe to print."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Usage and the error on standard error, exit code 2."""
        super().error(safe_line(message))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
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
            known = [str(choice) for choice in action.choices]
            message = f'unknown "{value}"{nearest(str(value), known)}; known: {", ".join(known)}'
            raise argparse.ArgumentError(action, message)


def build_parser() -> argparse.ArgumentParser:
    """The parser with every sub-command."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="harness", description=DESCRIPTION, formatter_class=layout, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"harness {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    registry.unhide(registry.OWN)  # a folder of the user's own may have a studies.py
    for name in COMMANDS:
        import_module(name).register(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors for the user are one line on standard error."""
    disable_telemetry()
    if isinstance(
        logging.lastResort, logging.Handler
    ):  # messages of libraries and ours, where no log is configured
        logging.lastResort.setFormatter(SafeFormatter())
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    try:
        args = build_parser().parse_args(argv)
        code: int = args.run(args)
        return code
    except HarnessError as error:
        tell_error(f"harness: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        tell_error(
            "harness: interrupted; finished runs and checkpoints are saved, the same command resumes"
        )
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        line = refusal(error)
        if error.errno in OUT_OF_REACH and error.filename:
            line = (
                f"{error.filename}: {os.strerror(error.errno)}; make it accessible, or name another"
            )
        if line is None:
            raise
        tell_error(f"harness: {line}")
        return 2
