"""A drop-in for scripts written for SentEval, SimCSE's `evaluation.py` among them:
`from harness import senteval`.

    se = senteval.engine.SE(params, batcher, prepare)
    results = se.eval(["STS12", "STSBenchmark", "MR"])

What is the same, and what is more, is in `harness.tasks.senteval.engine`.
"""

from harness.senteval import utils
from harness.tasks.senteval.engine import SE, TASKS, Params, engine

__all__ = ["SE", "TASKS", "Params", "engine", "utils"]
