"""The `harness` command. Nothing slow is imported to show help."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from harness import __version__, registry
from harness.commands.options import Parser
from harness.errors import HarnessError
from harness.files.atomic import is_exhausted, refusal, storage_fault
from harness.files.printable import SafeFormatter, shorten, tell_error, write_plain_signs
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
    "harness.commands.new",
    "harness.commands.doctor",
    "harness.commands.fetch",
    "harness.commands.clean",
    "harness.commands.study",
    "harness.commands.report",
    "harness.commands.decide",
    "harness.commands.why",
    "harness.commands.reproduce",
    "harness.commands.pack",
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
    errno.ENOENT,
    errno.EEXIST,
    errno.EINVAL,
)


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
    write_plain_signs()
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
        tell_error(f"harness: {shorten(str(error))}")
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
        return 1 if is_exhausted(error) else 2
    except Exception as error:  # of a library that reports the disk or a limit in its own words
        fault = storage_fault(error)
        if fault is None:
            raise
        tell_error(f"harness: {refusal(fault)}")
        return 1 if is_exhausted(fault) else 2
