"""The site: every page is in its contents, and Sphinx builds it without a warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import site
from harness import registry


def test_every_page_is_in_the_contents_and_every_method_has_one(tmp_path: Path) -> None:
    site.collect(tmp_path)
    pages = {
        str(file.relative_to(tmp_path)): file.read_text(encoding="utf-8")
        for file in tmp_path.rglob("*.md")
    }
    contents = "".join(re.findall(r"```{toctree}.*?```", "".join(pages.values()), re.DOTALL))
    listed = {Path(line).name for line in contents.splitlines()}
    assert {Path(page).stem for page in pages} - listed - {"index"} == set()
    assert {f"docs/methods/{name}.md" for name in registry.names(registry.METHODS)} <= set(pages)
    assert "harness verdict" in pages["docs/commands.md"]
    assert "self_contrast" in pages["docs/methods/scd.md"], "the equation is in the loss"


@pytest.mark.campaign
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    assert site.build(tmp_path / "site") == 0
    page = (tmp_path / "site" / "docs" / "methods" / "scd.html").read_text(encoding="utf-8")
    assert "L_C = sum_j" in page
    assert not re.search(r'(src|href)="https?://[^"]+\.(js|css|woff2?)', page), "nothing is fetched"
