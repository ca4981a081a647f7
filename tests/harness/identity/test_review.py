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


def edit(folder: Path, old: str, new: str) -> Path:
    """Replace a line of the packages, wherever it stands; the file that had it."""
    found = [f for package in PACKAGES for f in sorted((folder / package).rglob("*.py")) if old in f.read_text()]
    assert len(found) == 1, f'"{old}" stands in {len(found)} files; give this test another line'
    found[0].write_text(found[0].read_text().replace(old, new, 1))
    return found[0]


CHANGES = {
    "a constant of an objective": ("dim=-1, eps=1e-8", "dim=-1, eps=1e-6"),
    "an objective": (
        "def nt_xent_symmetric(a: Tensor, b: Tensor, *, temperature: float)",
        "def nt_xent_symmetric(a: Tensor, b: Tensor, *, temperature: float = 1)",
    ),
    "a default of an option": (
        'option(0.05, "divides the similarities", gt=0, sweep=(0.001',
        'option(0.06, "divides the similarities", gt=0, sweep=(0.001',
    ),
    "a preset": (
        'ROBERTA = {"batch_size": 512, "learning_rate": 1e-5}',
        'ROBERTA = {"batch_size": 512, "learning_rate": 1e-3}',
    ),
    "the tokenisation": (
        "truncation=True,\n            max_length=limit",
        "truncation=False,\n            max_length=limit",
    ),
    "a library's function": ("functional.normalize(x, dim=-1", "torch.layer_norm(x, dim=-1"),
    "what is called of another module": ("return nt_xent(z_a, z_b, temperature", "return cross(z_a, z_b, temperature"),
    "a score": ("x - x.mean(), y - y.mean()", "x - x.mean(), y"),
    "the order of the training loop": (
        "self.scaler.step(self.optimizer)\n        self.scaler.update()",
        "self.scaler.update()\n        self.scaler.step(self.optimizer)",
    ),
}
WORDS = {
    "a docstring": ("How evenly vectors use", "How well vectors use"),
    "a comment": (
        "    logits = (x @ x.T / temperature).masked",
        "    # of all\n    logits = (x @ x.T / temperature).masked",
    ),
    "layout": ('        heads = nn.ModuleDict({"mlp"', '        heads = nn.ModuleDict(\n            {"mlp"'),
    "an error text": ("expected two (n, d) tensors of one shape", "wanted two (n, d) tensors of one shape"),
    "a type": ("def unit(x: Tensor) -> Tensor", "def unit(x: 'Tensor') -> object"),
    "a help text": ('"divides the similarities", gt=0, sweep=(0.001', '"divides them", gt=0, sweep=(0.001'),
    "a range that studies sweep": ("sweep=(0.001, 1.0), log=True)\n    similarity", "log=True)\n    similarity"),
    "a model card": ('cost="one epoch, both views in one forward (with MLM', 'cost="an epoch (with MLM'),
    "an import of a type": (
        "if TYPE_CHECKING:\n    from collections.abc import Sequence\n\n    from torch import Tensor, nn\n",
        "if TYPE_CHECKING:\n    from torch import Tensor, nn\n",
    ),
    "a module without numbers": ('exit code 2)."""\n\n    exit_code = 2', 'exit code 3)."""\n\n    exit_code = 3'),
    "where an import stands": ("\n\nclass SCD(", "\nimport math\n\n\nclass SCD("),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_numbers_is_noticed(whole: Path, change: str) -> None:
    old, new = CHANGES[change]
    file = edit(whole, old, new)
    mutated = review(whole)
    module = ".".join(file.relative_to(whole).with_suffix("").parts)
    listed = {key: hash_ for part in mutated.parts.by_name.values() for key, hash_ in part.code.items()
              if key.partition(":")[0] == module}  # fmt: skip
    noticed = [key for key, hash_ in listed.items() if mutated.form(key).hash != hash_]
    edit(whole, new, old)
    assert len(noticed) == 1


def test_words_and_types_change_nothing(copies: Path) -> None:
    for old, new in WORDS.values():
        edit(copies, old, new)
    assert review(copies).faults() == []


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
    for file in copies.rglob("*.py"):
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
    edit(copies, *CHANGES["an objective"])
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
    edit(copies, *reversed(CHANGES["an objective"]))  # back again
    review(copies).enter(["methods.nt_xent_symmetric"], because="merged two lines", bump=False)
    assert review(copies).parts.by_name["methods.nt_xent_symmetric"].version == 2
    assert "no effect: merged two lines" in (copies / "methods/ledger.toml").read_text()


def test_the_command_says_what_has_changed_and_what_to_do(
    copies: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "kept_ledgers", lambda: [copies / package for package in PACKAGES])
    assert command.main([]) == 0
    edit(copies, *CHANGES["a default of an option"])
    assert command.main(["check"]) == 1
    told = capsys.readouterr().out
    assert "methods.simcse: methods.simcse has changed" in told
    assert "no-effect PART --because" in told
    assert command.main(["bump", "methods.simcse", "--because", "the paper's temperature"]) == 0
    told = capsys.readouterr().out
    assert "methods.mixcse" in told  # which is a SimCSE
    assert command.main(["bump", "methods.simcsee", "--because", "x"]) == 2
