"""What each paper evaluates, under its own protocol, as a suite (entry points `harness.suites`)."""

from __future__ import annotations

from harness.tasks import efficiency, layers, sts
from harness.tasks.geometry import alignment_uniformity as geometry
from harness.tasks.mteb.benchmark_suites import EN_V1
from harness.tasks.senteval import probing, transfer
from harness.tasks.suite import Suite
from reports.papers.declutr_averages import DECLUTR_DOWNSTREAM, declutr_means


def _joined(about: str, *suites: Suite) -> Suite:
    """Several suites, each with its averages, as one."""
    tasks = tuple(task for suite in suites for task in suite.tasks)
    return Suite(tasks, about, averages=tuple(mean for suite in suites for mean in suite.averages))


SCD = _joined(
    "as SCD (and SimCSE) evaluate: seven STS by cosine, seven transfer tasks, alignment and uniformity",
    sts.SUITE,
    transfer.SUITE,
    geometry.SUITE,
)
NONCONTRASTIVE = _joined(
    "as the non-contrastive study evaluates: MTEB's 56 English sets, alignment and uniformity", EN_V1, geometry.SUITE
)
DECLUTR = Suite(
    (*DECLUTR_DOWNSTREAM, *probing.PROBING),
    "as DeCLUTR evaluates: its 18 downstream tasks (STS by mean, regressors, COCO), 10 probing tasks",
    averages=tuple(mean for split in ("test", "dev") for mean in declutr_means(split).values()),
)
SELF_GUIDED = _joined(
    "as SG-OPT evaluates: seven STS by cosine, seven transfer tasks, layers, time",
    sts.SUITE,
    transfer.SUITE,
    layers.SUITE,
    efficiency.SUITE,
)
