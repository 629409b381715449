"""`Watched`: a mapping that tells what it is asked for. The order is that of what it holds."""

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Watched(Generic[K, V]):
    """A mapping to ask, never to change."""

    def __init__(
        self, held: Mapping[K, V], whole: Callable[[], object], one: Callable[[K], object]
    ) -> None:
        """`whole` is called where all of it is asked for, `one` with a key that is."""
        self.held = held
        self._whole = whole
        self._one = one

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: D | None = None) -> V | D | None:
        """What stands under a key."""
        self._one(key)
        return self.held.get(key, default)

    def __getitem__(self, key: K) -> V:
        self._one(key)
        return self.held[key]

    def __contains__(self, key: object) -> bool:
        self._one(key)  # type: ignore[arg-type]
        return key in self.held

    def __iter__(self) -> Iterator[K]:
        self._whole()
        return iter(self.held)

    def __len__(self) -> int:
        self._whole()
        return len(self.held)

    def values(self) -> ValuesView[V]:
        """All values."""
        self._whole()
        return self.held.values()

    def items(self) -> ItemsView[K, V]:
        """All keys with their values."""
        self._whole()
        return self.held.items()
