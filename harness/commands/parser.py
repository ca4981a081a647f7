"""argparse's parser with our manners: complaints are safe to print, and a word that is nearly right is named."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from harness.config import nearest
from harness.files.printable import one_line, told


class Parser(argparse.ArgumentParser):
    """As argparse's; sub-commands have parsers of this class too."""

    def error(self, message: str) -> NoReturn:
        """Usage and the complaint on standard error, exit code 2."""
        super().error(told(message))

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """As argparse's; an option that is not known ends it before anything else is found missing."""
        given = list(sys.argv[1:] if args is None else args)
        for word in given:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break  # what follows is no option, or the sub-command's
            name = word.partition("=")[0]
            known = [option for option in self._option_string_actions if option.startswith("--")]
            if name.startswith("--") and " " not in word and not any(option.startswith(name) for option in known):
                self.error(f"unknown option {one_line(name)}{nearest(name, known)}")
        return super().parse_known_args(given, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Is it one of the choices? argparse suggests none before Python 3.14."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f'unknown "{one_line(str(value))}"{nearest(str(value), known)}; known: {", ".join(known)}'
            )
