"""What each paper evaluates, as a suite (entry points `harness.suites`), and the averages that
DeCLUTR takes.
"""

from __future__ import annotations

from harness.sources.senteval.labelled import PROBING
from harness.tasks import efficiency, geometry, layers, sts
from harness.tasks.averages import Mean, Number
from harness.tasks.mteb.benchmark_suites import EN_V1, BenchmarkMean
from harness.tasks.mteb.benchmarks import PREFIX
from harness.tasks.senteval.suites import REGRESSORS, TRANSFER_SUITE
from harness.tasks.suite import Suite

# The eighteen downstream tasks of DeCLUTR (Giorgi et al. 2020, section 4.3 and table S3), by our
# task names.
_ACCURACIES = ("CR", "MR", "MPQA", "SUBJ", "SST2", "SST5", "TREC", "SNLI", "SICK-E")
DECLUTR_DOWNSTREAM = (*_ACCURACIES, "MRPC", *REGRESSORS, *sts.YEARS, "caption-retrieval")


def declutr_means(split: str = "test") -> dict[str, Mean]:
    """The averages of DeCLUTR by name: "half" is "Avg." of table 1, "tasks" is "all" of its script
    (all 28 tasks).

    The numbers are those that its script takes on "test" or "dev": on dev the accuracy alone of
    MRPC and Pearson's correlation of the regressors. STS12-16 have no dev set and enter both with
    the same number.
    """
    mrpc = Number("MRPC", "accuracy", split=split)
    numbers: dict[str, Number | Mean] = {
        **{task: Number(task, "accuracy", split=split) for task in (*_ACCURACIES, *PROBING)},
        "MRPC": Mean("MRPC", (mrpc, Number("MRPC", "f1"))) if split == "test" else mrpc,
        **{
            task: Number(task, "spearman" if split == "test" else "pearson", split=split)
            for task in REGRESSORS
        },
        **{task: Number(task, "spearman", "mean") for task in sts.YEARS},
        "caption-retrieval": Number("caption-retrieval", "recall", "mean of six recalls", split),
    }

    def mean(title: str, *tasks: str) -> Mean:
        return Mean(f"DeCLUTR, {title}, {split}", tuple(numbers[task] for task in tasks))

    downstream = mean("downstream tasks", *DECLUTR_DOWNSTREAM)
    probes = mean("probing tasks", *PROBING)
    without = [task for task in DECLUTR_DOWNSTREAM if task != "SNLI"]
    half = f"DeCLUTR, half downstream and half probing (table 1), {split}"
    return {
        "downstream": downstream,
        "downstream-without-snli": mean("downstream tasks without SNLI", *without),
        "probing": probes,
        "half": Mean(half, (downstream, probes)),
        "tasks": mean("all tasks alike", *DECLUTR_DOWNSTREAM, *PROBING),
    }


def _join(about: str, *suites: Suite) -> Suite:
    tasks = tuple(task for suite in suites for task in suite.tasks)
    return Suite(tasks, about, averages=tuple(mean for suite in suites for mean in suite.averages))


SCD = _join(
    "as SCD (and SimCSE) evaluate: seven STS by cosine, seven transfer tasks, alignment and uniformity",
    sts.SUITE,
    TRANSFER_SUITE,
    geometry.SUITE,
)
NONCONTRASTIVE = _join(
    "as the non-contrastive study evaluates: MTEB's 56 English sets, alignment and uniformity",
    EN_V1,
    geometry.SUITE,
)
_CROPPING = (
    *(
        f"{name}ClusteringP2P"
        for name in ("Arxiv", "Biorxiv", "Medrxiv", "Reddit", "StackExchange")
    ),
    "TwentyNewsgroupsClustering",
    "SciDocsRR",
    "MindSmallReranking",
    "AskUbuntuDupQuestions",
    "ArguAna",
    "SCIDOCS",
    "NFCorpus",
    "NQ",
    "TRECCOVID",
    "SciFact",
    "STS12",
    "STS13",
    "STS14",
    "STS15",
    "STS16",
    "STSBenchmark",
)
CROPPING = Suite(
    tuple(PREFIX + name for name in _CROPPING),
    "as the cropping paper evaluates: 21 English sets of MTEB for clustering, reranking, retrieval, STS",
    averages=(BenchmarkMean("cropping paper, average over 21 data sets", "mteb-en-v1", _CROPPING),),
)
DECLUTR = Suite(
    (*DECLUTR_DOWNSTREAM, *PROBING),
    "as DeCLUTR evaluates: its 18 downstream tasks (STS by mean, regressors, COCO), 10 probing tasks",
    averages=tuple(mean for split in ("test", "dev") for mean in declutr_means(split).values()),
)
SELF_GUIDED = _join(
    "as SG-OPT evaluates: seven STS by cosine, seven transfer tasks, layers, time",
    sts.SUITE,
    TRANSFER_SUITE,
    layers.SUITE,
    efficiency.SUITE,
)
