"""A training script of someone else as a method: it is run, and the model that it writes is scored."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import field_validator

from harness.config import option
from harness.errors import HarnessError, InputError, NotFitted, RunError, StopRequested
from harness.files.hashing import sha256_of
from harness.files.links import real_path
from harness.method import (
    POOLING_HELP,
    FitContext,
    FitReport,
    Method,
    MethodCard,
    MethodConfig,
    Supervision,
    Text,
    load_unfitted,
    require_corpus,
)
from harness.sources import EMBEDDED_MODELS, resolve_model

if TYPE_CHECKING:
    from harness.encoder import Encoder
    from harness.encoder.foreign import ForeignEncoder
    from harness.sources import Corpus, TrainingText

OWN = "own"
LOG = "command.log"
_PLACES = ("base_model", "text", "seed", "out")
_PLACE = re.compile(r"\{(\w*)\}")
_LAST_LINES = 5


class CommandConfig(MethodConfig):
    """The command, where it runs, and what it reads."""

    pooling: str = option(OWN, f"own: what the model that it writes says; or {POOLING_HELP}")
    run: str = option("", "the command; {base_model}, {text}, {seed} and {out} are replaced in it")
    folder: str = option(".", "folder of the script, in which it runs")
    python: str = option("", "interpreter for a command that begins with python; default: this one")
    files: list[str] = option(["*.py", "*.sh"], "patterns of the files whose content is in the id")
    hours: float = option(24.0, "it is ended after so many hours", gt=0)
    learns: Literal["sentences", "pairs", "documents"] = option(
        "sentences", "its text: sentences (a line each), pairs (CSV) or documents (JSON lines)"
    )
    supervision: Supervision = option(
        "unsupervised", "what is known of the data that it learns from"
    )

    @field_validator("pooling")
    @classmethod
    def _check_pooling(cls, value: str) -> str:
        if value == OWN:
            return value
        return MethodConfig._check_pooling(value)

    @field_validator("run")
    @classmethod
    def _places_are_known(cls, value: str) -> str:
        for name in _PLACE.findall(value):
            if name not in _PLACES:
                places = [f"{{{place}}}" for place in _PLACES]
                known = ", ".join(places)
                raise ValueError(f"replaces {known} only, but has {{{name}}}")
        if value and "{out}" not in value:
            raise ValueError("has no {out}, where the model is expected")
        try:
            shlex.split(value)
        except ValueError as error:
            raise ValueError(f"cannot be split into words ({error})") from None
        return value


class Command(Method):
    """A command trains in its own loop: dev selection, batches and budget are its own."""

    name = "command"
    version = 2
    card = MethodCard(
        "A training script",
        "none",
        text="sentences",
        supervision="unsupervised",
        cost="what the script takes",
        notes="Own loop: how it selects, batches and how long it trains is not known.",
    )
    Config = CommandConfig

    _model: Encoder | ForeignEncoder | None = None

    @property
    def text(self) -> Text:
        learns: Text = self.config.learns
        return learns

    @property
    def supervision(self) -> Supervision:
        declared: Supervision = self.config.supervision
        return declared

    @property
    def untrained_start(self) -> tuple[str, dict[str, Any]] | None:
        """None where the model that it writes says how it pools: that is not known before."""
        if self.config.pooling == OWN:
            return None
        return super().untrained_start

    @property
    def inputs(self) -> dict[str, str]:
        """A hash of the files that the patterns name, by their paths in the folder.

        Raises:
            InputError: there is no such folder, or no such file in it.
        """
        folder = self._folder()
        found = {}
        for pattern in self.config.files:
            for file in folder.glob(pattern):
                if file.is_file():
                    found[file.relative_to(folder).as_posix()] = file
        if not found:
            raise InputError(
                f"{folder} has no file like {', '.join(self.config.files)}",
                key="files",
                remedy="name the files that decide the numbers",
            )
        lines = []
        for name in sorted(found):
            digest = sha256_of(found[name])
            lines.append(f"{name} {digest}")
        content = "\n".join(lines)
        inputs = {"files": hashlib.sha256(content.encode()).hexdigest()}
        if self.config.pooling == OWN and self.config.max_length is not None:
            inputs["length"] = "as set"  # it was at most what the written model states
        return inputs

    def _folder(self) -> Path:
        folder = real_path(Path(self.config.folder))
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder", key="folder")
        return folder

    def check(self, corpus: Corpus | None) -> None:
        """Refuse a command that cannot be run, before anything is written.

        Raises:
            InputError: no command, no such folder or interpreter, or no corpus of its kind.
        """
        super().check(corpus)
        self._words(dict.fromkeys(_PLACES, ""))
        _ = self.inputs

    def _words(self, values: dict[str, str]) -> list[str]:
        """Return the command as words. It is split before values are put in, so that a value with
        spaces is one word, and no shell reads any of it.
        """
        if not self.config.run.strip():
            raise InputError(
                "expected a command", key="run", remedy='give run = "python train.py ..."'
            )
        words = []
        for word in shlex.split(self.config.run):
            words.append(_PLACE.sub(lambda place: values[place.group(1)], word))
        if words[0] in ("python", "python3"):
            words[0] = self._interpreter()
        elif not self._is_program(words[0]):
            raise InputError(f'"{words[0]}" is no program here', key="run")
        return words

    def _is_program(self, word: str) -> bool:
        if shutil.which(word, path=None) is not None:
            return True
        return (self._folder() / word).is_file()

    def _interpreter(self) -> str:
        given = str(self.config.python)
        if not given:
            return sys.executable
        places = (self._folder() / given, Path(given).absolute())
        for place in places:
            if place.is_file():
                return str(place)
        found = shutil.which(given)
        if found is None:
            raise InputError(f'"{given}" is no interpreter here', key="python")
        return found

    def fit(self, corpus: TrainingText | None = None, context: FitContext | None = None) -> Self:
        """Run the command on `corpus`, and open what it wrote.

        Raises:
            InputError: the command cannot be run, or there is no corpus.
            RunError: it failed, took too long or wrote no model; with the last lines of its log.
        """
        context = context or FitContext()
        items = require_corpus(self, corpus)
        self.check(items)
        with _work_folder(context.folder) as work:
            text = _write_text(items, work, self.config.learns)
            output = work / "output"
            values = {
                "base_model": str(_base_folder(self.base_model, work)),
                "text": str(text),
                "seed": str(int(context.seed)),
                "out": str(output),
            }
            log = (context.folder or work) / LOG
            started = time.perf_counter()
            self._execute(self._words(values), log, context)
            self._model = self._open_output(output, log)
        self._model.to(context.device)
        self.fit_report = FitReport(
            training={"loop": "own", "command": self.config.run},
            cost={"train_seconds": time.perf_counter() - started},
        )
        return self

    def _execute(self, words: list[str], log: Path, context: FitContext) -> None:
        ends = time.monotonic() + self.config.hours * 3600
        with log.open("wb") as stream:
            try:
                process = subprocess.Popen(
                    words,
                    cwd=self._folder(),
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise RunError(f"the command cannot be started: {error}") from error
            try:
                while process.poll() is None:
                    if context.stop is not None and context.stop():
                        raise StopRequested
                    if time.monotonic() > ends:
                        raise RunError(
                            f"the command was ended after {self.config.hours:g} hours{_last_lines(log)}"
                        )
                    if context.progress is not None:
                        context.progress(0, 0, "running the command")
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.5)
            finally:
                _end_group(process)
        if process.returncode != 0:
            raise RunError(
                f"the command ended with exit code {process.returncode}{_last_lines(log)}"
            )

    def _open_output(self, output: Path, log: Path) -> Encoder | ForeignEncoder:
        files = [output / name for name in ("modules.json", "config.json")]
        if not any(file.is_file() for file in files):
            raise RunError(f"the command wrote no model into {{out}}{_last_lines(log)}")
        try:
            return self._open(str(output), self.config.pooling)
        except HarnessError as error:
            raise RunError(f"the model that the command wrote cannot be opened: {error}") from error

    def _open(self, name: str, pooling: str) -> Encoder | ForeignEncoder:
        from harness.encoder import Encoder
        from harness.encoder.foreign import ForeignEncoder, open_model

        config = self.config
        if pooling != OWN:
            opened = Encoder.from_pretrained(
                name,
                pooling=pooling,
                max_length=config.max_length,
                first_layer=config.first_layer,
            )
            self._encoder = opened.eval()
            return self._encoder
        model = open_model(name)
        if isinstance(model, ForeignEncoder):
            if config.max_length is not None:
                model.set_length(config.max_length)
            return model
        if config.max_length is not None:
            model.set_length(config.max_length)
        self._encoder = model.eval()
        return self._encoder

    @property
    def model(self) -> Encoder | ForeignEncoder:
        """The model that the command wrote.

        Raises:
            NotFitted: before `fit`.
        """
        if self._model is None:
            raise NotFitted(f"{self.name} is not fitted yet: call fit() or load() first")
        return self._model

    @property
    def encoding_model(self) -> Encoder | ForeignEncoder:
        """The model that the command wrote."""
        return self.model

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load what `save` wrote.

        Raises:
            InputError: the folder is not one, or another method's.
        """
        method = load_unfitted(cls, path)
        method._model = method._open(str(path), OWN)  # the layout says how to pool
        return method


@contextmanager
def _work_folder(folder: Path | None) -> Iterator[Path]:
    """A folder for text and output, which is removed afterwards: the model is saved elsewhere."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="command-", dir=folder) as work:
        yield Path(work).resolve()


def _base_folder(name: str, work: Path) -> Path:
    """Return the folder of the base model. The model that ships is stored in half precision, which
    libraries would train in: scripts get a copy in float32, as other rows are trained.
    """
    folder = Path(resolve_model(name))
    if folder not in EMBEDDED_MODELS.values():
        return folder
    from safetensors.torch import load_file, save_file

    from harness.encoder.layout import update_json

    copy = work / "base_model"
    shutil.copytree(folder, copy, copy_function=shutil.copyfile)
    file = copy / "model.safetensors"
    weights = {key: tensor.float() for key, tensor in load_file(file).items()}
    save_file(weights, file, {"format": "pt"})
    update_json(copy / "config.json", dtype="float32")
    return copy


def _write_text(items: Corpus, work: Path, kind: str) -> Path:
    """Write the items as scripts read them; a sentence is one line."""
    if kind == "pairs":
        file = work / "text.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            pairs: list[Any] = list(items)
            hard = any(pair.negative is not None for pair in pairs)
            header = ["sent0", "sent1"]
            if hard:
                header.append("hard_neg")
            writer.writerow(header)
            for pair in pairs:
                row = [pair.anchor, pair.positive]
                if hard:
                    row.append(pair.negative or "")
                writer.writerow(row)
        return file
    if kind == "documents":
        file = work / "text.jsonl"
        lines = [json.dumps({"text": text}, ensure_ascii=False) for text in items]
    else:
        file = work / "text.txt"
        lines = [" ".join(str(text).splitlines()) for text in items]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def _last_lines(log: Path) -> str:
    """Return the last lines of a log as the end of a message; empty where there are none."""
    written = log.read_text("utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in written]
    said = [line for line in lines if line.strip("^~ ")][-_LAST_LINES:]  # no marks below code
    if said:
        shown = " | ".join(line[:200] for line in said)
        return f"; its last lines: {shown}"
    return ""


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the command started; nothing of it outlives the run."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return
