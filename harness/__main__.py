"""`python -m harness`: the `harness` command, also for launchers that start a module in several
processes.
"""

import os
import sys

# `-m` puts the folder that one stands in before all else, where a file of it would hide an
# installed module.
if sys.path[:1] in ([""], [os.getcwd()]):
    sys.path.append(sys.path.pop(0))

from harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
