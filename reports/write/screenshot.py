"""A picture of the top of a report's page, wide: `python -m reports.write.screenshot REPORT.html OUT.png`."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.errors import HarnessError, InputError, RunError
from harness.files.printable import tell_error

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# No sandbox: containers forbid the kernel's; the page is our own and its policy lets no script in but ours.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
    "--force-color-profile=srgb",
)  # fmt: skip


def browser() -> str | None:
    """The path of a Chromium on PATH."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def picture(page: Path, out: Path, *, width: int = 1180, height: int = 1500, dark: bool = False) -> None:
    """Write the top of a page, `width` x `height` CSS pixels, as PNG.

    Raises:
        InputError: no such page, or no browser.
        RunError: the browser gives no picture.
    """
    program = browser()
    if program is None:
        raise InputError(f"no browser found ({', '.join(_NAMES[:3])}); install one, as Debian's chromium")
    if not page.is_file():
        raise InputError(f"{page}: no such file; build the report first")
    out.parent.mkdir(parents=True, exist_ok=True)
    address = f"{page.resolve().as_uri()}?theme={'dark' if dark else 'light'}"
    with tempfile.TemporaryDirectory(prefix="picture-") as profile:
        made = Path(profile) / "picture.png"
        size = ["--force-device-scale-factor=1", f"--window-size={width},{height}"]
        command = [program, *FLAGS, f"--user-data-dir={profile}", f"--screenshot={made}", *size, address]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            raise RunError(f"{program}: no picture after 180 s") from None
        if not made.is_file():
            raise RunError(f"{program}: no picture (exit code {done.returncode})")
        shutil.copyfile(made, out)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m reports.write.screenshot", description="A picture of a report's page."
    )
    parser.add_argument("page", type=Path, metavar="REPORT.html")
    parser.add_argument("out", type=Path, metavar="OUT.png")
    parser.add_argument("--width", type=int, default=1180, help="CSS pixels (default: %(default)s)")
    parser.add_argument("--height", type=int, default=1500, help="CSS pixels (default: %(default)s)")
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args(argv)
    try:
        picture(args.page, args.out, width=args.width, height=args.height, dark=args.dark)
    except HarnessError as error:
        tell_error(f"picture: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
