"""The part of a comparison's report in which one looks at single examples."""

from __future__ import annotations

from reports.document.blocks import Block, Text
from reports.explore.examples import explored_tasks
from reports.explore.examples_widget import examples_widget
from reports.explore.map_widget import map_widget
from reports.explore.slice_tables import slice_blocks
from reports.read.comparison_runs import Comparison
from reports.stats.significance import Significance


def explore(comparison: Comparison, significance: Significance) -> list[Block]:
    """Slices, examples, a map; nothing where no run kept its examples, or there is one row."""
    tasks = explored_tasks(comparison)
    if not tasks or len([row for row in comparison.rows if row.finished]) < 2:
        return []
    if all(task.examples.texts is None for task in tasks):
        return [Text(("The runs are of a version that kept no ids of texts: nothing can be said of single examples.",))]
    blocks: list[Block] = list(slice_blocks(comparison, tasks))
    texts, first = comparison.show_texts, significance.first
    widgets = [examples_widget(comparison, tasks, first, texts=texts), map_widget(comparison, first, texts=texts)]
    return [*blocks, *(widget for widget in widgets if widget is not None)]
