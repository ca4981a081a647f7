"""`python -m harness`: the `harness` command, also for launchers that start a module in several processes."""

import sys

from harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
