"""The averages of DeCLUTR (Giorgi et al. 2020), over exactly its own tasks."""

from __future__ import annotations

from harness.tasks.averages import Mean, Number
from harness.tasks.senteval.downstream import REGRESSORS
from harness.tasks.senteval.probing import PROBING
from harness.tasks.sts import YEARS

# Its eighteen downstream tasks (section 4.3 and table S3), by our task names.
_ACCURACIES = ("CR", "MR", "MPQA", "SUBJ", "SST2", "SST5", "TREC", "SNLI", "SICK-E")
DECLUTR_DOWNSTREAM = (*_ACCURACIES, "MRPC", *REGRESSORS, *YEARS, "caption-retrieval")


def declutr_means(split: str = "test") -> dict[str, Mean]:
    """By name, with table 1's "Avg." as "half" and the script's own "all" (over all 28 tasks) as "tasks".

    The numbers are those that DeCLUTR's script takes on "test" or "dev": on dev MRPC counts by its accuracy alone and
    the regressors by Pearson; STS12-16 have no dev set and give the same number to both.
    """
    mrpc = Number("MRPC", "accuracy", split=split)
    numbers: dict[str, Number | Mean] = {
        **{task: Number(task, "accuracy", split=split) for task in (*_ACCURACIES, *PROBING)},
        "MRPC": Mean("MRPC", (mrpc, Number("MRPC", "f1"))) if split == "test" else mrpc,
        **{task: Number(task, "spearman" if split == "test" else "pearson", split=split) for task in REGRESSORS},
        **{task: Number(task, "spearman", "mean") for task in YEARS},
        "caption-retrieval": Number("caption-retrieval", "recall", "mean of six recalls", split),
    }

    def mean(title: str, *tasks: str) -> Mean:
        return Mean(f"DeCLUTR, {title}, {split}", tuple(numbers[task] for task in tasks))

    downstream, probing = mean("downstream tasks", *DECLUTR_DOWNSTREAM), mean("probing tasks", *PROBING)
    without = [task for task in DECLUTR_DOWNSTREAM if task != "SNLI"]
    half = f"DeCLUTR, half downstream and half probing (table 1), {split}"
    return {
        "downstream": downstream,
        "downstream-without-snli": mean("downstream tasks without SNLI", *without),
        "probing": probing,
        "half": Mean(half, (downstream, probing)),
        "tasks": mean("all tasks alike", *DECLUTR_DOWNSTREAM, *PROBING),
    }
