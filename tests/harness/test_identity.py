"""What counts as a change of code: mutations of real modules, held against the ledgers; ids of methods and tasks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness import registry
from harness.comparison.experiment import read_experiment
from harness.comparison.plan import make_plan
from harness.config import Config, option
from harness.errors import InputError
from harness.identity import __main__ as command
from harness.identity.code import code_ids, evaluation_ids
from harness.identity.ledger import kept_ledgers, ledger_of, read_ledger
from harness.identity.review import Review
from harness.results.migrations import RECORD, Schema
from harness.results.record import Record
from harness.tasks.sts import STSTask

REPOSITORY = Path(__file__).resolve().parents[2]
FROZEN = REPOSITORY / "tests" / "frozen"
PACKAGES = ("harness", "methods")


def test_no_numerical_code_has_changed_without_a_word() -> None:
    """When this fails, `python -m harness.identity` says what to do."""
    faults = Review(kept_ledgers()).faults()
    assert not faults, "\n".join([*faults, command.ADVICE])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages that is left as it was found."""
    folder = tmp_path_factory.mktemp("packages")
    for package in PACKAGES:
        shutil.copytree(
            REPOSITORY / package, folder / package, ignore=shutil.ignore_patterns("embedded", "__pycache__")
        )
    return folder


@pytest.fixture
def copies(whole: Path, tmp_path: Path) -> Path:
    """A copy of the packages to change."""
    for package in PACKAGES:
        shutil.copytree(whole / package, tmp_path / package)
    return tmp_path


def review(folder: Path) -> Review:
    return Review([folder / package for package in PACKAGES])


def edit(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    text = path.read_text()
    assert old in text, f"{file} has changed; give this test another line of it"
    path.write_text(text.replace(old, new, 1))


CHANGES = {
    "a constant of an objective": ("methods/objectives.py", "eps=1e-8", "eps=1e-6", "methods.objectives"),
    "an objective": ("methods/objectives.py", "def nt_xent_symmetric(a: Tensor, b: Tensor, *, temperature: float)",
                     "def nt_xent_symmetric(a: Tensor, b: Tensor, *, temperature: float = 1)",
                     "methods.objectives:nt_xent_symmetric"),
    "a default of an option": ("methods/simcse.py", "option(0.05, ", "option(0.06, ", "methods.simcse"),
    "a preset": ("methods/simcse.py", '"learning_rate": 3e-4', '"learning_rate": 3e-3', "methods.simcse"),
    "the tokenisation": ("harness/encoder/model.py", "truncation=True", "truncation=False", "harness.encoder.model"),
    "a library's function": ("methods/objectives.py", "from torch.nn import functional",
                             "from torch import functional", "methods.objectives"),
    "what is called of another module": ("methods/simcse.py", "return nt_xent(", "return cross(", "methods.simcse"),
    "a score": ("harness/tasks/sts.py", "x - x.mean(), y - y.mean()", "x - x.mean(), y", "harness.tasks.sts:pearson"),
}  # fmt: skip
WORDS = {
    "a docstring": ("harness/tasks/geometry/isotropy.py", "How evenly vectors use", "How well vectors use"),
    "a comment": ("methods/objectives.py", "import torch\n", "import torch  # the library\n"),
    "layout": ("methods/simcse.py", "        heads = nn.ModuleDict(", "        heads = nn.ModuleDict(\n"),
    "an error text": ("methods/objectives.py", "expected two (n, d) tensors", "wanted two (n, d) tensors"),
    "a type": ("methods/objectives.py", "def unit(x: Tensor) -> Tensor", "def unit(x: 'Tensor') -> object"),
    "a help text": ("methods/simcse.py", '"divides the similarities"', '"the similarities are divided by it"'),
    "a range that studies sweep": ("methods/simcse.py", "sweep=(0.001, 1.0)", "sweep=(0.01, 1.0)"),
    "a model card": ("methods/simcse.py", 'cost="one epoch', 'cost="an epoch'),
    "an import of a type": ("methods/simcse.py", "if TYPE_CHECKING:\n", "if TYPE_CHECKING:\n    import decimal\n"),
    "a module without numbers": ("harness/errors.py", "exit_code = 2", "exit_code = 3"),
    "where an import stands": ("methods/scd.py", "\nclass SCD(", "\nimport math\n\n\nclass SCD("),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_numbers_is_noticed(whole: Path, change: str) -> None:
    file, old, new, key = CHANGES[change]
    text = (whole / file).read_text()
    edit(whole, file, old, new)
    changed = review(whole)
    found = changed.form(key).hash
    (whole / file).write_text(text)
    assert found != changed.parts.by_code[key].code[key]


def test_words_and_types_change_nothing(copies: Path) -> None:
    for file, old, new in WORDS.values():
        edit(copies, file, old, new)
    assert review(copies).faults() == []


def test_the_order_of_the_training_loop_is_noticed(copies: Path) -> None:
    update = "        self.scaler.step(self.optimizer)\n        self.scaler.update()\n"
    loop = next(f for f in (copies / "harness/training").glob("*.py") if update in f.read_text())
    edit(copies, str(loop.relative_to(copies)), update, "".join(reversed(update.splitlines(keepends=True))))
    assert list(review(copies).changed) == ["harness.training"]


def test_a_module_that_moves_keeps_its_part_and_its_version(copies: Path) -> None:
    (copies / "methods/parts/optimizers.py").rename(copies / "methods/steps.py")
    for file in (copies / "methods").rglob("*.py"):
        file.write_text(file.read_text().replace("methods.parts.optimizers", "methods.steps"))
    before = review(copies)
    assert before.moved() == {"methods.parts.optimizers": "methods.steps"}
    assert "methods.steps is in no part: what it computes is in no id" in before.faults()
    before.follow()
    after = review(copies)
    assert after.faults() == []
    assert after.parts.of("methods.steps") is not None
    assert {name: part.version for name, part in after.parts.by_name.items()} == {
        name: part.version for name, part in before.parts.by_name.items()
    }


def test_a_module_that_is_renamed_changes_nothing_in_those_that_use_it(copies: Path) -> None:
    (copies / "harness/encoder/layout/loading.py").rename(copies / "harness/encoder/layout/opening.py")
    for file in (copies / "harness").rglob("*.py"):
        text = file.read_text().replace("layout.loading", "layout.opening")
        file.write_text(text.replace("layout import loading", "layout import opening").replace("loading.", "opening."))
    review(copies).follow()
    assert review(copies).faults() == []


def test_a_new_module_has_to_say_what_it_is(copies: Path) -> None:
    (copies / "methods/newest.py").write_text("def loss(x):\n    return 2 * x\n")
    assert review(copies).faults() == ["methods.newest is in no part: what it computes is in no id"]
    (copies / "methods/newest.py").write_text('"""Nothing yet."""\n\nfrom methods.objectives import unit\n')
    assert review(copies).faults() == []


def test_a_version_is_entered_with_its_reason(copies: Path) -> None:
    edit(copies, *CHANGES["an objective"][:3])
    with pytest.raises(InputError, match=r'no part "methods.nt_xents".*did you mean "methods.nt_xent"'):
        review(copies).enter(["methods.nt_xents"], because="a test", bump=True)
    with pytest.raises(InputError, match="say in one line why"):
        review(copies).enter(["methods.nt_xent_symmetric"], because=" ", bump=True)
    review(copies).enter(["methods.nt_xent_symmetric"], because="the default", bump=True)
    after = review(copies)
    assert after.faults() == []
    assert after.parts.by_name["methods.nt_xent_symmetric"].version == 2
    assert "version 2: the default" in (copies / "methods/ledger.toml").read_text()
    changed = after.ids_with("methods.nt_xent_symmetric")
    assert "methods.declutr" in changed
    assert "methods.simcse" not in changed
    edit(copies, *CHANGES["an objective"][:3][::2], CHANGES["an objective"][1])  # back again
    review(copies).enter(["methods.nt_xent_symmetric"], because="merged two lines", bump=False)
    assert review(copies).parts.by_name["methods.nt_xent_symmetric"].version == 2
    assert "no effect: merged two lines" in (copies / "methods/ledger.toml").read_text()


def test_the_command_says_what_has_changed_and_what_to_do(
    copies: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "kept_ledgers", lambda: [copies / package for package in PACKAGES])
    assert command.main([]) == 0
    edit(copies, *CHANGES["a default of an option"][:3])
    assert command.main(["check"]) == 1
    told = capsys.readouterr().out
    assert "methods.simcse: methods.simcse has changed" in told
    assert "no-effect PART --because" in told
    assert command.main(["bump", "methods.simcse", "--because", "the paper's temperature"]) == 0
    told = capsys.readouterr().out
    assert "methods.mixcse" in told  # which is a SimCSE
    assert command.main(["bump", "methods.simcsee", "--because", "x"]) == 2


@pytest.fixture
def versions(copies: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets versions of parts in the ledgers that ids are made from."""
    from harness.identity import code

    def put(**by_part: int) -> None:
        for package in PACKAGES:
            file = REPOSITORY / package / "ledger.toml"
            text = file.read_text()
            for name, version in by_part.items():
                text = text.replace(f"[parts.{name}]\n", f"[parts.{name}]\n#\n", 1)
                head, mark, tail = text.partition(f"[parts.{name}]\n#\n")
                text = head + mark + tail.replace("version = 1", f"version = {version}", 1)
            (copies / package / "ledger.toml").write_text(text)
        monkeypatch.setattr(code, "ledger_of", lambda folder: read_ledger(copies / folder.name)
                            if folder.name in PACKAGES else None)  # fmt: skip
        code._ids.cache_clear()

    yield put  # type: ignore[misc]
    code._ids.cache_clear()


def method(name: str) -> Any:
    return registry.load(registry.METHODS, name)


def test_ids_of_code_are_those_of_before_until_a_version_changes(versions: Callable[..., None]) -> None:
    names = ("simcse", "mixcse", "barlow_twins", "random", "concat")
    before = {name: code_ids(method(name)) for name in names}
    scores = evaluation_ids(STSTask)
    assert before["simcse"][0] == "e3da8b74e1b9550d"  # as records of Python 3.11 have it
    assert scores[0] == "5c7f6cfc3387c99a"
    versions(nt_xent=2)
    assert {name for name in names if code_ids(method(name)) != before[name]} == {"simcse", "mixcse"}
    assert len(code_ids(method("simcse"))) == 1  # no other id is of the same code any more
    first = code_ids(method("simcse"))
    versions(nt_xent=3)
    assert code_ids(method("simcse")) != first
    assert evaluation_ids(STSTask) == scores
    versions(training=2)
    assert {name for name in names if code_ids(method(name)) != before[name]} == {"simcse", "mixcse", "barlow_twins"}
    versions(evaluation=2)
    assert {name for name in names if code_ids(method(name)) != before[name]} == set()
    assert evaluation_ids(STSTask) != scores


def test_every_built_in_method_and_task_has_its_ids_of_before() -> None:
    for name in registry.names(registry.METHODS):
        kind = method(name)
        if kind.__module__.startswith("methods."):
            assert len(set(code_ids(kind))) == 3, name  # of Python 3.11, 3.12 and 3.13


OTHERS_METHOD = '''
from dataclasses import dataclass
from foreign_package.helpers import scale
from methods.objectives import nt_xent
{version}
class Foreign:
    """Somebody's."""
    {attribute}
    def loss(self, a, b):
        return scale(nt_xent(a, b, temperature=0.05))
'''


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The code id of a method of a package without a ledger, with this declared version and helper."""
    from harness.identity import code

    def made(attribute: str = "version = None", helper: str = "return 2 * x", unrelated: str = "x = 1") -> str:
        folder = tmp_path / "foreign_package"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text("")
        (folder / "helpers.py").write_text(f"def scale(x):\n    {helper}\n")
        (folder / "unrelated.py").write_text(unrelated)
        (folder / "method.py").write_text(OTHERS_METHOD.format(version="", attribute=attribute))
        for name in [name for name in sys.modules if name.startswith("foreign_package")]:
            del sys.modules[name]
        monkeypatch.syspath_prepend(str(tmp_path))
        from importlib import import_module, invalidate_caches

        invalidate_caches()
        module: ModuleType = import_module("foreign_package.method")
        code._ids.cache_clear()
        return code_ids(module.Foreign)[0]

    return made


def test_a_third_partys_code_counts_as_far_as_its_method_imports_it(foreign: Callable[..., str]) -> None:
    plain = foreign()
    assert foreign(helper='"""Twice."""\n    return 2 * x  # twice') == plain
    assert foreign(unrelated="x = 2") == plain
    assert foreign(helper="return 3 * x") != plain


def test_a_third_party_may_declare_versions_instead(foreign: Callable[..., str]) -> None:
    first = foreign(attribute="version = 1")
    assert foreign(attribute="version = 1", helper="return x + x") == first
    assert foreign(attribute="version = 2") != first


def test_a_third_party_rests_on_the_versions_of_what_it_imports(
    foreign: Callable[..., str], versions: Callable[..., None]
) -> None:
    before = foreign(attribute="version = 1")
    versions(nt_xent=2)
    assert foreign(attribute="version = 1") != before
    versions(barlow_twins_loss=2)
    assert foreign(attribute="version = 1") == before


def test_ids_do_not_depend_on_the_python_that_computes_them(tmp_path: Path) -> None:
    """The normal form has no field that a version of `ast` added, and none of its empty ones."""
    form = json.dumps(Review(kept_ledgers()).form("harness.training.loop").tree)
    assert '"type_params"' not in form
    assert '"ctx"' not in form


class Before(Config):
    rate: float = option(0.1, "a rate")


class After(Before):
    window: int | None = option(None, "a new option; empty: as without it", neutral=None)
    inner: tuple[Before, ...] = option((), "further ones")


def test_a_neutral_option_leaves_ids_alone() -> None:
    assert After().for_id() == {"rate": 0.1, "inner": []}
    assert After(window=3, inner=(After(), Before())).for_id() == {
        "rate": 0.1, "window": 3, "inner": [{"rate": 0.1, "inner": []}, {"rate": 0.1}]
    }  # fmt: skip
    assert Before().for_id() == Before().model_dump()


EXPERIMENT = """
schema = 1
name = "small"
seeds = [1]
suites = ["Embedded-STS-natural"]
base_models = ["model"]
max_steps = 2
precision = "fp32"
corpus = { uri = "embedded:sentences", limit = 40 }
[dev]
task = "Embedded-STS-natural"
[[methods]]
method = "simcse"
preset = "mini"
[[methods]]
method = "concat"
config = { parts = [{ method = "pooling" }, { method = "simcse", preset = "mini" }] }
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(FROZEN / "model", tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    return file


def test_runs_of_another_python_are_found_under_their_ids(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before the ledgers, when a run made by Python 3.12 had the code id of Python 3.12, in its parts too."""
    parsed = read_experiment(str(experiment))
    ids = [cell.id for cell in make_plan(parsed, "").cells]
    with monkeypatch.context() as patch:
        # What such a version made: the second id of each code first, and no other.
        patch.setattr("harness.comparison.plan.code_ids", lambda kind: code_ids(kind)[1:2])
        patch.setattr("methods.concat.code_ids", lambda kind: code_ids(kind)[1:2])
        older = [cell.id for cell in make_plan(parsed, "").cells]
    assert not set(ids) & set(older)
    (experiment.parent / "work/runs" / older[1]).mkdir(parents=True)
    found = [cell.id for cell in make_plan(parsed, "", experiment.parent / "work").cells]
    assert found == [ids[0], older[1]]


def test_a_newer_schema_is_one_clear_line(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment.write_text(EXPERIMENT.replace("schema = 1", "schema = 9"))
    with pytest.raises(InputError, match=r"small.toml: schema 9 is not known; this version of the harness reads 1 to"):
        read_experiment(str(experiment))


def test_migrations_go_step_by_step() -> None:
    schema = Schema("v", 3, {1: lambda t: {**t, "b": t["a"] + 1}, 2: lambda t: {"c": t["b"] * 10}})
    assert schema.migrated({"a": 1}, "f") == {"c": 20, "v": 3}
    assert schema.migrated({"v": 2, "b": 5}, "f") == {"c": 50, "v": 3}
    assert schema.migrated({"v": 3, "c": 7}, "f") == {"v": 3, "c": 7}
    for wrong in (0, 4, "1"):
        with pytest.raises(InputError, match="f: v"):
            schema.migrated({"v": wrong}, "f")


def test_records_of_schema_1_are_read() -> None:
    text = next((FROZEN / "work/runs").glob("*/record.json")).read_text()
    old = json.loads(text)
    assert old["schema_version"] == 1
    record = Record.model_validate_json(text)
    assert record.schema_version == RECORD.version
    assert record.evaluation == old["evaluation"] != {}
    assert Record.model_validate(old | {"evaluation": "abc"}).evaluation == {}  # as the first records had it
    with pytest.raises(InputError, match="schema_version 99 is not known"):
        Record.model_validate(old | {"schema_version": 99})


def test_compare_says_what_a_change_of_code_costs(
    experiment: Path, versions: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import main

    argv = ["compare", str(experiment), "--workdir", "work", "--no-tracking", "--quiet", "--format", "csv"]
    assert main(argv) == 0
    assert "other code" not in capsys.readouterr().out
    versions(nt_xent=2)
    assert main([*argv, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "made by other code than today's: simcse, concat: 2 of 2 runs are made again" in told
    assert "nothing is deleted" in told
    assert main([*argv, "--dry-run", "--set", "max_steps=3"]) == 0  # another budget, not another code
    assert "other code" not in capsys.readouterr().out
    assert main(argv) == 0
    assert "made by other code" in capsys.readouterr().out
    assert len(list(Path("work/runs").glob("*/record.json"))) == 4
    assert main(argv) == 0
    assert "made by other code" not in capsys.readouterr().out


def test_the_cost_is_told_for_runs_of_the_first_schema_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import main

    shutil.copytree(FROZEN, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    versions(scd_losses=2)
    argv = ["compare", "frozen.toml", "--workdir", "work", "--no-tracking", "--quiet", "--dry-run"]
    assert main(argv) == 0
    assert "made by other code than today's: SCD: 2 of 16 runs are made again" in capsys.readouterr().out


def test_ids_are_computed_without_the_slow_libraries() -> None:
    code = "import sys, harness.identity.code, harness.identity.review; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_ledgers_are_installed_with_their_packages() -> None:
    for package in PACKAGES:
        ledger = ledger_of(REPOSITORY / package)
        assert ledger is not None
        assert ledger.packages <= set(PACKAGES)
