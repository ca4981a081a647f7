"""Figures that campaigns measure: files of them, of which `python -m docs.make` writes tables.

A campaign has parts, each a table. A part yields its figures one after another, and each is saved
at once, so that a campaign that is cut off loses only the cell that it was at. A figure may have a
bound; the exit code is 1 if one is broken by more than chance.
"""

from __future__ import annotations

import csv
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

FOLDER = Path(__file__).with_name("results")
BEYOND_CHANCE = 2.0  # standard errors beyond its bound from which on a figure breaks it


@dataclass(frozen=True)
class Figure:
    """A measured number.

    Attributes:
        part: the table that it is in.
        cell, name: its line and its column there.
        value: in per cent, points or seeds, as the name says.
        error: the Monte-Carlo standard error of the value; 0 where it is computed, not drawn.
        draws: of how many simulated comparisons it is; 0 where it is computed.
        at_most, at_least: what it may be; None without a bound.
    """

    part: str
    cell: str
    name: str
    value: float
    error: float = 0.0
    draws: int = 0
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_broken(self) -> bool:
        """True if the value is beyond its bound by more than its standard error explains."""
        slack = BEYOND_CHANCE * self.error
        too_high = self.at_most is not None and self.value > self.at_most + slack
        too_low = self.at_least is not None and self.value < self.at_least - slack
        return too_high or too_low

    @property
    def bound(self) -> str:
        """The bound in words; "" without one."""
        if self.at_most is not None and self.at_least is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return ""

    @property
    def text(self) -> str:
        """The value with its standard error: points and ratios with two digits, runs with none."""
        digits = 1
        if self.name.endswith(("points", "ratio")):
            digits = 2
        elif self.name == "runs":
            digits = 0
        value = f"{self.value:,.{digits}f}"
        return f"{value} ± {self.error:,.{digits}f}" if self.draws else value


Part = Callable[[], Iterator[Figure]]
COLUMNS = tuple(field.name for field in fields(Figure))


def share(
    part: str,
    cell: str,
    name: str,
    count: float,
    draws: int,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Figure:
    """Return `count` of `draws` in per cent. No case of many has an error too: that of half a case."""
    of_all = (count + 0.5) / (draws + 1)
    error = 100 * (of_all * (1 - of_all) / draws) ** 0.5
    return Figure(part, cell, name, 100 * count / draws, error, draws, at_most, at_least)


def read_figures(file: Path) -> list[Figure]:
    """Return the figures of a file, in its order; none where there is no file."""
    if not file.exists():
        return []
    found = []
    with file.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            found.append(
                Figure(
                    line["part"],
                    line["cell"],
                    line["name"],
                    float(line["value"]),
                    float(line["error"]),
                    int(line["draws"]),
                    _number_or_none(line["at_most"]),
                    _number_or_none(line["at_least"]),
                )
            )
    return found


def _number_or_none(text: str) -> float | None:
    return float(text) if text else None


def write_figures(file: Path, figures: Sequence[Figure]) -> None:
    """Write the figures, in place of the file that was there."""
    file.parent.mkdir(exist_ok=True)
    unfinished = file.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for figure in figures:
            values = astuple(figure)
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in values])
    os.replace(unfinished, file)


def measure(file: Path, parts: Mapping[str, Part]) -> list[Figure]:
    """Run parts and save each figure in `file` as soon as it is there; return all of them.

    Figures of other parts stay as they are, and those of a part until it has measured them again.
    """
    measured: list[Figure] = []
    for name, part in parts.items():
        before = read_figures(file)
        first = next((n for n, old in enumerate(before) if old.part == name), len(before))
        of_part: list[Figure] = []
        for figure in part():
            of_part.append(figure)
            again = {(one.cell, one.name) for one in of_part}
            waiting = [
                old for old in before if old.part == name and (old.cell, old.name) not in again
            ]
            write_figures(file, _replace(before, name, first, [*of_part, *waiting]))
            print(
                f"{name}: {figure.cell}, {figure.name}: {figure.text} {figure.bound}"
                f"{'  BROKEN' if figure.is_broken else ''}",
                flush=True,
            )
        write_figures(file, _replace(before, name, first, of_part))
        measured += of_part
    return measured


def _replace(before: list[Figure], part: str, first: int, now: list[Figure]) -> list[Figure]:
    """Return the figures before with those of a part now, at the place of the part."""
    others = [old for old in before if old.part != part]
    return [*others[:first], *now, *others[first:]]


def main(file: Path, parts: Mapping[str, Part], description: str) -> None:
    """Run the parts that the command line names, and end with exit code 1 if a bound is broken."""
    parser = ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(parts), metavar="PART", default=[])
    parser.epilog = f"parts: {', '.join(parts)}; figures are saved in {file.name}"
    chosen = parser.parse_args().only or list(parts)
    broken = [one for one in measure(file, {n: parts[n] for n in chosen}) if one.is_broken]
    for one in broken:
        print(f"broken: {one.part}: {one.cell}, {one.name}: {one.text}, {one.bound}")
    sys.exit(1 if broken else 0)
