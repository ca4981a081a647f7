"""The page of what runs now: scores so far and one self-contained page, for `harness.live`."""

from reports.live.page import page as page
from reports.live.scores import scores as scores
