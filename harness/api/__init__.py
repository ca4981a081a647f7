"""The harness from Python: the functions behind the commands of the same names.

    import harness

    found = harness.compare("demo", workdir="work/demo", progress=harness.Reporter())
    found.table("embedded")
    found.plot("alignment-uniformity")
    found.verdict("SimCSE", "SCD")
    harness.evaluate("sentence-transformers/all-MiniLM-L6-v2", "sts", source="mteb").scores()
    method = harness.train("simcse", preset="mini", out="models/simcse")
    vectors = harness.load_model("models/simcse").encode(["A sentence."])

Nothing here prints: progress goes to the `Reporter` that is given, or into the output of a
notebook's cell. Errors are raised (`harness.errors`).
"""

from harness.api.archive import pack
from harness.api.experiments import compare
from harness.api.explain import why
from harness.api.methods import loss, register, train
from harness.api.models import evaluate, load_model, sensitivity
from harness.api.result import Comparison, load
from harness.api.studies import study
from harness.evaluation.model_scores import Scores
from harness.machine.progress import Reporter
from harness.results.answer import Answer
from harness.runs.experiment import Experiment
from harness.runs.selection import Budget
from harness.runs.until import Until
from reports.build import build_report as report
from reports.decide.examples_answer import examples
from reports.decide.gate_answer import gate
from reports.decide.power_answer import power
from reports.decide.verdict_answer import verdict

__all__ = [
    "Answer",
    "Budget",
    "Comparison",
    "Experiment",
    "Reporter",
    "Scores",
    "Until",
    "compare",
    "evaluate",
    "examples",
    "gate",
    "load",
    "load_model",
    "loss",
    "pack",
    "power",
    "register",
    "report",
    "sensitivity",
    "study",
    "train",
    "verdict",
    "why",
]
