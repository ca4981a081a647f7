"""`harness new` and `harness check-method`: begin a method, task or experiment of your own, and check a method."""

from __future__ import annotations

import argparse
import keyword
import re
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from harness.commands.options import CONFIG, JSON, QUIET, Commands, add_command, config_values
from harness.commands.terminal import print_columns
from harness.errors import InputError
from harness.files.printable import one_line, tell, tell_json

KINDS = {
    "method": "a package with a method, its test and a comparison with its untrained counterpart",
    "task": "a package with a task and its test",
    "experiment": "an experiment file for `harness compare`",
}
_STARTERS = Path(__file__).parents[1] / "starters"


def register(commands: Commands) -> None:
    """Add the commands to the command line."""
    check = add_command(
        commands, "check-method", check_method, CONFIG, JSON, QUIET,
        help="check an installed method against the interface",
        description="Run the conformance kit on an installed method: config, card, shapes, invariances, saving, seeds, "
        "descent, resuming and clear errors. In tests: harness.testing.assert_method.",
        example="harness check-method simcse --json",
    )  # fmt: skip
    check.add_argument("method", help="see: harness list methods")
    check.add_argument("--thorough", action="store_true", help="the preset's own batches, ten times the training steps")

    new = add_command(
        commands, "new", write_starter,
        help="begin a method, a task or an experiment of your own",
        description="Write the files to begin with: " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()),
        example="harness new method my_method; pip install -e ./my_method; pytest my_method",
    )  # fmt: skip
    new.add_argument("kind", choices=list(KINDS))
    new.add_argument("name", help="small letters, digits and underscores (task, experiment: hyphens too)")
    new.add_argument("--out", type=Path, metavar="FOLDER", help="folder to write to (default: a new folder of that "
                     "name; for an experiment the current folder)")  # fmt: skip


def check_method(args: argparse.Namespace) -> int:
    """Exit code 0 when every check passed, else 1."""
    from rich.console import Console

    from harness.testing import check_method

    with Console(stderr=True, quiet=args.quiet).status("") as status:
        checks = check_method(
            args.method,
            config=config_values(args),
            preset=args.preset,
            base_model=args.base_model,
            quick=not args.thorough,
            progress=lambda name: status.update(f"{args.method}: {name}"),
        )
    passed = sum(check.passed for check in checks)
    if args.json:
        tell_json({"method": args.method, "passed": passed == len(checks), "checks": [asdict(c) for c in checks]})
    else:
        print_columns([(check.name, "ok" if check.passed else "FAILED", check.detail) for check in checks])
        tell(f"{args.method}: {passed} of {len(checks)} checks passed")
    return 0 if passed == len(checks) else 1


def write_starter(args: argparse.Namespace) -> int:
    """Write the files, print their names and the next command."""
    out = args.out or Path("." if args.kind == "experiment" else args.name)
    for file in write(args.kind, args.name, out):
        tell(str(file))
    run = f"harness compare {out / args.name}.toml --workdir work"
    tell(f"next: {run if args.kind == 'experiment' else f'pip install -e {out} && pytest {out}'}")
    return 0


def write(kind: str, name: str, out: Path) -> list[Path]:
    """Write the files of a `kind` into the folder `out`; nothing is overwritten.

    Raises:
        InputError: the name is invalid or taken, a file exists already, the folder cannot be written.
    """
    from jinja2 import Template

    module = name.replace("-", "_")
    _check_name(kind, name, module)
    title = module.title().replace("_", "")
    words = {"name": name, "module": module, "package": module.replace("_", "-"), "title": title}
    texts = {}
    for starter in sorted((_STARTERS / kind).glob("*.j2")):
        target = starter.name.removesuffix(".j2").replace("MODULE", name if kind == "experiment" else module)
        texts[out / target] = Template(starter.read_text("utf-8"), keep_trailing_newline=True).render(words)
    if existing := next((file for file in texts if file.exists()), None):
        raise InputError(f"{existing}: exists already and is not overwritten; choose another name or --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); name another folder") from None
    return list(texts)


def _check_name(kind: str, name: str, module: str) -> None:
    """Raises:
    InputError: no valid name of a module, or a method, task or module of that name is installed.
    """
    from harness import registry

    hyphens = "" if kind == "method" else "-"
    if not re.fullmatch(rf"[a-z][a-z0-9_{hyphens}]{{0,60}}", name) or keyword.iskeyword(module):
        raise InputError(f'harness new {kind} "{one_line(name)}": expected small letters, digits, underscores')
    installed = [*registry.names(registry.METHODS), *registry.names(registry.TASKS)]
    if kind != "experiment" and (name in installed or find_spec(module) is not None):
        raise InputError(f'harness new {kind} "{name}": a {kind} or module of that name is installed; choose another')
