"""Knob, Space, Setting, Binding, Candidate: the vocabulary of the search, JSON-able as a whole."""

from typing import Literal

from infrarsi.frozen import Frozen, Scalar
from infrarsi.place import Place

Setting = dict[str, Scalar]
"""One assignment: knob name to value. A knob left out keeps its default."""


class Binding(Frozen):
    """How a knob's value reaches the job.

    `carrier` says what is changed: a module constant or an argparse default (edits to `file`), a
    value of a YAML, TOML or JSON file (`name` is its dotted path there, `file` is edited),
    a script argument or an environment variable (the launch). `name` is the constant's name,
    the flag with its dashes or the variable. With `quotient_of` the written value is
    `quotient_of // value`, the way accumulation follows a micro-batch when both are spelled out.
    """

    carrier: Literal[
        "constant", "argument_default", "argument", "environment", "yaml", "toml", "json"
    ]
    name: str
    file: str | None = None
    place: Place | None = None
    quotient_of: int | None = None


class Knob(Frozen):
    """One choice.

    `role` is the canonical meaning (`micro_batch`, `threads`, `patch`, ...). `choices` hold the
    default. For `kind="patch"` the type is bool and `name` is the recipe's name.
    """

    name: str
    type: Literal["ordinal", "integer", "categorical", "bool"]
    choices: tuple[Scalar, ...]
    kind: Literal["setting", "parallelism", "patch"] = "setting"
    default: Scalar
    role: str
    bindings: tuple[Binding, ...] = ()


class Space(Frozen):
    """All knobs of a job."""

    knobs: tuple[Knob, ...]

    def default_setting(self) -> Setting:
        """The user's own start."""
        return {knob.name: knob.default for knob in self.knobs}

    def knob(self, name: str) -> Knob:
        """The knob of that name; KeyError if there is none."""
        for knob in self.knobs:
            if knob.name == name:
                return knob
        raise KeyError(name)

    def complete(self, setting: Setting) -> Setting:
        """The setting with defaults filled in."""
        return {**self.default_setting(), **setting}


class Candidate(Frozen):
    """A setting, patch knobs included (a patch is on where its knob is true)."""

    setting: dict[str, Scalar] = {}

    def changed(self, space: Space) -> Setting:
        """Only the values that differ from the user's start."""
        start = space.default_setting()
        return {k: v for k, v in self.setting.items() if start.get(k) != v}

    def patches(self, space: Space) -> tuple[str, ...]:
        """Names of the patches that are on, in the space's order."""
        return tuple(
            k.name for k in space.knobs if k.kind == "patch" and self.setting.get(k.name) is True
        )
