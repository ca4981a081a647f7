"""The registry of plugins: lazy, and one clear line for a name that is unknown, taken twice, or of
the wrong kind.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import registry
from harness.cli import main
from harness.commands.list import find_plugins
from harness.tasks import catalogue
from methods.pooling import PoolingMethod
from tests.support.errors import raises_input_error

Install = Callable[..., None]


def forget() -> None:
    registry._read_entry_points.cache_clear()
    catalogue.offers.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(package, source, "GROUP NAME = VALUE", ...)`: a package of one module, as pip would
    leave it.
    """
    monkeypatch.syspath_prepend(tmp_path)

    def installed(package: str, source: str, *points: str) -> None:
        (tmp_path / f"{package}.py").write_text(source)
        about = tmp_path / f"{package}-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        groups: dict[str, list[str]] = {}
        for point in points:
            group, _, line = point.partition(" ")
            groups.setdefault(group, []).append(line)
        text = "".join(f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in groups.items())
        (about / "entry_points.txt").write_text(text)
        forget()

    yield installed
    monkeypatch.undo()
    forget()


def fault(group: registry.Group, name: str) -> str:
    with raises_input_error() as error:
        registry.load(group, name)
    return str(error.value)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    assert fault(registry.METHODS, "simsce").startswith(
        'unknown method "simsce" (did you mean "simcse"?); known: '
    )


def test_two_packages_with_one_name_are_both_named_when_it_is_used(install: Install) -> None:
    install("theirs_reg", "SimCSE = None\n", "harness.methods simcse = theirs_reg:SimCSE")
    assert "simcse" in registry.names(registry.METHODS)
    said = fault(registry.METHODS, "simcse")
    assert 'method "simcse" comes from several packages' in said
    assert "theirs_reg 1.5, theirs_reg:SimCSE" in said
    assert "sentence-harness" in said
    assert registry.load(registry.METHODS, "scd").name == "scd"  # what does not collide goes on


@pytest.mark.parametrize(
    ("group", "value", "expected"),
    [
        ("harness.methods", "dict", "a subclass of harness.method.Method"),
        ("harness.methods", "1", "a subclass of harness.method.Method"),
        ("harness.suites", "('sts',)", "a harness.tasks.suite.Suite"),
        ("harness.tasks", "'STS12'", "something callable that gives a task"),
        ("harness.presets", "'folder'", "a folder (pathlib.Path)"),
    ],
)
def test_a_plugin_of_the_wrong_kind_is_told_with_package_and_entry_point(
    install: Install, group: str, value: str, expected: str
) -> None:
    install("wrong_reg", f"PLUGIN = {value}\n", f"{group} wrong_one = wrong_reg:PLUGIN")
    sys.modules.pop("wrong_reg", None)
    said = fault(next(g for g in registry.GROUPS if g.entry_points == group), "wrong_one")
    assert '"wrong_one" (wrong_reg 1.5, wrong_reg:PLUGIN): expected ' + expected in said


def test_whatever_a_module_raises_on_import_is_one_line(install: Install) -> None:
    install(
        "raises_reg",
        "raise RuntimeError('no licence\\nfound')\n",
        "harness.methods raising = raises_reg:X",
    )
    assert fault(registry.METHODS, "raising").endswith(
        "cannot be imported: RuntimeError: no licence"
    )


TASK = """
class Mine:
    name, suite, source, sha256 = NAME, "mine", "mine", "0"
    def texts(self): return []
    def evaluate(self, vectors, *, pooling): raise NotImplementedError
"""


def test_a_task_of_another_package_is_found_by_name_and_by_its_suite(install: Install) -> None:
    suite = "from harness.tasks.suite import Suite\nSUITE = Suite(('mine_reg', 'STS12'), 'mine')\n"
    install(
        "tasks_reg",
        suite + TASK.replace("NAME", "'mine_reg'"),
        "harness.tasks mine_reg = tasks_reg:Mine",
        "harness.suites suite_reg = tasks_reg:SUITE",
    )
    assert [task.name for task in catalogue.resolve_tasks(["suite_reg", "mine_reg"])] == [
        "mine_reg",
        "STS12",
    ]
    assert catalogue.tasks_of("suite_reg") == ("mine_reg", "STS12")
    with raises_input_error(key="mine_rex"):
        catalogue.resolve_tasks(["mine_rex"])


def test_a_task_under_a_name_of_ours_is_an_error_where_that_name_is_used(install: Install) -> None:
    install("clash_reg", TASK.replace("NAME", "'STS12'"), "harness.tasks STS12 = clash_reg:Mine")
    assert [task.name for task in catalogue.resolve_tasks(["STS13"])] == ["STS13"]
    with raises_input_error(key="STS12"):
        catalogue.resolve_tasks(["sts"])
    faults = {
        (plugin.package, plugin.name): plugin.fault for plugin in find_plugins() if plugin.fault
    }
    assert set(faults) == {("clash_reg", "STS12"), ("sentence-harness", "sts")}


def test_a_task_may_bear_the_name_of_a_family_which_is_no_task(install: Install) -> None:
    install(
        "family_reg", TASK.replace("NAME", "'layers'"), "harness.tasks layers = family_reg:Mine"
    )
    names = [task.name for task in catalogue.resolve_tasks(["layers:STS-B"])]
    assert names == ["layers:STS-B"]
    assert not [plugin.fault for plugin in find_plugins() if plugin.fault]


@pytest.mark.parametrize("source", [TASK.replace("NAME", "'other'"), "Mine = dict\n"])
def test_a_factory_that_gives_no_such_task_is_told(install: Install, source: str) -> None:
    install("faulty_reg", source, "harness.tasks faulty_one = faulty_reg:Mine")
    sys.modules.pop("faulty_reg", None)
    with raises_input_error(key="faulty_one"):
        catalogue.resolve_tasks(["faulty_one"])


def test_plugins_are_listed_with_package_version_and_faults(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("listed_reg", "X = 1\n", "harness.methods not_a_method = listed_reg:X")
    assert main(["list", "plugins"]) == 1  # some of them cannot be used
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if "not_a_method" in line)
    assert "harness.methods not_a_method (listed_reg 1.5)" in line
    assert "UNUSABLE: " in line
    (ours,) = (line for line in lines if "harness.suites sts " in line)
    assert "harness.tasks.sts:SUITE" in ours
    assert "UNUSABLE" not in ours


def test_listing_tasks_and_suites_imports_nothing_slow() -> None:
    code = (
        "import sys; from harness.cli import main; main(['list', 'tasks']); main(['list', 'suites'])\n"
        "slow = {'torch', 'mteb', 'sklearn', 'transformers', 'datasets', 'pandas', 'matplotlib', 'optuna'}\n"
        "print(sorted(slow & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "STS12" in done.stdout


@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_method_that_a_test_registers_is_unknown_to_the_next(turn: str) -> None:
    """Else the functions that later tests replace would count as changed by a plugin."""
    assert not registry.names_of_process(registry.METHODS)
    registry.add(registry.METHODS, "mine", type("Mine", (PoolingMethod,), {"name": "mine"}))
    assert registry.uses_plugins()
