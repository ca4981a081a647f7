"""A preset's values by family of base model: what an author sets on BERT-base need not be what they set on RoBERTa.

Families are those of `harness.encoder.families`. A preset of one family is never applied to a base model of another
without the user's word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.config import nearest
from harness.errors import InputError

DEFAULT = "default"
"""The preset that every method has for every base model: the defaults of its options."""


@dataclass(frozen=True)
class Recipe:
    """A preset's values for one base model, and their source: a paper's table, a released script, a search.

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


def declared(presets: Presets) -> Iterator[tuple[str, str | None]]:
    """Every preset with each of its families; None as the family where it is for every base model.

    >>> list(declared({"code": {"epochs": 1}, "paper": Recipes({"bert-base": Recipe({})})}))
    [('code', None), ('paper', 'bert-base')]
    """
    for name, preset in presets.items():
        yield from ((name, family) for family in (preset.families if isinstance(preset, Recipes) else [None]))


def preset_names(presets: Presets) -> list[str]:
    """All valid names: presets, then aliases.

    >>> preset_names({"paper": Recipes({"roberta-base": Recipe({})}, aliases={"paper-roberta": "roberta-base"})})
    ['paper', 'paper-roberta']
    """
    aliases = [alias for preset in presets.values() if isinstance(preset, Recipes) for alias in preset.aliases]
    return [*presets, *aliases]


def recipe_of(presets: Presets, name: str, *, family: str | None, base_model: str | None, where: str) -> Recipe:
    """What the preset called `name` means for a family, or for a base model, whose family is read where it matters.

        >>> presets = {"paper": Recipes({"bert-base": Recipe({"temperature": 0.05})})}
        >>> recipe_of(presets, "paper", family="bert-base", base_model=None, where="my.toml").values
        {'temperature': 0.05}

    Raises:
        InputError: no such preset, no values for the family, or an alias of another family; what to write instead.
    """
    if name == DEFAULT and name not in presets:
        return Recipe({}, "the defaults of the options")
    preset, alias = presets.get(name), None
    if preset is None:
        preset, name, alias = _behind(presets, name, where)
    if not isinstance(preset, Recipes):
        return Recipe(preset)
    of = "that was given" if family else f"of {base_model}"
    asked = family or (_family_of(base_model) if base_model else alias and preset.aliases[alias])
    if not asked:
        raise InputError(
            f'{where}: preset "{name}" depends on the base model: name it, or its family ({", ".join(preset.families)})'
        )
    if alias and preset.aliases[alias] != asked:
        own = preset.aliases[alias]
        raise InputError(
            f'{where}: preset "{alias}" is "{name}" for base models of the family {own}, not for {asked}, the family '
            f'{of}; give preset = "{name}" for what is declared for the base model, or family = "{own}" to have '
            "these values all the same"
        )
    if asked not in preset.families:
        kind = asked.split("-")[0]
        near = next((family for family in preset.families if family.startswith(kind)), next(iter(preset.families)))
        raise InputError(
            f'{where}: preset "{name}" has no values for {asked}, the family {of}, but for '
            f'{", ".join(preset.families)}; give preset = "{DEFAULT}" for the defaults of the options, or '
            f'family = "{near}" to have those values all the same'
        )
    return preset.of(asked)


def _behind(presets: Presets, alias: str, where: str) -> tuple[Recipes, str, str]:
    """The preset that an alias belongs to, its name, and the alias."""
    for name, preset in presets.items():
        if isinstance(preset, Recipes) and alias in preset.aliases:
            return preset, name, alias
    known = preset_names(presets)
    told = ", ".join([*sorted(known), DEFAULT])
    raise InputError(f'{where}: unknown preset "{alias}"{nearest(alias, known)}; known: {told}')


def _family_of(base_model: str) -> str:
    from harness.encoder.families import family_of

    return family_of(base_model)
