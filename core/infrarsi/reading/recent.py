"""`Recent`: what was asked for lately, by key; the rest is forgotten."""

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping that forgets what was not asked for between two turns."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def setdefault(self, key: K, value: V) -> V:
        """What stands under a key, which is `value` where nothing did."""
        found = self._new.get(key)
        if found is None:
            found = self._new[key] = self._old.pop(key, value)
        return found

    def turn(self) -> list[V]:
        """Forget what was not asked for since the last turn; what that was."""
        forgotten = list(self._old.values())
        self._old, self._new = self._new, {}
        return forgotten
