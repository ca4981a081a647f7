"""`harness report`: build a report from records, or all of them as a site; list what can be built."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import InputError
from harness.files.printable import tell

_URI = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # "sqlite:///...", "https://...", "file:..."


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `report` with its actions. Imports nothing slow: the work is imported when it runs."""
    parser = subparsers.add_parser("report", help="build the report of a paper, a comparison or a study, or list them")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    build = actions.add_parser("build", help="write a report from records (no run is repeated)")
    build.add_argument(
        "name", metavar="NAME|FILE", help="a paper, comparison or study (see `harness report list`), or a definition"
    )
    _add_workdir(build, required=True)
    build.add_argument(
        "--format",
        default="html,md,latex,csv",
        metavar="LIST",
        help="comma-separated: html, md, latex, csv, siunitx (LaTeX with columns of that package), pdf (default: the "
        "first four)",
    )
    build.add_argument("--out", type=Path, metavar="DIR", help="folder to write to (default: WORKDIR/reports/NAME)")
    build.add_argument(
        "--without-overlap",
        action="store_true",
        help="of a comparison: scores without the examples of which a text stood in the training text of a row",
    )
    build.add_argument(
        "--with-texts",
        action="store_true",
        help="of a comparison: texts of all data sets in the page, for yourself: licences may forbid to hand them on",
    )
    build.set_defaults(run=run_build)

    site = actions.add_parser("site", help="all reports of a work directory as one static site, with an index")
    _add_workdir(site, required=True)
    site.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    site.set_defaults(run=run_site)

    atlas = actions.add_parser("atlas", help="the kept vectors of a row as Parquet, for Embedding Atlas")
    atlas.add_argument("row", metavar="ROW", help="label of a row")
    _add_workdir(atlas, required=True)
    atlas.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write, as atlas.parquet")
    atlas.add_argument("--comparison", default="", metavar="NAME", help="where a work directory holds several")
    atlas.add_argument("--base-model", default="", metavar="MODEL", help="where the row stands on several")
    atlas.set_defaults(run=run_atlas)

    listing = actions.add_parser("list", help="list the papers' reports, and what a work directory holds")
    _add_workdir(listing, required=False)
    listing.set_defaults(run=run_list)


def _add_workdir(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--from",
        dest="workdir",
        required=required,
        metavar="WORKDIR|URI",
        help="work directory that holds the runs, or the MLflow store they were tracked in",
    )


@contextmanager
def runs_of(place: str) -> Iterator[tuple[Path, bool]]:
    """The work directory that `--from` names, and whether it is a copy of a tracking store that is gone afterwards.

    Raises:
        InputError: no such folder, or a store that holds no runs of ours.
        RunError: a store that cannot be read.
    """
    if not _URI.match(place) or Path(place).is_dir():
        if not Path(place).is_dir():
            raise InputError(f"--from {place}: no such folder; give the work directory of `harness compare`")
        yield Path(place), False
        return
    from tempfile import TemporaryDirectory

    from harness.tracking.download import download

    with TemporaryDirectory(prefix="harness-report-") as folder:
        download(place, Path(folder))
        yield Path(folder), True


def run_build(args: argparse.Namespace) -> int:
    """Build and print where the report lies."""
    from reports.build import build_report
    from reports.document.blocks import slug
    from reports.papers.definition import is_file

    formats = tuple(dict.fromkeys(part.strip() for part in args.format.split(",") if part.strip()))
    if not formats:
        raise InputError("--format: name at least one of html, md, latex, csv, siunitx, pdf")
    with runs_of(args.workdir) as (workdir, copied):
        out = args.out
        if copied and out is None:
            out = Path("reports") / slug(Path(args.name).stem if is_file(args.name) else args.name)
        ways = {"without_overlap": args.without_overlap, "with_texts": args.with_texts}
        built = build_report(args.name, workdir, out=out, formats=formats, **ways)
        for kind, path in built.items():
            tell(f"{kind:6} {path}")
    return 0


def run_site(args: argparse.Namespace) -> int:
    """Build what is older than its runs, and print where the pages lie."""
    from reports.site.build import build_site

    with runs_of(args.workdir) as (workdir, _):
        tell(f"index  {build_site(workdir, args.out, say=tell)}")
    return 0


def run_atlas(args: argparse.Namespace) -> int:
    """Write the vectors, and say how they are opened."""
    from reports.decide.question import comparison_of, row_of
    from reports.explore.atlas import write_atlas

    with runs_of(args.workdir) as (workdir, _):
        comparison = comparison_of(workdir, args.comparison)
        texts = write_atlas(comparison, row_of(comparison.rows, args.row, args.base_model), args.out)
    tell(f"{args.out}: {texts} texts")
    tell(f"embedding-atlas {args.out} --text text --x x --y y --neighbors neighbors")
    return 0


def run_list(args: argparse.Namespace) -> int:
    """Print the definitions, then every comparison and study with its number of runs, and reports that were built."""
    from reports.document.blocks import slug
    from reports.papers import definition
    from reports.read.comparison_runs import comparisons

    tell("papers:")
    for name in definition.names():
        defined = definition.load(name)
        assert defined is not None
        tell(f"  {name}  {defined.title} ({defined.paper})")
    if args.workdir is None:
        tell("comparisons and studies: name a work directory with --from")
        return 0
    with runs_of(args.workdir) as (workdir, copied):
        place = args.workdir if copied else workdir
        counts = comparisons(workdir)
        studies = {path.name for path in (workdir / "studies").glob("*") if path.is_dir()}
        tell(f"{place}:")
        if not counts and not studies:
            tell("  no runs yet")
        for name in [*counts, *sorted(studies - set(counts))]:
            number = counts.get(name, 0)
            built = workdir / "reports" / slug(name) / "index.html"
            kind = "study" if name in studies else "comparison"
            runs = f"{number} run{'' if number == 1 else 's'}"
            tell(f"  {name}  {kind}, {runs}  {built if built.exists() else '(no report built)'}")
    return 0
