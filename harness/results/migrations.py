"""Files of earlier versions read as files of today: one step a schema version, from plain dict to plain dict.

Reading never rewrites a file. Who changes what a file holds raises the number here and writes the step; the work
directory under `tests/frozen` shows that it works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError

Tree = dict[str, Any]


@dataclass(frozen=True)
class Schema:
    """The versions of one kind of file.

    Attributes:
        key: where a file says its version; files without it are of version 1.
        version: the present one.
        steps: version -> what makes a file of the next one of it.
    """

    key: str
    version: int
    steps: Mapping[int, Callable[[Tree], Tree]]

    def migrated(self, tree: Tree, where: str) -> Tree:
        """`tree`, read from a file of any version, as it would be today; `where` names the file.

        Raises:
            InputError: a version that is not known here.
        """
        version = tree.get(self.key, 1)
        if not isinstance(version, int) or version > self.version:
            raise InputError(
                f"{where}: {self.key} {version!r} is not known; this version of the harness reads up to "
                f"{self.version}: update it, or read the file with the version that wrote it"
            )
        for older in range(max(1, version), self.version):
            tree = {**self.steps[older](tree), self.key: older + 1}
        return tree


def _scored_by_task(tree: Tree) -> Tree:
    """One hash of the scoring code for all tasks, as the first records had it, tells nothing about each."""
    return tree if isinstance(tree.get("evaluation", {}), dict) else {**tree, "evaluation": {}}


def _without_hashes(tree: Tree) -> Tree:
    """Nothing vouches for the files of an older record: they are taken as they are."""
    return tree


def _without_blocks(tree: Tree) -> Tree:
    """A comparison of one part, in which every run was to be scored on everything."""
    return tree


def _all_kept(tree: Tree) -> Tree:
    """No rehearsals, and no weights that were removed."""
    return tree


def _without_architecture(tree: Tree) -> Tree:
    """Its encoder's speed was taken while it was evaluated, whatever else ran."""
    return tree


def _without_looks(tree: Tree) -> Tree:
    """A comparison whose seeds were fixed beforehand."""
    return tree


# 2: `evaluation` by task, `identity`. 3: `files`. 4: `rehearsal`, `removed`. 5: `architecture`.
RECORD = Schema("schema_version", 5, {1: _scored_by_task, 2: _without_hashes, 3: _all_kept, 4: _without_architecture})
MANIFEST = Schema("schema", 3, {1: _without_blocks, 2: _without_looks})  # 2: `blocks`. 3: `until`
EXPERIMENT = Schema("schema", 1, {})
OVERLAP = Schema("schema_version", 1, {})
