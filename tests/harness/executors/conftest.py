"""The table that every executor has to come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import tables_of_executors as tables


@pytest.fixture(scope="package")
def of_serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One run after the other in this process, at one thread."""
    folder: Path = tmp_path_factory.mktemp("serial")
    with tables.one_thread():
        table = tables.table_of(folder / "work", {"name": "serial"}, folder / "updates")
    assert tables.updates(folder / "updates") == tables.UPDATES
    return table
