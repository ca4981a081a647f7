"""A preset's values by family of base model: what an author sets on BERT-base need not be what they
set on RoBERTa.

Families are those of `harness.encoder.loading`. A preset of one family is never applied to a base
model of another without the user's word. Methods keep their presets in TOML files, which
`RecipeFile` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.config import nearest
from harness.errors import InputError
from harness.files.reading import read_toml

DEFAULT = "default"
"""The preset that every method has for every base model: the defaults of its options."""


@dataclass(frozen=True)
class Recipe:
    """A preset's values for one base model, and their source: a paper's table, a released script, a
    search.

    >>> Recipe({"learning_rate": 3e-5}, "Table 7").source
    'Table 7'
    """

    values: Mapping[str, Any]
    source: str = ""


@dataclass(frozen=True)
class Recipes:
    """One preset, by family.

        >>> paper = Recipes({"bert-base": Recipe({"temperature": 0.05})}, shared={"epochs": 1})
        >>> paper.of("bert-base").values
        {'epochs': 1, 'temperature': 0.05}

    Attributes:
        families: family -> its recipe.
        shared: values of all of these families; a family's own beat them.
        aliases: another name -> the family that it means: "paper-roberta" -> "roberta-base".
    """

    families: Mapping[str, Recipe]
    shared: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def of(self, family: str) -> Recipe:
        """The recipe of a family; KeyError where none is declared."""
        own = self.families[family]
        return Recipe({**self.shared, **own.values}, own.source)


Presets = Mapping[str, Mapping[str, Any] | Recipes]
"""Name -> values for every base model, or values by family."""

_KINDS: dict[type, str] = {dict: "a table", str: "text", list: "a list"}


class RecipeFile(Mapping[str, Mapping[str, Any] | Recipes]):
    """Presets from a TOML file, which is read when it is first needed. A table is a preset, but for
    `[card]`:

        >>> from methods import simcse
        >>> sheet = RecipeFile.beside(simcse.__file__)
        >>> sheet.card["title"], sheet["paper"].of("bert-base").values["batch_size"]
        ('SimCSE (unsupervised)', 64)

    .. code-block:: toml

        [paper]
        source = "Table 7"
        aliases = { paper-roberta = "roberta-base" }
        values = { epochs = 1 }
        bert-base = { learning_rate = 3e-5 }
        "roberta-base, roberta-large" = { learning_rate = 1e-5, source = "the authors' script" }
        modernbert-base = { like = "bert-base", dropout = 0.1, source = "ours" }

        [code]
        values = { like = "paper", epochs = 3 }

    A row holds the values of a family, or of several; `values` holds those of all families, or of
    every base model where no family has a row. In a row, `source` is where its values are from
    (else the preset's `source`), `empty` lists the options that it empties, and `like` names what
    it begins as: a row of this preset, or a preset whose row of the same name is meant, both from
    above. A source may be a name in the file sources.toml of the same folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, module: str) -> RecipeFile:
        """The file recipes/NAME.toml next to the module NAME.py, whose `__file__` is `module`."""
        path = Path(module)
        recipes = path.parent / "recipes"
        return cls(recipes / f"{path.stem}.toml")

    def __getitem__(self, name: str) -> Mapping[str, Any] | Recipes:
        return self._presets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._presets)

    def __len__(self) -> int:
        return len(self._presets)

    @cached_property
    def card(self) -> dict[str, Any]:
        """The values of a `MethodCard`, from the table `[card]`."""
        given = self._check_kind(dict, "card", self._tree.get("card"))
        return {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }

    @cached_property
    def _tree(self) -> dict[str, Any]:
        return read_toml(self.path)

    @cached_property
    def _presets(self) -> dict[str, Mapping[str, Any] | Recipes]:
        presets: dict[str, Mapping[str, Any] | Recipes] = {}
        named = self.path.with_name("sources.toml")
        if named.exists():
            sources = read_toml(named)
        else:
            sources = {}
        rows: dict[tuple[str, str], Recipe] = {}  # (preset, family or "values")
        for name, given in self._tree.items():
            if name == "card":
                continue
            preset = dict(self._check_kind(dict, name, given))
            given_aliases = preset.pop("aliases", {})
            aliases = self._check_kind(dict, f"{name}.aliases", given_aliases)
            given_source = preset.pop("source", "")
            source = self._check_kind(str, f"{name}.source", given_source)
            for key, table in preset.items():
                for family in key.split(", "):
                    row = self._row(name, family, f"{name}.{key}", table, rows)
                    rows[name, family] = Recipe(
                        row.values, sources.get(row.source, row.source) or source
                    )
            families = {
                family: row
                for (of, family), row in rows.items()
                if of == name and family != "values"
            }
            shared = rows.get((name, "values"), Recipe({})).values
            if families:
                presets[name] = Recipes(families, shared, aliases)
            else:
                presets[name] = shared
        return presets

    def _row(
        self,
        preset: str,
        family: str,
        key: str,
        table: Any,
        rows: Mapping[tuple[str, str], Recipe],
    ) -> Recipe:
        values = dict(self._check_kind(dict, key, table))
        like = values.pop("like", None)
        begin = Recipe({})
        if like is not None:
            self._check_kind(str, f"{key}.like", like)
            of_preset = rows.get((preset, like))
            found = of_preset or rows.get((like, family))
            if found is None:
                raise InputError(
                    f'key "{key}.like": "{like}" is no row above it, and no preset that has one',
                    file=self.path,
                )
            begin = found
        given_source = values.pop("source", begin.source)
        source = self._check_kind(str, f"{key}.source", given_source)
        given_empty = values.pop("empty", [])
        empty = self._check_kind(list, f"{key}.empty", given_empty)
        emptied = dict.fromkeys(map(str, empty))
        return Recipe({**begin.values, **values, **emptied}, source)

    def _check_kind(self, kind: type, key: str, given: Any) -> Any:
        if not isinstance(given, kind):
            raise InputError(
                f'key "{key}": expected {_KINDS[kind]}, not {given!r}',
                file=self.path,
                key=key,
            )
        return given


def iterate_presets(presets: Presets) -> Iterator[tuple[str, str | None]]:
    """Every preset with each of its families; None as the family where it is for every base model.

    >>> list(iterate_presets({"code": {"epochs": 1}, "paper": Recipes({"bert-base": Recipe({})})}))
    [('code', None), ('paper', 'bert-base')]
    """
    for name, preset in presets.items():
        yield from (
            (name, family)
            for family in (preset.families if isinstance(preset, Recipes) else [None])
        )


def preset_names(presets: Presets) -> list[str]:
    """All valid names: presets, then aliases.

    >>> preset_names({"paper": Recipes({"roberta-base": Recipe({})}, aliases={"paper-roberta": "roberta-base"})})
    ['paper', 'paper-roberta']
    """
    aliases: list[str] = []
    for preset in presets.values():
        if isinstance(preset, Recipes):
            aliases.extend(preset.aliases)
    return [*presets, *aliases]


def recipe_of(
    presets: Presets,
    name: str,
    *,
    family: str | None,
    base_model: str | None,
    where: str,
) -> Recipe:
    """What the preset called `name` means for a family, or for a base model, whose family is read
    where it matters.

        >>> presets = {"paper": Recipes({"bert-base": Recipe({"temperature": 0.05})})}
        >>> recipe_of(presets, "paper", family="bert-base", base_model=None, where="my.toml").values
        {'temperature': 0.05}

    Raises:
        InputError: no such preset, no values for the family, or an alias of another family; what to
            write instead.
    """
    if name == DEFAULT and name not in presets:
        return Recipe({}, "the defaults of the options")
    preset = presets.get(name)
    alias = None
    if preset is None:
        preset, name, alias = _behind(presets, name, where)
    if not isinstance(preset, Recipes):
        return Recipe(preset)
    of = "that was given" if family else f"of {base_model}"
    asked = family
    if not family and base_model:
        asked = _family_of(base_model)
    elif not family and alias:
        asked = preset.aliases[alias]
    if not asked:
        raise InputError(
            f'preset "{name}" depends on the base model: name it, or its family '
            f"({', '.join(preset.families)})",
            file=where,
        )
    if alias and preset.aliases[alias] != asked:
        own = preset.aliases[alias]
        raise InputError(
            f'preset "{alias}" is "{name}" for base models of the family {own}, not for '
            f"{asked}, the family {of}",
            file=where,
            remedy=(
                f'give preset = "{name}" for what is declared for the base model, or family = '
                f'"{own}" to have these values all the same'
            ),
        )
    if asked not in preset.families:
        families = ", ".join(preset.families)
        raise InputError(
            f'preset "{name}" has no values for {asked}, the family {of}, but for {families}',
            file=where,
            remedy=(
                f'give preset = "{DEFAULT}" for the defaults of the options, or family = '
                f'"{_near_family(preset, asked)}" to have those values all the same'
            ),
        )
    return preset.of(asked)


def _near_family(preset: Recipes, family: str) -> str:
    """Return the first family of a preset that is of the same kind, such as BERT; else the first
    of all.
    """
    kind = family.split("-")[0]
    for other in preset.families:
        if other.startswith(kind):
            return other
    return next(iter(preset.families))


def _behind(presets: Presets, alias: str, where: str) -> tuple[Recipes, str, str]:
    """The preset that an alias belongs to, its name, and the alias."""
    for name, preset in presets.items():
        if isinstance(preset, Recipes) and alias in preset.aliases:
            return preset, name, alias
    known = preset_names(presets)
    told = ", ".join([*sorted(known), DEFAULT])
    message = f'unknown preset "{alias}"{nearest(alias, known)}; known: {told}'
    raise InputError(message, file=where)


def _family_of(base_model: str) -> str:
    from harness.encoder.loading import family_of

    return family_of(base_model)
