"""docs/why.md has the answers and the campaign that are saved."""

from __future__ import annotations

from tools.why_pages import PAGE, write_page


def test_the_page_is_what_is_saved() -> None:
    text = PAGE.read_text("utf-8")
    assert write_page(text) == text
