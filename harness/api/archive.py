"""`harness.pack`: a comparison as one archive to publish or pass on."""

from __future__ import annotations

from pathlib import Path

from harness.errors import InputError
from harness.files.atomic import write_fault
from harness.files.zips import write_zip
from harness.results.answer import Answer
from harness.runs.pack import make_pack
from reports.decide.question import comparison_of
from reports.with_report import WithReport


def pack(
    found: WithReport | str | Path,
    out: str | Path | None = None,
    *,
    comparison: str = "",
    data: bool = True,
    weights: bool = False,
    with_paths: bool = False,
    submitter: str = "",
    link: str = "",
) -> Answer:
    """Write a comparison as one zip file: the experiment as it was resolved, a frozen plan, records
    and scores of examples, own data, the code of plugins and scripts, versions and licences.

    `harness reproduce FILE.zip --run NEW` runs it again; `against=["FILE.zip"]` of
    `harness.compare` and `harness.report` read it.

        >>> answer = harness.pack(work, work.with_name("poolings.zip"), comparison="poolings")
        >>> answer.data["runs"], answer.data["weights"]
        (2, False)

    Args:
        found: a comparison, or the work directory of one.
        out: the archive; `NAME.zip` in the present folder when left out.
        comparison: name of the one to pack, in a work directory of several.
        data: with own files; without them their hashes are listed, and others need the files to run
            it again.
        weights: with the models of all runs.
        with_paths: allow paths of your home in options of rows, on which ids of runs depend.
        submitter, link: who sends it, and where more is said (https://...), for a page of several
            senders (`with_files` of `harness.report`).

    Returns:
        In `data`: "archive", "remarks" on what is not in it, and what the archive's pack.json says:
        "runs", "data", "code", "plugins", "base_models", "versions", "licences", "machines".

    Raises:
        InputError: no such comparison, one without results, a rehearsal, a damaged record, own
            files that have changed since or are not here, what may be a credential, or an archive
            that cannot be written.
    """
    if isinstance(found, WithReport):
        workdir, name = found.workdir, found.name
    else:
        workdir = Path(found)
        name = comparison or comparison_of(workdir).name
    target = Path(out or f"{name}.zip")
    if target.suffix.lower() != ".zip":
        raise InputError("expected a name that ends with .zip", file=target, key="--out")
    from reports.joined.senders import check_link

    check_link(link, key="--link")
    made = make_pack(
        workdir, name, data=data, weights=weights, paths=with_paths, sent=(submitter, link)
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_zip(target, made.members)
    except OSError as error:
        message = f"cannot be written ({error.strerror})"
        raise write_fault(error, message, file=target, key="--out") from None
    size = target.stat().st_size
    files = f"{len(made.members):,} files"
    lines = [f"note: {remark}" for remark in made.remarks]
    lines.append(f"{target}: {made.manifest['runs']} runs, {files}, {size:,} bytes")
    lines.append(f"run it again with: harness reproduce {target} --run NEW")
    told = {"archive": str(target), "remarks": made.remarks, **made.manifest}
    return Answer("\n".join(lines), told, made.manifest["data"])
