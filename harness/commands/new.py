"""`harness new`: a package with a method or a task of one's own, ready to install; an experiment file."""

from __future__ import annotations

import argparse
import keyword
import re
from importlib.util import find_spec
from pathlib import Path

from harness import registry
from harness.errors import InputError
from harness.files.printable import one_line, tell

KINDS = {
    "method": "a package with a method, its test and a comparison with its untrained counterpart",
    "task": "a package with a task and its test",
    "experiment": "an experiment file for `harness compare`",
}
_STARTERS = Path(__file__).parents[1] / "starters"


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `harness new` to the command line."""
    parser = subparsers.add_parser(
        "new",
        help="begin a method, a task or an experiment of your own",
        description="Write the files to begin with: " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()),
        epilog="example: harness new method my_method; pip install -e ./my_method; pytest my_method",
    )
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("name", help="small letters, digits and underscores (task, experiment: hyphens too)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to (default: a folder of that name; of an "
                        "experiment this folder)")  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what was written, and what to do next."""
    out = args.out or Path("." if args.kind == "experiment" else args.name)
    for file in write(args.kind, args.name, out):
        tell(str(file))
    if args.kind == "experiment":
        tell(f"next: harness compare {out / args.name}.toml --workdir work")
    else:
        tell(f"next: pip install -e {out} && pytest {out}")
    return 0


def write(kind: str, name: str, out: Path) -> list[Path]:
    """Write the files of a `kind` under `out`; nothing is overwritten.

    Raises:
        InputError: a name that cannot be one or is taken, a file that is there already.
    """
    module = name.replace("-", "_")
    _check(kind, name, module)
    from jinja2 import Environment, StrictUndefined

    words = {
        "name": name,
        "module": module,
        "package": module.replace("_", "-"),
        "title": "".join(part.capitalize() for part in module.split("_")),
    }
    own = name if kind == "experiment" else module
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - no HTML
    texts = {
        out / starter.name.replace("MODULE", own).removesuffix(".j2"): environment.from_string(
            starter.read_text(encoding="utf-8")
        ).render(words)
        for starter in sorted((_STARTERS / kind).glob("*.j2"))
    }
    if there := next((file for file in texts if file.exists()), None):
        raise InputError(f"{there}: is there already, and nothing is overwritten; take another name or --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); name another folder") from None
    return list(texts)


def _check(kind: str, name: str, module: str) -> None:
    """Raises:
    InputError: the name is none of a module, or a method, task or module of that name is installed.
    """
    expected = "small letters, digits and underscores" + ("" if kind == "method" else " or hyphens")
    pattern = r"[a-z][a-z0-9_]{0,60}" if kind == "method" else r"[a-z][a-z0-9_-]{0,60}"
    if not re.fullmatch(pattern, name) or keyword.iskeyword(module):
        raise InputError(f'harness new {kind} "{one_line(name)}": expected {expected}, beginning with a letter')
    if kind == "experiment":
        return
    group = registry.METHODS if kind == "method" else registry.TASKS
    if name in registry.names(group):
        raise InputError(f'harness new {kind} "{name}": a {kind} of that name is installed; take another')
    if find_spec(module) is not None:
        raise InputError(f'harness new {kind} "{name}": a module "{module}" is installed already; take another')
