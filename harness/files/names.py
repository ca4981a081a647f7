"""Names that become files and folders: one rule for all, so that none leads out of where it belongs."""

from __future__ import annotations

import re

from harness.files.printable import one_line

LONGEST = 100  # bytes: a file system's 255, with room for what is put around a name
_NAME = re.compile(r"[^\W_]([\w .,+()=-]*[\w)+])?")


def name_fault(name: str) -> str | None:
    """What keeps `name` from becoming the name of a file, as one phrase; None where nothing does.

    Letters and digits of any script, blanks inside and the signs . _ - , + = ( ) are allowed.
    """
    if not name.strip():
        return "a name is needed, not an empty text"
    if (size := len(name.encode(errors="replace"))) > LONGEST:
        return f'a name is at most {LONGEST} bytes long, not {size}: "{one_line(name)[:40]}..."'
    if not _NAME.fullmatch(name):
        return (
            "becomes the name of a file, so it begins with a letter or digit and holds letters, digits, blanks and "
            f'. _ - , + = ( ) alone, not "{one_line(name)}"'
        )
    return None
