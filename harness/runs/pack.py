"""A comparison as one archive to publish or pass on: experiment, records, data, code and versions.

The archive has the layout of a work directory without caches, which `--against` and reports read,
and a folder `experiment` in which the experiment can be run again: its file, the user's own data
and the code of plugins. Paths of the machine and what may be a credential are not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from harness import registry
from harness.config import nearest
from harness.errors import InputError
from harness.files.hashing import sha256_of
from harness.files.printable import has_known_token, join_some, redacted
from harness.files.reading import is_there
from harness.results.comparison import ComparisonFile
from harness.results.elsewhere import DATA, EXPERIMENT, FILES, MANIFEST, without_weights
from harness.results.model_card import licence_of
from harness.results.record import Record
from harness.results.store import (
    RunFolder,
    comparison_file,
    comparison_files,
    read_comparison_file,
)
from harness.runs.experiment import Experiment, read_experiment
from harness.runs.frozen_plan import plan_file
from harness.runs.own_data import experiment_text
from harness.runs.packed_code import PackedCode
from harness.runs.packed_files import (
    OwnFile,
    OwnFolders,
    Places,
    check_content,
    describe_data,
    files_of,
    parts_of,
    relocate,
    relocate_settings,
)
from harness.runs.paths import HiddenPaths, private_paths

Members = dict[str, bytes | Path]
SCHEMA = 1


@dataclass
class Pack:
    """The files of an archive by their names in it, and what a reader should know.

    Attributes:
        remarks: sentences on what is not in it.
        private: paths of this machine in it that cannot be left out, as ids of runs depend on them.
    """

    members: Members = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    private: list[str] = field(default_factory=list)

    def add(self, name: str, content: bytes | Path) -> None:
        """Add a file.

        Raises:
            InputError: another file has the name already.
        """
        before = self.members.setdefault(name, content)
        if before != content:
            message = f'two files would be called "{name}"'
            raise InputError(message, file=name, remedy="rename one of them")


def make_pack(
    workdir: Path,
    name: str,
    *,
    data: bool = True,
    weights: bool = False,
    paths: bool = False,
    sent: tuple[str, str] = ("", ""),
) -> Pack:
    """Collect what belongs into the archive of a comparison.

    Args:
        data: with the user's own files; without them, their hashes are listed alone.
        weights: with the models of its runs.
        paths: allow paths of this machine that are part of the ids of runs.
        sent: who sends the archive, and where more is said of it; "" where neither is said.

    Raises:
        InputError: no such comparison, one without results, a rehearsal, a damaged record, data
            that has changed since, a path of this machine, or what may be a credential.
    """
    file = _read_comparison(workdir, name)
    records = _read_records(workdir, file)
    experiment = read_experiment(file.experiment)
    pack = Pack()
    folders = OwnFolders(workdir, file)
    own = _collect_data(pack, experiment, file, records, folders, data=data)
    hide = HiddenPaths(workdir, {one.path: one.place for one in own})
    code = PackedCode(records)
    for place, source in code.files.items():
        pack.add(f"{EXPERIMENT}/{place}", source)
    pack.remarks += code.remarks
    pack.remarks += _name_folders(records, hide)
    for record in records:
        _add_run(pack, workdir, record, hide, weights=weights)
    places = Places(own, folders)
    _add_comparison(pack, workdir, file, experiment, places, hide)
    pack.manifest = {
        "schema": SCHEMA,
        "comparison": name,
        "harness": metadata.version(registry.OWN),
        "runs": len(records),
        "data": describe_data(own, data),
        "code": {place: sha256_of(source) for place, source in code.files.items()},
        "plugins": code.plugins,
        "base_models": _base_models(records, hide),
        "versions": _versions(records),
        "licences": _licences(records, code),
        "machines": _machines(records),
        "weights": weights,
    }
    for key, text in zip(("submitter", "link"), sent, strict=True):
        if text:
            pack.manifest[key] = text
    manifest = json.dumps(pack.manifest, indent=1, sort_keys=True)
    pack.add(MANIFEST, f"{manifest}\n".encode())
    readme = _describe(pack, name, own, data)
    pack.add("README.md", readme.encode())
    _check_private(pack, records, allowed=paths)
    return pack


def _read_comparison(workdir: Path, name: str) -> ComparisonFile:
    file = read_comparison_file(workdir, name)
    if file is None:
        known = sorted(comparison_files(workdir))
        message = f'no comparison "{name}"{nearest(name, known)}'
        if known:
            remedy = f"it has: {', '.join(known)}"
        else:
            remedy = "run `harness compare` first"
        raise InputError(message, file=workdir, remedy=remedy)
    return file


def _read_records(workdir: Path, file: ComparisonFile) -> list[Record]:
    """Return the record of each run, once.

    Raises:
        InputError: none has ended, or they are those of a rehearsal.
    """
    found = []
    for run in dict.fromkeys(run.id for run in file.runs):
        record = RunFolder(workdir, run).read()
        if record is not None:
            found.append(record)
    if not any(record.status == "finished" for record in found):
        raise InputError("no run of it has finished", file=file.name, remedy="run it first")
    if any(record.rehearsal for record in found):
        message = "is a rehearsal, whose scores are no results"
        raise InputError(message, file=file.name, remedy="pack the comparison itself")
    return found


def _collect_data(
    pack: Pack,
    experiment: Experiment,
    file: ComparisonFile,
    records: Sequence[Record],
    folders: OwnFolders,
    *,
    data: bool,
) -> list[OwnFile]:
    """Add the user's own files, each once.

    Raises:
        InputError: one is not here, or holds something else than when the comparison ran.
    """
    found: dict[Path, OwnFile] = {}
    for given, name, used in files_of(experiment, file):
        path = folders.find(given)
        if path in found:
            continue
        place = f"{DATA}/{path.name}"
        taken = [other.place for other in found.values()]
        if place in taken:
            place = f"{DATA}/{len(found) + 1}/{path.name}"
        digest = sha256_of(path) if path.is_file() else ""
        found[path] = OwnFile(path, place, name, used, digest)
        if data and not is_there(path):
            message = f"is not here; it is the {used} of the comparison"
            remedy = "give the command in the folder of the file, or --no-data"
            raise InputError(message, file=given, remedy=remedy)
        if data:
            for part in parts_of(path):
                inside = ""
                if part != path:
                    inside = part.relative_to(path).as_posix()
                member = PurePosixPath(EXPERIMENT, place, inside)
                pack.add(str(member), part)
    check_content(file, records, found, folders)
    return list(found.values())


def _add_run(
    pack: Pack,
    workdir: Path,
    record: Record,
    hide: HiddenPaths,
    *,
    weights: bool,
) -> None:
    """Add a run: its record and files, with paths of this machine left out."""
    folder = RunFolder(workdir, record.id)
    kept = record if weights else without_weights(record)
    damaged = folder.find_damage(kept.files)
    if damaged:
        message = f"{', '.join(damaged)}: not as its record says"
        raise InputError(message, file=folder.path, remedy="harness doctor --workdir tells more")
    digests = dict(kept.files)
    for name in kept.files:
        content: bytes | Path = folder.path / name
        if name in FILES and name != folder.examples_file.name:
            text = (folder.path / name).read_text("utf-8")
            content = hide.in_text(text).encode()
            digests[name] = sha256(content).hexdigest()
        pack.add(f"runs/{record.id}/{name}", content)
    if weights and folder.model.is_dir():
        for card in folder.model.glob("README.md"):
            pack.add(f"runs/{record.id}/model/{card.name}", card)
    kept = kept.model_copy(update={"files": digests})
    tree = kept.model_dump(mode="json")
    config = tree["spec"].pop("config")  # the id is a hash of it
    tree = hide.in_tree(tree)
    tree["spec"]["config"] = config
    packed = Record.model_validate(tree).to_json()
    pack.add(f"runs/{record.id}/record.json", packed.encode())


def _add_comparison(
    pack: Pack,
    workdir: Path,
    file: ComparisonFile,
    experiment: Experiment,
    own: Places,
    hide: HiddenPaths,
) -> None:
    """Add the comparison, its frozen plan, and the experiment to be run again."""
    own_runs = [run for run in file.runs if not run.source]
    seeds = sorted({run.seed for run in own_runs})
    keys = experiment.model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={"executor"},
    )
    if not set(seeds) <= set(experiment.seeds):
        keys["seeds"] = seeds  # added until the comparison was decided
    keys = relocate(keys, own)
    text = hide.in_text(experiment_text(keys))
    pack.add(f"{EXPERIMENT}/{file.name}.toml", text.encode())
    listed = {}
    for key, one in file.files.items():
        settings = relocate_settings(one.settings, own)
        listed[key] = one.model_copy(update={"settings": settings})
    packed_file = file.model_copy(update={"files": listed})
    tree = packed_file.model_dump(mode="json", exclude={"sha256"})
    tree["experiment"] = relocate(tree["experiment"], own)
    packed = ComparisonFile.model_validate(hide.in_tree(tree))
    place = comparison_file(Path(), file.name)
    pack.add(place.as_posix(), packed.to_text().encode())
    plan = plan_file(workdir, file.name)
    if plan.is_file():
        place = plan_file(Path(), file.name)
        pack.add(place.as_posix(), plan)  # its hash was published
        pack.private += private_paths(plan.read_text("utf-8"))


def _name_folders(records: Iterable[Record], hide: HiddenPaths) -> list[str]:
    """Return a sentence on each model that is a folder of this machine: others do not have it."""
    names = sorted({record.base_model for record in records if Path(record.base_model).is_dir()})
    return [
        f"the model {hide.in_text(name)} is a folder, which is not in the archive: whoever runs it "
        "again needs it"
        for name in names
    ]


def _base_models(records: Iterable[Record], hide: HiddenPaths) -> dict[str, dict[str, str]]:
    models = {record.base_model: record.spec.model for record in records}
    found = {}
    for name, content in sorted(models.items()):
        licence = licence_of(name) or "not stated"
        found[hide.in_text(name)] = {"content": content, "licence": licence}
    return found


def _versions(records: Iterable[Record]) -> dict[str, list[str]]:
    """Return package -> its versions in the runs, Python among them."""
    found: dict[str, set[str]] = {}
    for record in records:
        versions = {**record.environment.get("versions", {})}
        versions["python"] = record.environment.get("python", "unknown")
        for package, version in versions.items():
            found.setdefault(package, set()).add(str(version))
    return {package: sorted(versions) for package, versions in sorted(found.items())}


def _licences(records: Iterable[Record], code: PackedCode) -> dict[str, str]:
    packages = set(_versions(records))
    packages.update(plugin["package"] for plugin in code.plugins)
    packages.discard("python")
    return {name: _licence_of(name) for name in sorted(packages)}


def _licence_of(package: str) -> str:
    try:
        about = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return "not stated"
    expressions = about.get_all("License-Expression")
    if expressions:
        return str(expressions[0])
    texts = about.get_all("License") or [""]
    first = str(texts[0]).strip().partition("\n")[0]
    if 0 < len(first) <= 60:
        return first
    for classifier in about.get_all("Classifier") or ():
        if classifier.startswith("License"):
            return str(classifier).rpartition("::")[2].strip()
    return "not stated"


def _machines(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the machines of the runs, as far as numbers may depend on them."""
    keys = ("platform", "cpu", "device_name", "precision", "threads")
    found: list[dict[str, Any]] = []
    for record in records:
        machine = {key: record.environment.get(key) for key in keys}
        if machine not in found:
            found.append(machine)
    return found


def _check_private(pack: Pack, records: Iterable[Record], *, allowed: bool) -> None:
    """Raises:
    InputError: a path of this machine, or what may be a credential, would be passed on.
    """
    for record in records:
        text = json.dumps(record.spec.config)
        if redacted(text) != text:
            message = "its options hold what may be a credential"
            remedy = "read it from the environment; nothing was written"
            row = f'row "{record.row}"'
            raise InputError(message, file=row, remedy=remedy)
        pack.private += private_paths(text)
    for name, content in pack.members.items():
        is_in_experiment = name.startswith(f"{EXPERIMENT}/")
        is_code = is_in_experiment and name.endswith((".py", ".sh", ".toml"))
        is_setting = "/model/" in name and name.endswith(".json")
        if is_code or is_setting:
            raw = content if isinstance(content, bytes) else content.read_bytes()
            text = raw.decode("utf-8", errors="replace")
            if is_setting:
                pack.private += private_paths(text)
            if has_known_token(text):
                message = "holds what may be a credential"
                raise InputError(message, file=name, remedy="remove it; nothing was written")
    names = list(dict.fromkeys(pack.private))
    if names and not allowed:
        message = f"ids of runs depend on paths of this machine: {join_some(names)}"
        remedy = "write them relative to the folder of the command, or give --with-paths"
        raise InputError(message, key="--with-paths", remedy=remedy)


def _describe(pack: Pack, name: str, own: list[OwnFile], data: bool) -> str:
    """Return the README of an archive."""
    lines = [
        f"# {name}",
        "",
        f"A comparison of sentence-embedding methods, packed by sentence-harness {pack.manifest['harness']}:",
        f"{pack.manifest['runs']} runs with their records and scores of examples.",
        "",
        "```sh",
        f"harness report build {name} --workdir ARCHIVE --out report   # its tables and figures",
        "harness compare mine.toml --against ARCHIVE                # its rows beside yours",
        "harness reproduce ARCHIVE --run NEW                        # all runs again; equal?",
        "```",
        "",
        f"`{EXPERIMENT}/{name}.toml` is the experiment as it was resolved. `{MANIFEST}` lists hashes, versions",
        "and licences of packages and base models. Nothing here states a licence of the data.",
    ]
    if own:
        lines += ["", "Data of its own:", ""]
        for one in own:
            absent = "" if data and is_there(one.path) else ", not included"
            lines.append(f"- `{one.place}` ({one.used}){absent}")
    if pack.manifest["code"]:
        files = [f"`{file}`" for file in pack.manifest["code"]]
        code = ", ".join(files)
        lines += ["", f"Code that repeating it would run: {code}. Read it before."]
    lines.append("")
    for remark in pack.remarks:
        lines.append(f"{remark[0].upper()}{remark[1:]}.")
    return "\n".join(lines).rstrip() + "\n"
