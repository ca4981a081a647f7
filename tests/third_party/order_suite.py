"""What a reader of the table should know."""

from harness.tasks.suite import Suite

SUITE = Suite(
    ("word-order",),
    "sentences and their words shuffled, distinguished",
    metric="accuracy",
    chance=0.5,
)
