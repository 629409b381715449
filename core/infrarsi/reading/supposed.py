"""`Supposed`: which answers stay the same when some literals are supposed to hold other values.

An answer keeps what it was found in, literals included, so what never looked at a changed literal
need not be found again. Without a memory nothing is known of that, and everything is.
"""

from typing import TYPE_CHECKING

from infrarsi.reading.memory import NEVER_KEPT, Needs, Stamp

if TYPE_CHECKING:
    from collections.abc import Collection

    from infrarsi.reading.evaluate import Evaluator
    from infrarsi.reading.project import Project


class Supposed:
    """What an evaluator with overrides may take over from the one without."""

    def __init__(self, evaluator: "Evaluator", base: "Evaluator", keys: "Collection[str]") -> None:
        """`keys` are those of the literals that are supposed to be others."""
        self._evaluator = evaluator
        self._base = base
        self._tokens = [("project", literal_of, (key,)) for key in keys]
        self._known: dict[Needs, bool] = {}

    def keeps(self, needs: Needs) -> bool:
        """Whether an answer with these needs stays; False where that is not sure."""
        if self._evaluator.trace.memory is None:
            return False
        found = self._known.get(needs)
        if found is None:
            self._known[needs] = False
            found = self._stays(needs)
            if self._evaluator.is_ready:
                self._known[needs] = found
            else:
                del self._known[needs]
        return found

    def _stays(self, needs: Needs) -> bool:
        trace = self._evaluator.trace
        if not needs.isdisjoint(NEVER_KEPT):
            return False
        if any(trace.known(token) in needs for token in self._tokens):
            return False
        asked = trace.about(needs, self._base.subject)
        return not asked or (self._evaluator.is_ready and all(map(self._agrees, asked)))

    def _agrees(self, stamp: Stamp) -> bool:
        """Whether a question of the other evaluator has the same answer here."""
        _, ask, key = stamp.token
        return self._evaluator.trace.look(self._evaluator.subject, ask, *key) == stamp.value


def literal_of(project: "Project", key: str) -> str:
    """A literal's key: to be noted by what looks at the literal."""
    del project
    return key
