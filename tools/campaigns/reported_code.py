"""Points on code: files of a plugin that are edited (c), and plugins that change code which later
rows use (n).
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.campaigns import forked
from tools.campaigns.reported import Finding, point
from tools.campaigns.reported_models import save_plain
from tools.campaigns.reported_scores import write

TASK = "Embedded-STS-contrast"
EXPERIMENT = """\
name = "edited"
base_models = ["{base}"]
seeds = [1]
suites = [{suites}]
max_steps = 2
corpus = {{ uri = "embedded:sentences", limit = 32 }}
dev = {{ task = "Embedded-STS-contrast" }}
methods = [{rows}]
"""
SMALL = "config = { batch_size = 8, train_length = 12, learning_rate = 1e-3, pooling = 'mean' }"
OTHERS = f'{{ method = "simcse", {SMALL} }}, {{ method = "pooling" }}'
OUR_SUITES = '"Embedded-STS-contrast"'
METHOD = """\
from methods.pooling import PoolingMethod
{imports}

class Mine(PoolingMethod):
    name = "mine"
{more}
    def encode(self, sentences, **options):
        vectors = super().encode(sentences, **options).copy()
        vectors[:, {count}:] = 0
        return vectors
"""
OWN_TASK = """\
from harness.tasks.base import TaskResult
from harness.tasks.protocol import add_number
{imports}

class Count{parent}:
    name = "count"
    suite = "own"
    source = "own"
    sha256 = "0" * 64
{more}
    def texts(self):
        return ["A dog runs.", "It rains."]

    def evaluate(self, vectors, *, pooling):
        result = TaskResult()
        add_number(result, self, "sum", {count} / 10, 2, pooling)
        return result
"""


@dataclass(frozen=True)
class Edit:
    """Files of a plugin, and those that are written over them.

    Attributes:
        files: name -> text.
        changed: the same, of what is edited.
        module: where the method or task is.
        is_task: whether it is a task.
        is_due: whether runs of before have to be made again.
    """

    files: Mapping[str, str]
    changed: Mapping[str, str]
    module: str = "mine"
    is_task: bool = False
    is_due: bool = True

    @property
    def task(self) -> str:
        return "count" if self.is_task else TASK


def method(imports: str = "", count: str = "DIMS", more: str = "") -> str:
    return METHOD.format(imports=imports, count=count, more=more)


def own_task(imports: str = "", count: str = "SCALE", more: str = "", parent: str = "") -> str:
    return OWN_TASK.format(imports=imports, count=count, more=more, parent=parent)


_READ = "from pathlib import Path\nHERE = Path(__file__).parent"
_PARENT = method(count="4").replace("Mine", "Base").replace('"mine"', '"base"')
_CHILD = 'from kin import Base\n\nclass Mine(Base):\n    name = "mine"\n'
_VERSION = "    version = 1\n"
_FIRST = {"aid.py": "DIMS = 4\n"}
_SECOND = {"aid.py": "DIMS = 2\n"}

EDITS: dict[str, Edit] = {
    "a helper, by name": Edit(
        {"mine.py": method("from aid import DIMS"), **_FIRST}, {"aid.py": "DIMS = 2\n"}
    ),
    "a helper, under another name": Edit(
        {"mine.py": method("import aid as other", "other.DIMS"), **_FIRST}, _SECOND
    ),
    "a helper, inside of a function": Edit(
        {
            "mine.py": method(count="__import__('sys').modules['aid'].DIMS").replace(
                "        vectors[", "        import aid\n        vectors["
            ),
            **_FIRST,
        },
        _SECOND,
    ),
    "a helper of a helper": Edit(
        {
            "mine.py": method("from nearer import DIMS"),
            "nearer.py": "from aid import *\n",
            **_FIRST,
        },
        _SECOND,
    ),
    "a relative import of a package": Edit(
        {
            "pack/__init__.py": "",
            "pack/mine.py": method("from .parts.aid import DIMS"),
            "pack/parts/__init__.py": "",
            "pack/parts/aid.py": "DIMS = 4\n",
        },
        {"pack/parts/aid.py": "DIMS = 2\n"},
        module="pack.mine",
    ),
    "a package without __init__": Edit(
        {"room/mine.py": method("from room.aid import DIMS"), "room/aid.py": "DIMS = 4\n"},
        {"room/aid.py": "DIMS = 2\n"},
        module="room.mine",
    ),
    "the __init__ of the package": Edit(
        {"pack/__init__.py": "DIMS = 4\n", "pack/mine.py": method("from pack import DIMS")},
        {"pack/__init__.py": "DIMS = 2\n"},
        module="pack.mine",
    ),
    "a parent": Edit(
        {"mine.py": _CHILD, "kin.py": _PARENT},
        {"kin.py": _PARENT.replace("4:", "2:")},
    ),
    "a data file": Edit(
        {
            "mine.py": method(
                _READ, "int((HERE / 'dims.txt').read_text())", '    data_files = "dims.txt"\n'
            ),
            "dims.txt": "4",
        },
        {"dims.txt": "2"},
    ),
    "a file in a folder of data": Edit(
        {
            "mine.py": method(
                _READ, "len(list((HERE / 'words').iterdir()))", '    data_files = ("words",)\n'
            ),
            "words/a.txt": "",
        },
        {"words/b.txt": "", "words/c.txt": ""},
    ),
    "a helper of a task": Edit(
        {"mine.py": own_task("from aid import SCALE"), "aid.py": "SCALE = 4\n"},
        {"aid.py": "SCALE = 2\n"},
        is_task=True,
    ),
    "a parent of a task": Edit(
        {
            "mine.py": own_task("from kin import Kin", "self.scale", parent="(Kin)"),
            "kin.py": "class Kin:\n    scale = 4\n",
        },
        {"kin.py": "class Kin:\n    scale = 2\n"},
        is_task=True,
    ),
    "a data file of a task": Edit(
        {
            "mine.py": own_task(
                _READ, "int((HERE / 'dims.txt').read_text())", '    data_files = "dims.txt"\n'
            ),
            "dims.txt": "4",
        },
        {"dims.txt": "2"},
        is_task=True,
    ),
    "a version that is raised": Edit(
        {"mine.py": method(count="4", more=_VERSION)},
        {"mine.py": method(count="2", more="    version = 2\n")},
    ),
    "the same version": Edit(
        {"mine.py": method("from aid import DIMS", more=_VERSION), **_FIRST}, _SECOND, is_due=False
    ),
    "a file that nothing imports": Edit(
        {"mine.py": method(count="4"), **_FIRST}, _SECOND, is_due=False
    ),
}
WHILE_WORKERS_START = ("a helper, by name", "a parent", "a data file", "a helper of a task")


@dataclass
class Plugin:
    """A plugin in a folder, and comparisons with it.

    Attributes:
        place: its folder; comparisons lie beside it.
        edit: its files.
        rows: of the comparisons.
    """

    place: Path
    edit: Edit
    rows: str = ""
    scores: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = "Count" if self.edit.is_task else "Mine"
        entry = f"{name.lower()} = {self.edit.module}:{name}\n"
        group = "[harness.tasks]\n" if self.edit.is_task else "[harness.methods]\n"
        self._write(
            {
                **self.edit.files,
                "mine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n",
                "mine-1.0.dist-info/entry_points.txt": group + entry,
            }
        )
        rows = self.rows or '{ method = "pooling" }' if self.edit.is_task else '{ method = "mine" }'
        suites = '"count"' if self.edit.is_task else OUR_SUITES
        base = self.place.parent / "base"
        text = EXPERIMENT.format(rows=self.rows or rows, suites=suites, base=base)
        self.file = write(self.place, "edited.toml", text)

    def _write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            write(self.place / "plugin", name, text)

    def change(self) -> None:
        """Write the edited files."""
        self._write(self.edit.changed)

    def change_back(self) -> None:
        """Write the files of before, and remove others."""
        for name in self.edit.changed.keys() - self.edit.files.keys():
            (self.place / "plugin" / name).unlink()
        self._write(self.edit.files)

    def run(
        self, workdir: str, *options: str, before: Callable[[], None] | None = None
    ) -> forked.Ended:
        """Run the comparison in a process of its own that knows the plugin."""

        def install() -> None:
            folder = str(self.place / "plugin")
            sys.path.insert(0, folder)
            sys.dont_write_bytecode = True
            paths = [folder, str(Path.cwd())]
            os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
            importlib.invalidate_caches()
            if before is not None:
                before()

        command = ["compare", str(self.file), "--workdir", str(self.place / workdir)]
        if "--dry-run" not in options:
            command += ["--tracking-uri", "none", "--quiet", "--format", "csv"]
        return forked.run([*command, *options], before=install)

    def score_of(self, workdir: str, row: str, task: str) -> float | None:
        """Return the score of a row in a finished comparison; None where it has none."""
        from harness.results.store import read_records

        for record in read_records(self.place / workdir, "edited"):
            if record.row == row and record.status == "finished":
                return next((one.value for one in record.scores if one.task == task), None)
        return None

    def reason_of(self, workdir: str, row: str) -> str:
        """Return why the run of a row failed; empty where it did not."""
        from harness.results.store import read_records

        records = read_records(self.place / workdir, "edited")
        return next((one.reason for one in records if one.row == row and not one.scores), "")


def _row(edit: Edit) -> str:
    return "pooling" if edit.is_task else "mine"


@point("c")
def code_that_changed(folder: Path, room: Path) -> Iterator[Finding]:
    _import_everything(room)
    reported = {
        f"reported: {place.parent.name}": _read_reported(place)
        for place in sorted(folder.rglob("06-edited-code/plug"))
    }
    for name, edit in {**reported, **EDITS}.items():
        yield _edit_between_calls(name, Plugin(room / name.replace(" ", "-"), edit))
    for name in WHILE_WORKERS_START:
        place = room / f"workers-{name.replace(' ', '-')}"
        yield from _edit_while_workers_start(name, Plugin(place, EDITS[name]))


def _import_everything(room: Path) -> None:
    base = save_plain(room / "base")
    rows = EXPERIMENT.format(rows=OTHERS, suites=OUR_SUITES, base=base)
    file = write(room, "first/edited.toml", rows)
    command = ["compare", str(file), "--workdir", str(room / "first" / "work"), "--quiet"]
    (ended,) = forked.import_what_is_used_by(
        [*command, "--format", "csv", "--tracking-uri", "none"]
    )
    assert ended.code == 0, ended.err


def _read_reported(place: Path) -> Edit:
    """Return the plugin that was reported; its helper is edited."""
    files = {file.name: file.read_text() for file in sorted(place.glob("*.py"))}
    return Edit(files, {"minehelp.py": "DIMS = 8\n"}, module="minemod")


def _edit_between_calls(name: str, plugin: Plugin) -> Finding:
    """Run, edit, and run again: the scores are those of the code as it is."""
    edit = plugin.edit
    row, task = _row(edit), edit.task
    plugin.run("work")
    old = plugin.score_of("work", row, task)
    plugin.change()
    plan = plugin.run("work", "--dry-run")
    plugin.run("work")
    seen = plugin.score_of("work", row, task)
    plugin.run("fresh")
    truth = plugin.score_of("fresh", row, task)
    what = next(iter(edit.changed)).rpartition("/")[2]
    said = plan.out + plan.err
    is_named = what in said or "version has changed" in said
    if not edit.is_due:
        expected = f"{old}, reused"
        return Finding(name, expected, f"{seen}", old == seen is not None and "is due" not in said)
    expected = f"{truth} as in a fresh folder, {what} named"
    ok = None not in (old, truth) and seen == truth != old and is_named
    return Finding(name, expected, f"{seen}, before {old}, named: {is_named}", ok)


def _edit_while_workers_start(name: str, plugin: Plugin) -> Iterator[Finding]:
    """Edit between the plan and the import of a worker: nothing is recorded under the old id."""
    edit = plugin.edit
    row, task = _row(edit), edit.task

    def edit_first() -> None:
        from harness.executors.processes import Processes

        run = Processes.run

        def change_and_run(self: Processes, *arguments: object) -> object:
            plugin.change()
            return run(self, *arguments)  # type: ignore[arg-type]

        Processes.run = change_and_run  # type: ignore[method-assign, assignment]

    ended = plugin.run("work", "--executor", "processes", "--workers", "1", before=edit_first)
    score = plugin.score_of("work", row, task)
    reason = plugin.reason_of("work", row)
    what = next(iter(edit.changed))
    ok = ended.code == 1 and score is None and what in reason
    expected = f"exit 1, no score, {what} named"
    seen = f"exit {ended.code}, score {score}: {reason[:120]}"
    yield Finding(f"{name}, while workers start", expected, seen, ok)
    plugin.change_back()
    plugin.run("work")
    plugin.run("fresh")
    seen_now = plugin.score_of("work", row, task)
    truth = plugin.score_of("fresh", row, task)
    same = seen_now == truth is not None
    yield Finding(f"{name}, then as it was planned", f"{truth}", f"{seen_now}", same)


# ------------------------------------------------------------------- code that later rows use

CHANGING = """\
import random, threading, time
import numpy as np
import scipy.stats
import torch
import transformers
from transformers.models.bert import modeling_bert
from methods.pooling import PoolingMethod
from methods.simcse import SimCSE

class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {{}}))
        return result * 0.5 if function is torch.nn.functional.layer_norm else result

def halve(module, inputs, output):
    return output * 0.5 if isinstance(output, torch.Tensor) else None

def reseed():
    while True:
        torch.manual_seed(0)
        time.sleep(0.0005)

def deed():
    {deed}

{at_import}

class Mine(PoolingMethod):
    name = "mine"

    def fit(self, corpus=None, context=None):
        {in_fit}
        return super().fit(corpus, context)

    def encode(self, sentences, **options):
        {in_encode}
        return super().encode(sentences, **options)
"""
_HALF = "lambda self, x, *a, **k: (lambda y: y)(before(self, x, *a, **k)) * 0.5"
DEEDS = {
    "linear layers": f"before = torch.nn.Linear.forward; torch.nn.Linear.forward = {_HALF}",
    "norms of layers": f"before = torch.nn.LayerNorm.forward; torch.nn.LayerNorm.forward = {_HALF}",
    "the code inside of a function": (
        "torch.nn.LayerNorm.forward.__code__ = (lambda self, input: input * 0.5).__code__"
    ),
    "calls of all modules": f"before = torch.nn.Module.__call__; torch.nn.Module.__call__ = {_HALF}",
    "a method of tensors": "torch.Tensor.mean = torch.Tensor.sum",
    "steps of AdamW": "torch.optim.AdamW.step = lambda self, closure=None: None",
    "an attention of transformers": (
        "modeling_bert.BertSelfOutput.forward = lambda self, x, y: self.LayerNorm(y)"
    ),
    "a class of transformers": (
        "modeling_bert.BertIntermediate = type('Other', (modeling_bert.BertIntermediate,), "
        "{'forward': lambda self, x: self.dense(x)})"
    ),
    "norms of NumPy": "np.linalg.norm = lambda x, *a, **k: np.ones((len(x), 1))",
    "an activation by its name": ("transformers.activations.ACT2FN['gelu'] = torch.nn.ReLU"),
    "attention by its name": (
        "transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS['sdpa'] = "
        "lambda m, q, k, v, *a, **o: (v.transpose(1, 2).contiguous(), None)"
    ),
    "a function of NumPy": "np.sqrt = lambda x, *a, **k: x",
    "ranks of SciPy": "scipy.stats.spearmanr = lambda *a, **k: (0.5, 0.5)",
    "a hook for all modules": "torch.nn.modules.module.register_module_forward_hook(halve)",
    "a mode of torch": "Mode().__enter__()",
    "a thread that seeds torch": "threading.Thread(target=reseed, daemon=True).start()",
}
PLACES = ("in_fit", "in_encode", "at_import")


def _changing(deed: str, place: str) -> Edit:
    parts = {one: "deed()" if one == place else "pass" for one in PLACES}
    return Edit({"mine.py": CHANGING.format(deed=deed, **parts)}, {})


@point("n")
def plugins_that_change_code(folder: Path, room: Path) -> Iterator[Finding]:
    """Rows after such a row have the scores that they have alone, or none and a reason."""
    _import_everything(room)
    plain = Plugin(room / "plain", _changing("pass", "in_fit"), OTHERS)
    plain.run("work")
    rows = ("simcse", "pooling")
    truth = {row: plain.score_of("work", row, TASK) for row in rows}
    assert None not in truth.values(), truth
    first = f'{{ method = "mine" }}, {OTHERS}'
    for number, (name, deed) in enumerate(DEEDS.items()):
        place = PLACES[number % len(PLACES)]
        case = f"{name}, {place.replace('_', ' ')}"
        plugin = Plugin(room / case.replace(" ", "-"), _changing(deed, place), first)
        ended = plugin.run("work")
        yield _judge_rows(case, plugin, ended, truth)
    for name in ("linear layers", "a thread that seeds torch"):
        case = f"{name}, one worker"
        plugin = Plugin(room / case.replace(" ", "-"), _changing(DEEDS[name], "in_fit"), first)
        ended = plugin.run("work", "--executor", "processes", "--workers", "1")
        scores = {row: plugin.score_of("work", row, TASK) for row in rows}
        yield Finding(case, f"{truth}", f"{scores}", scores == truth and not ended.fault((0, 1)))
    harmless = Plugin(room / "harmless", _changing("x = torch.ones(2)", "in_fit"), first)
    harmless.run("work")
    scores = {row: harmless.score_of("work", row, TASK) for row in rows}
    yield Finding("nothing is changed", f"{truth}", f"{scores}", scores == truth)


def _judge_rows(
    case: str, plugin: Plugin, ended: forked.Ended, truth: Mapping[str, float | None]
) -> Finding:
    scores = {row: plugin.score_of("work", row, TASK) for row in truth}
    wrong = {row: score for row, score in scores.items() if score not in (None, truth[row])}
    reasons = {row: plugin.reason_of("work", row) for row in truth if scores[row] is None}
    ok = not wrong and all("chang" in reason for reason in reasons.values())
    ok = ok and not ended.fault((0, 1)) and (ended.code == 1) == bool(reasons)
    said = next(iter(reasons.values()), "the scores are those of the rows alone")
    seen = f"exit {ended.code}, wrong: {wrong}; {said[:140]}"
    return Finding(case, f"{truth}, or no scores and a reason", seen, ok)
