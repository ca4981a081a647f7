"""`harness new`: a package with a method or a task of your own, which can be installed and tested."""

from __future__ import annotations

import argparse
import keyword
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template

from harness import registry
from harness.commands.options import Commands, add_command
from harness.errors import InputError
from harness.files.atomic import write_fault
from harness.files.printable import one_line, tell
from harness.registry import Group

KINDS: dict[str, Group] = {"method": registry.METHODS, "task": registry.TASKS}
_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_LONGEST = 60
_SUFFIX = ".txt"  # the files are no code of this package before their names are filled in


def register(commands: Commands) -> None:
    """Add `harness new` to the command line. Imports nothing slow."""
    new = add_command(
        commands,
        "new",
        run,
        help="write an installable package with a method or task of your own, and a test of it",
        description="Write a folder with a method or a task that works: pyproject.toml with its entry point, the "
        "module, a README and a test. Install it with the command that is printed, then change the module.",
        example="harness new method my_loss; harness new task word-order",
    )
    new.add_argument("kind", choices=list(KINDS), help="what to write")
    new.add_argument("name", metavar="NAME", help="of the method or task, as my_loss")
    new.add_argument(
        "--out", type=Path, metavar="FOLDER", help="a folder that does not exist (default: NAME)"
    )


def run(args: argparse.Namespace) -> int:
    """Exit code 0 once the folder is written."""
    folder = args.out or Path(args.name)
    if folder.exists():
        raise InputError("exists already", file=folder, key="--out", remedy="name another folder")
    check_name(args.kind, args.name)
    files = package_files(args.kind, args.name)
    try:
        folder.mkdir(parents=True)
        _write_files(folder, files)
    except OSError as error:
        message = f"cannot be written ({error.strerror})"
        raise write_fault(error, message, file=folder, key="--out") from None
    tell(one_line(f"{folder}: {', '.join(files)}"))
    tell(one_line(f"install it with: pip install --no-build-isolation -e {folder}"))
    tell(one_line(f"then test it with: python -m pytest {folder}"))
    return 0


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a new folder, which is removed where one of them cannot be written."""
    try:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_name(kind: str, name: str) -> None:
    """Check that a method or task, and a module, may have this name.

    Raises:
        InputError: it is none, or it is taken.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        raise InputError(
            f'"{one_line(name[: _LONGEST + 1])}": expected small letters and digits, joined by _ or -, '
            f"as my_loss, at most {_LONGEST}",
            key="NAME",
        )
    if name in registry.names(KINDS[kind]):
        raise InputError(f'there is a {kind} "{name}" already', key="NAME", remedy="take another")
    module = module_of(name)
    if find_spec(module) is not None:
        raise InputError(
            f'"{name}": a module {module} is installed already, which it would hide',
            key="NAME",
            remedy="take another",
        )


def module_of(name: str) -> str:
    """Return the name of the module.

    >>> module_of("word-order")
    'word_order'
    """
    return name.replace("-", "_")


def package_files(kind: str, name: str) -> dict[str, str]:
    """Return the files of the package: name -> text.

    >>> list(package_files("method", "my_loss"))
    ['README.md', 'my_loss.py', 'pyproject.toml', 'test_my_loss.py']
    """
    module = module_of(name)
    words = {
        "name": name,
        "module": module,
        "package": module.replace("_", "-"),
        "kind": module.title().replace("_", ""),
        "title": module.replace("_", " ").capitalize(),
    }
    files = {}
    for file in sorted(Path(__file__).with_name(f"new_{kind}").iterdir()):
        target = file.name.removesuffix(_SUFFIX).replace("NAME", module)
        files[target] = Template(file.read_text(encoding="utf-8")).substitute(words)
    return dict(sorted(files.items()))
