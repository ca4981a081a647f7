"""The `harness` command. Sub-commands come in by entry points; nothing slow is imported to show help."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import __version__, registry
from harness.commands import check_method as check_command
from harness.commands import compare, completion, encode, merge, new, push
from harness.commands import evaluate as evaluate_command
from harness.commands import list as list_command
from harness.commands import pretrain as pretrain_command
from harness.commands import status as status_command
from harness.commands import stop as stop_command
from harness.commands import train as train_command
from harness.commands.parser import Parser
from harness.errors import HarnessError, InputError
from harness.files.faults import refusal
from harness.files.printable import ToldFormatter, tell_error
from harness.machine.distributed import follower
from harness.machine.environment import disable_telemetry

DESCRIPTION = """\
Which self-supervised sentence-embedding method is really better, and by how much?

  harness compare demo               train, evaluate and report a comparison (see: harness list presets)
  harness status WORKDIR             how far it is, what failed, when it ends (pause, cancel: end it cleanly)
  harness evaluate MODEL             score any model of the hub or a folder
  harness train METHOD               train one method and save it as a SentenceTransformer
  harness pretrain --corpus TEXT     make or adapt a base model by masked-language modelling
  harness list methods               what there is to compare
"""

# What a path that a user names may meet anywhere, whoever opens it.
OUT_OF_REACH = (
    errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP,
)  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """The parser with every installed sub-command."""
    parser: argparse.ArgumentParser = Parser(
        prog="harness",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit codes: 0 done, 1 something failed (the message says what was kept), 2 wrong input",
    )
    parser.add_argument("--version", action="version", version=f"harness {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (
        compare, status_command, stop_command, evaluate_command, encode, train_command, pretrain_command, list_command,
        check_command, merge, new, push,
    ):  # fmt: skip
        module.register(subparsers)
    _register_doctor(subparsers)
    completion.register(subparsers, build_parser)
    for name in registry.names(registry.COMMANDS):
        try:
            registry.load(registry.COMMANDS, name)(subparsers)
        except InputError as error:  # a third party's broken command must not take the others with it
            tell_error(f"harness: warning: {error}")
    return parser


def _register_doctor(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("doctor", help="devices, precision, hub, caches and versions of this machine")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--workdir", type=Path, metavar="W", help="verify every file of a work directory instead, and "
                        "say what would be made again")  # fmt: skip

    def run(args: argparse.Namespace) -> int:
        from harness.commands import doctor, workdir_check

        if args.workdir is not None:
            return workdir_check.run(args.workdir, as_json=args.json)

        return doctor.run(json=args.json)

    parser.set_defaults(run=run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors for the user are one line on standard error."""
    disable_telemetry()
    if isinstance(logging.lastResort, logging.Handler):  # what libraries and we log, where no one asked for a log
        logging.lastResort.setFormatter(ToldFormatter())
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    try:
        args = build_parser().parse_args(argv)
        if follower() and not getattr(args, "several", False):
            return 0  # nothing to share: the main process does it by itself
        code: int = args.run(args)
        return code
    except HarnessError as error:
        tell_error(f"harness: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        tell_error("harness: interrupted; finished runs and checkpoints are kept, the same command goes on")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno in OUT_OF_REACH and error.filename:
            tell_error(f"harness: {error.filename}: {os.strerror(error.errno)}; make it accessible, or name another")
            return 2
        line = refusal(error)
        if line is None:
            raise
        tell_error(f"harness: {line}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
