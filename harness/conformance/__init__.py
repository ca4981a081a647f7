"""What every method promises, each promise a check: used by `harness.testing` and
`harness check-method`.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.conformance import declared, encoding, learning
from harness.conformance.subject import BrokenPromiseError, Check, NotRunError, Subject
from harness.method import own_line

__all__ = ["CHECKS", "Check", "Subject", "run_check"]

# In the order in which they are run and shown.
CHECKS: dict[str, Callable[[Subject], str]] = {
    "configuration": declared.configuration,
    "presets and sweeps are valid": declared.presets_and_sweeps,
    "card is complete": declared.card,
    "before fit": declared.before_fit,
    "wrong corpus is refused": declared.wrong_corpus,
    "fit returns self": encoding.fit,
    "shape and dtype": encoding.shapes,
    "vectors are repeatable": encoding.repeatable,
    "odd text": encoding.odd_text,
    "save and load": encoding.save_and_load,
    "SentenceTransformer reads it": encoding.sentence_transformer,
    "seeds": learning.seeds,
    "a step lowers the loss": learning.descent,
    "each parameter is trained once": learning.trains_once,
    "small batch, bfloat16": learning.small_batch,
    "heads are dropped": learning.drops_heads,
    "resumes after a kill": learning.resume,
}


def run_check(name: str, subject: Subject) -> Check:
    """The outcome of one check; whatever it raises is a failure with its reason."""
    check = CHECKS[name]
    if check in learning.OF_TRAINED and not subject.trained:
        return Check(name, True, "does not apply: not trained in steps")
    try:
        return Check(name, True, check(subject))
    except NotRunError as error:
        return Check(name, False, str(error))
    except Exception as error:
        if isinstance(error, BrokenPromiseError):
            kind = ""
        else:
            kind = f"{type(error).__name__}: "
        return Check(
            name,
            False,
            f"{kind}{' '.join(str(error).split())}{own_line(error, subject.method)}",
        )
