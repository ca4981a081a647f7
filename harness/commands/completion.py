"""`harness completion`: a script that completes commands, options and names of methods in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from harness import registry
from harness.errors import InputError
from harness.files.printable import tell_lines

SHELLS = ("bash", "zsh", "fish")
_FOLDERS = ("workdir", "out")  # arguments that name a folder; those that name files have one of the words below
_FILES = ("experiment", "study", "json", "file")


def register(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], whole: Callable[[], argparse.ArgumentParser]
) -> None:
    """Add `harness completion`; `whole` makes the parser with every command."""
    parser = subparsers.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Print a script for a shell. It is static: print it again after installing other plugins.",
        epilog="bash: harness completion bash > ~/.local/share/bash-completion/completions/harness; "
        "zsh: harness completion zsh > a folder of $fpath, as _harness; "
        "fish: harness completion fish > ~/.config/fish/completions/harness.fish",
    )
    parser.add_argument("shell", choices=SHELLS)

    def run(args: argparse.Namespace) -> int:
        tell_lines(script(args.shell, whole()))
        return 0

    parser.set_defaults(run=run)


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The completion of a parser with all its sub-commands.

    Raises:
        InputError: shtab is not installed.
    """
    try:
        import shtab
    except ModuleNotFoundError:
        raise InputError('completion needs shtab: pip install "sentence-harness[completion]"') from None
    _describe(parser, shtab.FILE, shtab.DIRECTORY)
    text: str = shtab.complete(parser, shell=shell)
    return text


def _describe(parser: argparse.ArgumentParser, file: dict[str, str], folder: dict[str, str]) -> None:
    """Say of each argument what completes it: the methods that are installed, files, folders."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                _describe(inner, file, folder)
        elif action.dest == "method" and not action.option_strings:
            action.choices = registry.names(registry.METHODS)
        elif action.dest in (*_FOLDERS, *_FILES):
            action.complete = folder if action.dest in _FOLDERS else file  # type: ignore[attr-defined]
