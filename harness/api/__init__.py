"""The harness from Python: what a notebook calls, and what stands behind the commands of the same names.

    import harness

    found = harness.compare("demo", workdir="work/demo", progress=harness.Reporter())
    found.table("sts"), found.plot("alignment-uniformity"), found.verdict("SimCSE", "SCD"), found.scores()
    harness.evaluate("sentence-transformers/all-MiniLM-L6-v2", "sts", source="mteb").scores()
    method = harness.train("simcse", preset="mini", out="models/simcse")
    vectors = harness.load_model("models/simcse").encode(["A sentence."])

Nothing here prints: progress goes to the `Reporter` that is given, or into the output of a notebook's cell. Errors are
raised (`harness.errors`).
"""

from harness.api.on_experiments import compare, study
from harness.api.on_methods import register, train
from harness.api.on_models import encode, evaluate
from harness.comparison.comparison_result import Comparison
from harness.comparison.experiment import Experiment
from harness.comparison.tuning import Budget
from harness.comparison.until import Until
from harness.evaluation.model_scores import Scores
from harness.machine.progress import Reporter
from harness.reading import load, load_model, power, report, verdict
from harness.results.answer import Answer
from harness.results.study_result import StudyResult

__all__ = [
    "Answer", "Budget", "Comparison", "Experiment", "Reporter", "Scores", "StudyResult", "Until",
    "compare", "encode", "evaluate", "load", "load_model", "power", "register", "report", "study", "train", "verdict",
]  # fmt: skip
