"""Reading: what was understood of a job, with places, and what was not, with reasons."""

from typing import Literal

from infrarsi.contract.contract import Fact
from infrarsi.frozen import Frozen
from infrarsi.knobs import Binding, Knob
from infrarsi.place import Place

Role = Literal["fetch", "forward", "loss", "backward", "clip", "step", "zero_grad", "clock", "sync"]


class RoleSpan(Frozen):
    """Lines that play a role in the training loop."""

    role: Role
    place: Place


class Problem(Frozen):
    """Something that could not be read. `what` is one sentence.

    `half_typed` marks a line that does not parse; the next keystroke may mend it.
    """

    what: str
    place: Place | None = None
    half_typed: bool = False


class Reading(Frozen):
    """Facts, knobs, roles and problems of one job's sources. `files` are those reachable.

    `documents` are the configuration files it loads (YAML, TOML, JSON).

    `bindings` tells, for each fact that one literal or launch choice sets by itself, how another
    value would get there.
    """

    facts: tuple[Fact, ...] = ()
    knobs: tuple[Knob, ...] = ()
    roles: tuple[RoleSpan, ...] = ()
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    bindings: dict[str, Binding] = {}

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, if there is one."""
        return next((f for f in self.facts if f.name == name), None)
