"""The user's own files that a comparison names: where they are, whether they are what its runs read,
and the experiment with their places in an archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config import drop_unset
from harness.errors import InputError
from harness.files.hashing import sha256_of
from harness.files.model_names import is_file
from harness.files.reading import is_there
from harness.results.comparison import ComparisonFile
from harness.results.elsewhere import EXPERIMENT
from harness.results.record import Record
from harness.runs.conditions import CorpusSettings
from harness.runs.execute import read_dev
from harness.runs.experiment import Experiment
from harness.runs.inputs import forget_loaded, load_text
from harness.tasks.own.data import BEIR, TaskFile
from harness.tasks.own.open_file import open_file

_REMEDY = "run the comparison again, or put the file back"


@dataclass(frozen=True)
class OwnFile:
    """A file or folder of the user's that the experiment names.

    Attributes:
        path: absolute. name: of the task that it is, as scores are called; "" for other files.
        place: its name in the folder of the experiment. used: what it is: "suite", "corpus", "dev".
        sha256: hash of the file's bytes; "" where it is not here.
    """

    path: Path
    place: str
    name: str
    used: str
    sha256: str


class OwnFolders:
    """Where the files of an experiment may be, which names them from the folder of its command: the
    present one, that of the work directory, or that of another file of the experiment.
    """

    def __init__(self, workdir: Path, file: ComparisonFile) -> None:
        folders = [Path.cwd()]
        for listed in file.files.values():
            task = TaskFile(**listed.settings)
            folders.append(task.path.parent)
        above = workdir.absolute().parent
        folders += [above, above.parent]
        self.folders = list(dict.fromkeys(folders))

    def find(self, name: str | Path) -> Path:
        """Return the file of a name; below the present folder where it is nowhere."""
        own = Path(name).expanduser()
        paths = [folder / own for folder in self.folders]
        present = [path for path in paths if is_there(path)]
        return present[0] if present else paths[0]


def files_of(experiment: Experiment, file: ComparisonFile) -> Iterator[tuple[str, str, str]]:
    """Yield each file of the user's that an experiment names: name, task that it is, and use."""
    for listed in file.files.values():
        settings = TaskFile(**listed.settings)
        yield str(settings.path), settings.name, "suite"
    if experiment.dev is not None and experiment.dev.file is not None:
        yield experiment.dev.task, "", "dev"
    texts = [experiment.corpus, *experiment.corpora.values()]
    for row in experiment.methods:
        if row.corpus is not None:
            texts.append(row.corpus)
    for text in texts:
        path = Path(text.uri)
        if ":" not in text.uri and (path.suffix or is_there(path)):
            yield text.uri, "", "corpus"
    for row in experiment.methods:
        for name in _models_of(row.config):
            if is_file(name):
                yield name, "", "vectors"


def _models_of(config: Mapping[str, Any]) -> list[str]:
    """Return the models that a row names, if it does."""
    models = config.get("model_by_seed") or [config.get("model")]
    return [name for name in models if isinstance(name, str)]


def parts_of(path: Path) -> list[Path]:
    """Return a file, or the files of a BEIR folder that are read."""
    if path.is_file():
        return [path]
    files = [path / name for name in BEIR]
    grades = (path / BEIR[-1]).glob("*.tsv")
    return [*[file for file in files if file.is_file()], *sorted(grades)]


def check_content(
    file: ComparisonFile,
    records: Sequence[Record],
    found: Mapping[Path, OwnFile],
    folders: OwnFolders,
) -> None:
    """Raises:
    InputError: a file holds something else than the comparison has read.
    """
    forget_loaded()
    for record in records:
        own_dev = (record.dev or {}).get("file")
        if own_dev is not None and is_there(TaskFile(**own_dev).path):
            read_dev(record.spec)
        _check_vectors(record, folders)
    for listed in file.files.values():
        settings = TaskFile(**listed.settings)
        if is_there(settings.path) and open_file(settings).sha256 != listed.sha256:
            raise InputError("has changed since it was scored", file=settings.path, remedy=_REMEDY)
    for text in _distinct_texts(records):
        path = folders.find(text["uri"])
        if path in found and is_there(path):
            _check_text(text, path)


def _check_vectors(record: Record, folders: OwnFolders) -> None:
    for name, digest in _vectors_of(record):
        path = folders.find(name)
        if is_there(path) and sha256_of(path) != digest:
            raise InputError("has changed since it was scored", file=path, remedy=_REMEDY)


def _check_text(text: Mapping[str, Any], path: Path) -> None:
    keys = [key for key in CorpusSettings.model_fields if key in text]
    stated = {key: text[key] for key in keys}
    stated["uri"] = str(path)
    if load_text(CorpusSettings(**stated)).sha256 != text["sha256"]:
        message = "has changed since runs were trained on it"
        raise InputError(message, file=path, remedy=_REMEDY)


def _vectors_of(record: Record) -> Iterator[tuple[str, str]]:
    """Yield the files of vectors that a run has scored, each with its hash."""
    models = _models_of(record.spec.config)
    if models and all(map(is_file, models)):
        digests = record.spec.inputs.get("model", "").split()
        yield from zip(models, digests, strict=False)


def _distinct_texts(records: Iterable[Record]) -> list[Mapping[str, Any]]:
    """Return the training texts of runs, each once."""
    texts = {}
    for record in records:
        if record.corpus is not None:
            texts[record.corpus["sha256"]] = record.corpus
    return list(texts.values())


def describe_data(own: Iterable[OwnFile], included: bool) -> list[dict[str, Any]]:
    """Return place, hash and use of each own file, and whether the archive holds it."""
    described = []
    for one in own:
        described.append(
            {
                "file": one.place,
                "sha256": one.sha256,
                "used_as": one.used,
                "included": included and is_there(one.path),
            }
        )
    return described


@dataclass(frozen=True)
class Places:
    """The own files by what an experiment calls them."""

    own: list[OwnFile]
    folders: OwnFolders

    def find(self, name: str) -> OwnFile | None:
        """Return the own file that a name means; None for a name of something else."""
        path = self.folders.find(name)
        for one in self.own:
            if one.path == path:
                return one
        return None


def relocate_settings(settings: Mapping[str, Any], own: Places) -> dict[str, Any]:
    """Return the settings of a task whose file is that of the archive."""
    file = TaskFile(**settings)
    one = own.find(str(file.path))
    assert one is not None
    place = f"{EXPERIMENT}/{one.place}"
    return {**settings, "task": f"{file.prefix}{place}"}


def relocate(keys: Mapping[str, Any], own: Places) -> dict[str, Any]:
    """Return keys of an experiment whose files are those of the archive."""
    moved = dict(keys)
    if "suites" in keys:
        moved["suites"] = [_relocate_suite(entry, own) for entry in keys["suites"]]
    if isinstance(keys.get("dev"), dict):
        moved["dev"] = _relocate_file(keys["dev"], "task", own)
    if isinstance(keys.get("corpus"), dict):
        moved["corpus"] = _relocate_file(keys["corpus"], "uri", own)
    if "corpora" in keys:
        corpora = {}
        for kind, text in keys["corpora"].items():
            corpora[kind] = _relocate_file(text, "uri", own)
        moved["corpora"] = corpora
    if isinstance(keys.get("blocks"), dict):
        blocks = {}
        for name, block in keys["blocks"].items():
            blocks[name] = relocate(block, own)
        moved["blocks"] = blocks
    if "methods" in keys:
        rows = [relocate(row, own) for row in keys["methods"]]
        moved["methods"] = [_relocate_vectors(row, own) for row in rows]
    return moved


def _relocate_vectors(row: dict[str, Any], own: Places) -> dict[str, Any]:
    """Return a row whose files of vectors are those of the archive."""
    models = _models_of(row.get("config", {}))
    if not any(map(is_file, models)):
        return row
    config = _relocate_file(row["config"], "model", own)
    if config.get("model_by_seed"):
        tables = [{"model": model} for model in config["model_by_seed"]]
        tables = [_relocate_file(table, "model", own) for table in tables]
        config["model_by_seed"] = [table["model"] for table in tables]
    return {**row, "config": config}


def _relocate_file(table: Mapping[str, Any], key: str, own: Places) -> dict[str, Any]:
    """Return a table whose `key` names the file of the archive, where it names one of the own."""
    if table.get(key):
        one = own.find(table[key])
    else:
        one = None
    if one is None:
        return dict(table)
    return {**table, key: one.place}


def _relocate_suite(entry: Any, own: Places) -> Any:
    table = entry if isinstance(entry, dict) else {"task": entry}
    file = TaskFile(**drop_unset(table))
    one = own.find(file.task.removeprefix(file.prefix))
    if one is None:
        return entry
    relocated = file.model_dump(exclude_defaults=True)
    if one.name and one.name != one.path.name:
        relocated["name"] = one.name
    relocated["task"] = f"{file.prefix}{one.place}"
    return relocated
