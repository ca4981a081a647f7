"""Limits of files and disks are one line, also in errors of libraries; what is no file is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.files.atomic import refusal, settle, storage_fault

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EMFILE, errno.ENFILE)


@pytest.mark.parametrize("code", CODES)
def test_a_limit_is_one_line_however_it_is_reported(code: int) -> None:
    own = OSError(code, os.strerror(code), "file")
    of_library = RuntimeError(f"Error while writing: {os.strerror(code)} (os error {code})")
    for error in (own, of_library):
        fault = storage_fault(error)
        assert fault is not None
        line = refusal(fault)
        assert line is not None
        assert "\n" not in line


def test_an_error_of_another_kind_is_none() -> None:
    assert storage_fault(OSError(errno.ENOENT, "no such file", "file")) is None
    assert storage_fault(ValueError("why")) is None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["pipe", "device", "link to nothing"])
def test_a_model_that_holds_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "part").mkdir()
    odd = tmp_path / "part" / "odd"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to("/dev/zero" if kind == "device" else "absent")
    with pytest.raises(InputError) as refused:
        settle(tmp_path)
    assert refused.value.file == str(odd)
