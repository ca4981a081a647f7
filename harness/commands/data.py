"""`harness data list`: the corpora and task data that have names, and which of them are on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from harness.commands.options import Commands, add_command, add_group, add_json
from harness.commands.terminal import print_columns
from harness.files.printable import tell, tell_json


def register(commands: Commands) -> None:
    """Add `harness data` to the command line."""
    example = "harness data list --verbose"
    actions = add_group(commands, "data", help="corpora and task data by name", example=example)
    parser = add_command(
        actions, "list", run, help="list the names, and which data is on this machine", example=example
    )
    parser.add_argument("--verbose", action="store_true", help="also address, parts, licence and paper")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list; always 0."""
    listed = data_sets()
    if args.json:
        tell_json(listed)
        return 0
    rows = [
        (name, d["kind"], d["items"], d["size"], d["here"] or "not here",
         d["purpose"] + (" (not tried on the real server)" if d["untried"] else ""))
        for name, d in listed.items()
    ]  # fmt: skip
    if not args.verbose:
        print_columns(rows)
        return 0
    for name, *facts in rows:
        tell(f"{name}: {'; '.join(facts)}")
        for key in ("source", "parts", "licence", "paper"):
            if listed[name][key]:
                tell(f"  {key}: {listed[name][key]}")
    return 0


def data_sets() -> dict[str, dict[str, Any]]:
    """Name -> kind, items, size, licence, paper, purpose, source, parts, untried; `here`: what is on this machine."""
    from harness.sources.corpus.catalogue import CATALOGUE
    from harness.sources.senteval.prepared import PREPARED, is_prepared, prepared_root

    listed = {}
    for name, c in CATALOGUE.items():
        listed[name] = {"kind": c.kind, "items": f"{c.items:,}", "here": _cached(c.uri), "source": c.uri,
                        "parts": ", ".join(c.parts)} | _common(c)  # fmt: skip
    for name, d in PREPARED.items():
        here = str(prepared_root() / d.folder) if is_prepared(d) else ""
        listed[name] = {"kind": "task data", "items": d.items, "here": here, "source": d.address,
                        "parts": ""} | _common(d)  # fmt: skip
    return listed


def _common(data: Any) -> dict[str, Any]:
    return {key: getattr(data, key) for key in ("size", "purpose", "licence", "paper", "untried")}


def _cached(uri: str) -> str:
    """What of a corpus is on this machine: its file in the hub's cache, or the texts stored of its data set."""
    from huggingface_hub import try_to_load_from_cache

    from harness.sources.corpus.corpus import stored_texts

    organisation, name, *file = uri.partition("?")[0].removeprefix("hf://datasets/").split("/", 2)
    repository = f"{organisation}/{name}"
    if file:
        return "here" if isinstance(try_to_load_from_cache(repository, file[0], repo_type="dataset"), str) else ""
    sizes = [t["bytes"] for t in stored_texts() if t["request"].get("set", {}).get("repository") == repository]
    return f"{len(sizes)} stored, {sum(sizes) / 1e6:,.1f} MB" if sizes else ""
