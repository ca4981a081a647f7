"""What counts as a change of code: mutations of real modules, held against the ledgers."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.identity import __main__ as command
from harness.identity.ledger import kept_ledgers
from harness.identity.review import Review

PACKAGES = ("harness", "methods")


def test_no_numerical_code_has_changed_without_a_word() -> None:
    """When this fails, `python -m harness.identity` says what to do."""
    faults = Review(kept_ledgers()).faults()
    assert not faults, "\n".join([*faults, command.ADVICE])


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


def test_a_module_in_several_parts_moves_too(copies: Path) -> None:
    (copies / "harness/tasks/sts.py").rename(copies / "harness/tasks/similarity.py")
    for file in (copies / "harness").rglob("*.py"):
        file.write_text(file.read_text().replace("harness.tasks.sts", "harness.tasks.similarity"))
    assert review(copies).follow()["harness.tasks.sts:DevSet"] == "harness.tasks.similarity:DevSet"
    assert review(copies).faults() == []


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
