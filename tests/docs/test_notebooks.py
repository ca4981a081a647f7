"""The notebooks do what they say: their code is of today, their kept outputs are small, and they
run.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import harness
from docs.notebook_pages import NOTEBOOKS, code_cells, executed, results
from harness.api.result import Comparison
from harness.api.studies import StudyResult
from harness.method import Method

NAMES = sorted(file.stem for file in NOTEBOOKS.glob("*.ipynb"))
SHORTER = {
    '"demo", workdir="work"': """"demo", workdir="work",
        overrides=["seeds=[1, 2]", "max_steps=2", "suites=['embedded']"]""",
    '"trials": 4': '"trials": 2',
    '"steps": 12': '"steps": 2',
    '"max_steps": 24': '"max_steps": 2',
    '"seeds": [1, 2, 3]': '"seeds": [1, 2]',
    'default=True), workdir="work"': 'default=True), workdir="work", overrides=["seeds=[1]"]',
}
KINDS = {"found": Comparison, "confirmed": Comparison, "search": StudyResult, "method": Method}


def shorter(code: str) -> str:
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    return code


@pytest.mark.parametrize("name", NAMES)
def test_the_code_names_what_is_there(name: str) -> None:
    for code in code_cells(name):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                of = node.value.id
                if of == "h":
                    assert hasattr(harness, node.attr), node.attr
                elif of in KINDS:
                    assert (
                        hasattr(KINDS[of], node.attr) or node.attr in KINDS[of].__annotations__
                    ), (of, node.attr)


@pytest.mark.parametrize("name", NAMES)
def test_kept_outputs_are_results_and_small(name: str) -> None:
    file = NOTEBOOKS / f"{name}.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    assert file.stat().st_size < 200_000
    assert all(
        cell["outputs"] == results(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"
    )
    assert all(cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
    assert "/home/" not in file.read_text(encoding="utf-8")


def test_all_that_is_cut_short_stands_in_a_notebook() -> None:
    whole = "".join(code for name in NAMES for code in code_cells(name))
    assert [long for long in SHORTER if long not in whole] == []


@pytest.mark.campaign
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a kernel has its own, which shows pictures
    ran = executed(name, tmp_path, timeout=600, shorter=shorter)
    shown = [results(cell.outputs) for cell in ran.cells if cell.cell_type == "code"]
    kinds = [kind for outputs in shown for output in outputs for kind in output["data"]]
    assert kinds.count("image/png") >= 2
    assert kinds.count("text/html") >= 2
    assert (tmp_path / "work" / "reports").is_dir()
