"""Bars in a notebook: escaped, bounded, drawn into one output; and nothing of them where no kernel runs."""

from __future__ import annotations

import subprocess
import sys

from harness.machine.progress import Reporter
from harness.machine.progress_views import KEPT, Notebook, in_notebook, view


def test_no_notebook_no_bars() -> None:
    assert not in_notebook()
    assert view(3) is None
    assert Reporter.of_caller().quiet


def test_what_is_drawn_names_the_last_cells_and_the_one_in_work() -> None:
    drawn = Notebook(9)
    drawn.whole("all cells, 2 min left", 7)
    drawn.cell("SimCSE <b>: loss 0.1", 3, 24)
    for number in range(7):
        drawn.line(f"[{number + 1}/9] row {number}: finished")
    html = drawn._repr_html_()
    assert "<b>" not in html
    assert "SimCSE &lt;b&gt;" in html
    assert 'value="3" max="24"' in html
    assert 'value="7" max="9"' in html
    assert html.count("finished") == KEPT
    assert "2 more before" in html
    drawn.end()
    assert "SimCSE" not in drawn._repr_html_()


def test_a_kernel_shows_bars_without_being_asked() -> None:
    """In IPython with a kernel's shell, one output is shown and drawn anew."""
    code = """
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.display import DisplayHandle
import IPython.display, sys
shell = ZMQInteractiveShell.instance()
shell.kernel = object() if not hasattr(shell, "kernel") else shell.kernel
seen = []
class Handle:
    def update(self, shown): seen.append(shown._repr_html_())
IPython.display.display = lambda shown, display_id: (seen.append(shown._repr_html_()), Handle())[1]
from harness.machine.progress import Reporter
with Reporter.of_caller() as reporter:
    reporter.expect(2)
    reporter.start("first")
    reporter.done("finished")
print(len(seen), "1 of 2 all cells" in seen[-1], "[1/2] first: finished" in seen[-1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split()[1:] == ["True", "True"], done.stderr
