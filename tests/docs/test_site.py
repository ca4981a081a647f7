"""The site: every page is in its contents, and Sphinx builds it without a warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import site
from harness import registry
from methods.simcse import SimCSE
from tests.support.errors import raises_input_error


def test_every_page_is_in_the_contents_and_every_method_that_can_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = {f"docs/methods/{name}.md" for name in registry.names(registry.METHODS)}
    gone = type("Gone", (SimCSE,), {"__module__": "no_such_module", "name": "gone"})
    monkeypatch.setitem(registry._added, registry.METHODS.entry_points, {"gone": gone})
    without = site.collect(tmp_path)
    assert list(without) == ["gone"]
    assert "no_such_module" in without["gone"]
    pages = {
        str(file.relative_to(tmp_path)): file.read_text(encoding="utf-8")
        for file in tmp_path.rglob("*.md")
    }
    contents = "".join(re.findall(r"```{toctree}.*?```", "".join(pages.values()), re.DOTALL))
    listed = {Path(line).name for line in contents.splitlines()}
    assert {Path(page).stem for page in pages} - listed - {"index"} == set()
    assert sound <= set(pages)
    assert "docs/methods/gone.md" not in pages
    assert "harness verdict" in pages["docs/commands.md"]
    assert "self_contrast" in pages["docs/methods/scd.md"], "the equation is in the loss"


def test_a_page_that_is_not_utf_8_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "docs" / "bad.md"
    page.parent.mkdir()
    page.write_bytes(b"# Title\n\nCaf\xe9\n")
    monkeypatch.setattr(site, "REPOSITORY", tmp_path)
    with raises_input_error(file=page, line=3):
        site.collect(tmp_path / "site")
    assert site.main([str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(page) in line


@pytest.mark.campaign
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    assert site.build(tmp_path / "site") == 0
    page = (tmp_path / "site" / "docs" / "methods" / "scd.html").read_text(encoding="utf-8")
    assert "L_C = sum_j" in page
    assert not re.search(r'(src|href)="https?://[^"]+\.(js|css|woff2?)', page), "nothing is fetched"
