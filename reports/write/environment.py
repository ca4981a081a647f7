"""The templates of pages and files, and how a text from data gets into them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from reports.document.blocks import slug

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment

TEMPLATES = Path(__file__).parent / "templates"


def environment(escape: Callable[[str], str], **options: Any) -> Environment:
    """Templates in which `escape` is applied to every text, but for what is marked as markup
    already.

    Args:
        options: of jinja2's `Environment`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701 - the formats other than HTML have an escape of their own
        loader=FileSystemLoader(TEMPLATES),
        bytecode_cache=_compile_templates(),
        undefined=StrictUndefined,
        finalize=lambda value: escape(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        **options,
    )
    made.filters.update(kind=lambda block: type(block).__name__, slug=slug)
    return made


@cache
def _compile_templates() -> BytecodeCache:
    """Return the store of this process's templates: compiling one takes longer than filling it."""
    from jinja2.bccache import Bucket, BytecodeCache

    codes: dict[tuple[str, str], CodeType] = {}

    class Compiled(BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            bucket.code = codes.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket: Bucket) -> None:
            if bucket.code is not None:
                codes[bucket.key, bucket.checksum] = bucket.code

    return Compiled()
