"""What was found out of earlier states of a job's sources and still holds of the present one.

Every answer is kept with what it was found in: modules by their text, calls by their name. It is
given again only while all of that is the same, so that a keystroke costs what it changed. Leaves
out what depends on the order of questions: answers cut short by recursion are never kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Token = tuple[Hashable, Callable[..., object], tuple[Hashable, ...]]
_MAX_STALE_HOMES = 24
_MAX_SAME = 3


class Stamp:
    """One answer to one question of the sources; another object as soon as it is another."""

    __slots__ = ("token", "value")

    def __init__(self, token: Token, value: object) -> None:
        """The question and what it gave."""
        self.token = token
        self.value = value


Needs = frozenset[Stamp]
Kept = tuple[Any, Needs]
_NEVER = Stamp(("", repr, ()), None)
_NOTHING: Needs = frozenset()
NEVER_KEPT: Needs = frozenset({_NEVER})
"""The needs of an answer that must not be given again in another state."""


class Memory:
    """Answers by the file they are about. For one launch, and one reading at a time."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._lock = threading.Lock()
        self.stamps: dict[Token, list[Stamp]] = {}
        self._homes: OrderedDict[Hashable, dict[Hashable, list[Kept]]] = OrderedDict()
        self._needs: dict[Needs, Needs] = {}

    @contextmanager
    def taken(self) -> Generator["Memory | None"]:
        """This memory while nobody else has it; None where somebody does."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        try:
            yield self
        finally:
            self._lock.release()

    def home(self, of: Hashable) -> dict[Hashable, list[Kept]]:
        """What is kept about a file."""
        found = self._homes.get(of)
        if found is None:
            found = self._homes[of] = {}
        return found

    def same(self, needs: Needs) -> Needs:
        """One object for equal needs."""
        return self._needs.setdefault(needs, needs)

    def settle(self, present: list[Hashable]) -> None:
        """Forget the files seen longest ago, beyond the present ones and some more."""
        for of in present:
            self.home(of)
            self._homes.move_to_end(of)
        while len(self._homes) > len(present) + _MAX_STALE_HOMES:
            self._homes.popitem(last=False)
        if len(self._needs) > 100_000:
            self._needs.clear()
        if len(self.stamps) > 100_000:
            self.stamps.clear()


class Trace:
    """One reading's way through a memory: notes what each answer needed. Without one, nothing."""

    def __init__(self, memory: Memory | None = None) -> None:
        """`memory` is None where nothing is kept beyond this reading."""
        self.memory = memory
        self.subjects: dict[Hashable, object] = {}
        self._stack: list[set[Stamp]] = []
        self._current: dict[Token, Stamp] = {}
        self._holds: dict[Needs, bool] = {_NOTHING: True}

    def look(self, subject: Hashable, ask: Callable[..., T], *key: Hashable) -> T:
        """What the sources say now; whoever is being answered needs that to stay so."""
        if self.memory is None:
            return ask(self.subjects[subject], *key)
        token = (subject, ask, key)
        stamp = self._current.get(token) or self._stamp(token)
        if self._stack:
            self._stack[-1].add(stamp)
        return stamp.value  # type: ignore[return-value]

    def never(self) -> None:
        """What is being answered must not be kept."""
        if self._stack:
            self._stack[-1].add(_NEVER)

    def need(self, needs: Needs) -> None:
        """What is being answered needs all that another answer did."""
        if self._stack:
            self._stack[-1] |= needs

    def begin(self) -> None:
        """Note from here on."""
        if self.memory is not None:
            self._stack.append(set())

    def end(self) -> Needs:
        """What was needed since the matching `begin`; whoever began before needs it too."""
        if self.memory is None:
            return _NOTHING
        found = self._stack.pop()
        if self._stack:
            self._stack[-1] |= found
        return self.memory.same(frozenset(found))

    def recall(self, home: Hashable, key: Hashable) -> Kept | None:
        """An answer that was kept and still holds."""
        if self.memory is None:
            return None
        for kept in self.memory.home(home).get(key, ()):
            if self.holds(kept[1]):
                self.need(kept[1])
                return kept
        return None

    def keep(self, home: Hashable, key: Hashable, kept: Kept) -> None:
        """Keep an answer, and the one before."""
        if self.memory is not None and _NEVER not in kept[1]:
            known = self.memory.home(home).setdefault(key, [])
            known.insert(0, kept)
            del known[_MAX_SAME:]

    def ask(self, home: Hashable, key: Hashable, answer: Callable[[], T]) -> T:
        """The kept answer, or a new one."""
        if self.memory is None:
            return answer()
        kept = self.recall(home, key)
        if kept is None:
            self.begin()
            try:
                value = answer()
            finally:
                needs = self.end()
            self.keep(home, key, (value, needs))
            return value
        return kept[0]

    def once(self, memo: dict[object, Any], key: object, answer: Callable[[], T]) -> T:
        """The answer, found once in this reading alone; it may hold on to the reading."""
        if key not in memo:
            self.begin()
            try:
                value = answer()
            finally:
                needs = self.end()
            memo[key] = (value, needs)
        else:
            self.need(memo[key][1])
        return memo[key][0]

    def again(self, home: Hashable, key: Hashable, fits: Callable[[T], bool], made: T) -> T:
        """An object made before that fits, else this one: keys stay the same by it."""
        if self.memory is None:
            return made
        known = self.memory.home(home).setdefault(key, [])
        found = next((kept[0] for kept in known if fits(kept[0])), None)
        if found is None:
            found = made
            known.insert(0, (made, _NOTHING))
            del known[_MAX_SAME:]
        return found

    def holds(self, needs: Needs) -> bool:
        """Whether the sources still say all of that."""
        found = self._holds.get(needs)
        if found is None:
            found = self._holds[needs] = all(self._is_current(stamp) for stamp in needs)
        return found

    def _is_current(self, stamp: Stamp) -> bool:
        if stamp is _NEVER or stamp.token[0] not in self.subjects:
            return False
        return (self._current.get(stamp.token) or self._stamp(stamp.token)) is stamp

    def _stamp(self, token: Token) -> Stamp:
        subject, ask, key = token
        held, self._stack = self._stack, []
        try:
            value = ask(self.subjects[subject], *key)
        finally:
            self._stack = held
        known = self.memory.stamps.setdefault(token, []) if self.memory is not None else []
        stamp = next((stamp for stamp in known if stamp.value == value), None)
        if stamp is None:
            stamp = Stamp(token, value)
            known.insert(0, stamp)
            del known[_MAX_SAME:]
        self._current[token] = stamp
        return stamp
