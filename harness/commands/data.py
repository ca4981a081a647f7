"""`harness data`: the corpora and task data that have names, and fetching what they need from elsewhere."""

from __future__ import annotations

import argparse
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.printable import tell, tell_json
from harness.machine.progress import Reporter


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `data` to the command line."""
    data = subparsers.add_parser("data", help="corpora and task data by name", description="Corpora and task data.")
    actions = data.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="what has a name, and what of it is on this machine")
    listing.add_argument("--verbose", action="store_true", help="also address, parts, licence and paper")
    listing.add_argument("--json", action="store_true", help="machine-readable")
    listing.set_defaults(run=_list)
    parser = actions.add_parser(
        "prepare",
        help="fetch and convert what a name needs",
        description="Fetch what a name needs from the hub or the address that its paper's toolkit names, verify it by "
        "the checksum of the first download, and convert it. A download that broke goes on when the same command is "
        "given again.",
    )
    parser.add_argument("name", help="see: harness data list; corpora with options, as in stsb-sentences?parts=train")
    parser.add_argument("--from", dest="source", metavar="PLACE", help="probing, coco, snli: a folder that has the "
                        "files, or another address of such a folder")  # fmt: skip
    parser.add_argument("--limit", type=int, help="corpora: the first N items")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=_prepare)


def _list(args: argparse.Namespace) -> int:
    listed = data_sets()
    if args.json:
        tell_json(listed)
        return 0
    width = max(map(len, listed))
    for name, about in listed.items():
        tell(f"{name:<{width}}  {about['kind']}, {about['items']}, {about['size']}; {about['here'] or 'not here'}")
        tell(f"{'':<{width}}  {about['purpose']}" + (" (untried on the real server)" if about["untried"] else ""))
        if args.verbose:
            for key in ("source", "parts", "licence", "paper"):
                if about[key]:
                    tell(f"{'':<{width}}  {key}: {about[key]}")
    return 0


def data_sets() -> dict[str, dict[str, Any]]:
    """Name -> kind, items, size, licence, paper, purpose, source, parts, untried; `here`: what is on this machine."""
    from harness.sources.corpus.cached import cached
    from harness.sources.corpus.catalogue import CATALOGUE
    from harness.sources.senteval.prepared import PREPARED, is_prepared, prepared_root

    corpora = {
        name: {
            "kind": c.kind, "items": f"{c.items:,}", "size": c.size, "here": cached(c), "purpose": c.purpose,
            "source": c.uri, "parts": ", ".join(c.parts), "licence": c.licence, "paper": c.paper, "untried": c.untried,
        }
        for name, c in CATALOGUE.items()
    }  # fmt: skip
    tasks = {
        name: {
            "kind": "task data", "items": d.items, "size": d.size,
            "here": str(prepared_root() / d.folder) if is_prepared(d) else "", "purpose": d.purpose,
            "source": d.address, "parts": "", "licence": d.licence, "paper": d.paper, "untried": d.untried,
        }
        for name, d in PREPARED.items()
    }  # fmt: skip
    return {**corpora, **tasks}


def _prepare(args: argparse.Namespace) -> int:
    from harness.sources import load_corpus
    from harness.sources.corpus.catalogue import CATALOGUE
    from harness.sources.senteval.prepare import prepare
    from harness.sources.senteval.prepared import PREPARED

    base = args.name.partition("?")[0]
    if base not in (*CATALOGUE, *PREPARED):
        known = [*CATALOGUE, *PREPARED]
        raise InputError(f'data "{args.name}": unknown{nearest(base, known)}; known: {", ".join(known)}')
    if args.name in PREPARED:
        if args.limit is not None:
            raise InputError(f'data "{args.name}": --limit is for corpora')
        about = PREPARED[args.name]
        tell(f"{args.name}: {about.size} from {args.source or about.address}; licence: {about.licence}")
        with Reporter(len(about.downloads) + 1, quiet=args.quiet) as progress:
            tell(f"{args.name}: {prepare(args.name, progress, args.source)}")
        return 0
    if args.source is not None:
        raise InputError(f'data "{args.name}": --from is for {", ".join(PREPARED)}; corpora come from the hub')
    corpus = load_corpus(args.name, kind=CATALOGUE[base].kind, limit=args.limit)  # type: ignore[call-overload]
    tell(f"{args.name}: {len(corpus):,} {corpus.kind}, sha256 {corpus.sha256}")
    return 0
