"""Bars in a notebook: escaped, bounded, drawn into one output; and nothing of them where no kernel
runs.
"""

from __future__ import annotations

import subprocess
import sys

from harness.machine import progress
from harness.machine.progress import LINES, Bars, Reporter, in_notebook


def test_no_notebook_no_bars() -> None:
    assert not in_notebook()
    assert Reporter.of_caller().quiet


def test_what_is_drawn_names_the_last_runs_and_the_current_one(monkeypatch) -> None:
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    bars = Bars(9, "all runs")
    bars.show_whole("all runs, 2 min left", 7)
    bars.show_run("SimCSE <b>: loss 0.1", 3, 24)
    for number in range(7):
        bars.print(f"[{number + 1}/9] row {number}: finished")
    html = bars._repr_html_()
    assert "<b>" not in html
    assert "SimCSE &lt;b&gt;" in html
    assert "2 min left" in html
    assert "/24" in html
    assert html.count("finished") == LINES
    assert "row 1:" not in html


def test_a_kernel_shows_bars_without_being_asked() -> None:
    """In IPython with a kernel's shell, one output is shown and replaced."""
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
    reporter.finish_run("finished")
print(len(seen), "all runs" in seen[-1], "1/2" in seen[-1], "[1/2] first: finished" in seen[-1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split()[1:] == ["True", "True", "True"], done.stderr + done.stdout
