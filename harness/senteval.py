"""A drop-in for scripts written for SentEval: `from harness.senteval import engine; engine.SE(...).eval(tasks)`."""

from harness.tasks.senteval.engine import SE, TASKS, Params, engine

__all__ = ["SE", "TASKS", "Params", "engine"]
