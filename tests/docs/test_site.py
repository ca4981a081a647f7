"""The site: every page is in its contents, links turn into the site's own, and Sphinx finds nothing to warn of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs import site
from harness import registry


def sources(folder: Path) -> dict[str, str]:
    site.gathered(folder)
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8") for file in folder.rglob("*.md")}


def test_every_page_is_in_the_contents_and_every_method_has_one(tmp_path: Path) -> None:
    pages = sources(tmp_path / "source")
    contents = "".join(re.findall(r"```{toctree}.*?```", "".join(pages.values()), re.DOTALL))
    listed = {Path(line).name for line in contents.splitlines()}
    assert {Path(page).stem for page in pages} - listed - {"index"} == set()
    assert {f"methods/{name}.md" for name in registry.names(registry.METHODS)} <= set(pages)
    assert "harness verdict" in pages["commands.md"]
    assert "self_contrast" in pages["methods/scd.md"], "the equation stands in the loss"


def test_links_lead_to_pages_of_the_site(tmp_path: Path) -> None:
    pages = sources(tmp_path / "source")
    for page, text in pages.items():
        for target in re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s#]+)", text):
            if not target.startswith("https://"):
                assert (tmp_path / "source" / page).parent.joinpath(target).resolve().exists(), (page, target)


@pytest.mark.campaign
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    assert site.build(tmp_path / "site") == 0
    page = (tmp_path / "site" / "methods" / "scd.html").read_text(encoding="utf-8")
    assert "L_C = sum_j" in page
    assert not re.search(r'(src|href)="https?://[^"]+\.(js|css|woff2?)', page), "nothing is fetched"
