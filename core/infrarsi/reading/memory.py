"""What was found out of earlier states of a job's sources and still holds of the present one.

Every answer is kept with what it was found in: modules by their text, calls by their name. It is
given again only while all of that is the same, so that a keystroke costs what it changed. Leaves
out what depends on the order of questions: answers cut short by recursion are never kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import contextmanager
from itertools import chain
from typing import Any, TypeVar

from infrarsi.reading.recent import Recent

T = TypeVar("T")
Token = tuple[Hashable, Callable[..., object], tuple[Hashable, ...]]
_MAX_STALE_HOMES = 8
_TURN_EVERY = 16
_MAX_SAME = 3
_FORGOTTEN: Token = ("", repr, ())


class Stamp:
    """One answer to one question of the sources; another object as soon as it is another."""

    __slots__ = ("token", "value")

    def __init__(self, token: Token, value: object) -> None:
        """The question and what it gave."""
        self.token = token
        self.value = value

    def forget(self) -> None:
        """Hold on to nothing; what needed this never holds again."""
        self.token, self.value = _FORGOTTEN, None


Needs = frozenset[Stamp]
Kept = tuple[Any, Needs]
_NEVER = Stamp(_FORGOTTEN, None)
_NOTHING: Needs = frozenset()
NEVER_KEPT: Needs = frozenset({_NEVER})
"""The needs of an answer that must not be given again in another state."""


class Memory:
    """Answers by the file they are about. For one launch, and one reading at a time."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._lock = threading.Lock()
        self.stamps: Recent[Token, list[Stamp]] = Recent()
        self._homes: OrderedDict[Hashable, dict[Hashable, list[Kept]]] = OrderedDict()
        self._needs: Recent[Needs, Needs] = Recent()
        self._n_settled = 0
        self._forgotten: set[Stamp] = set()

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
        self._n_settled += 1
        if self._n_settled % _TURN_EVERY == 0:
            self._needs.turn()
            self.forget(chain.from_iterable(self.stamps.turn()))

    def forget(self, stamps: Iterable[Stamp]) -> None:
        """Let what needed these stamps never hold again."""
        for stamp in stamps:
            stamp.forget()
            self._forgotten.add(stamp)

    def sweep(self) -> None:
        """Let go of the answers that never hold again; takes longer the more is kept."""
        present = set(self._homes)
        for home in self._homes.values():
            for key, known in list(home.items()):
                known[:] = [kept for kept in known if kept[1].isdisjoint(self._forgotten)]
                if not known or _is_gone(key, present):
                    del home[key]
        self._forgotten.clear()


def _is_gone(key: Hashable, present: set[Hashable]) -> bool:
    """Whether a question is about a frame of files that are not there any more."""
    about = key[-1] if isinstance(key, tuple) and key else ()
    parts = about if isinstance(about, tuple) else ()
    return any(not getattr(part, "sources", frozenset()) <= present for part in parts)


class Trace:
    """One reading's way through a memory: notes what each answer needed. Without one, nothing."""

    def __init__(self, memory: Memory | None = None) -> None:
        """`memory` is None where nothing is kept beyond this reading."""
        self.memory = memory
        self.subjects: dict[Hashable, object] = {}
        self._stack: list[set[Stamp]] = []
        self._current: dict[Token, tuple[Stamp, Any]] = {}
        self._about: dict[Hashable, set[Stamp]] = {}
        self._there: set[Stamp] = set()
        self._gone: set[Stamp] = set()
        self._holds: dict[Needs, bool] = {_NOTHING: True}

    def look(self, subject: Hashable, ask: Callable[..., T], *key: Hashable) -> T:
        """What the sources say now; whoever is being answered needs that to stay so."""
        if self.memory is None:
            return ask(self.subjects[subject], *key)
        token = (subject, ask, key)
        stamp, value = self._current.get(token) or self._stamp(token)
        if self._stack:
            self._stack[-1].add(stamp)
        return value

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
        known = self.memory.home(home).get(key, [])
        for number, kept in enumerate(known):
            if self.holds(kept[1]):
                if number:
                    known[:] = [kept, *known[:number], *known[number + 1 :]]
                self.need(kept[1])
                return kept
        return None

    def keep(self, home: Hashable, key: Hashable, kept: Kept) -> None:
        """Keep an answer, and the one before."""
        if self.memory is not None and _NEVER not in kept[1]:
            known = self.memory.home(home).setdefault(key, [])
            known.insert(0, kept)
            del known[_MAX_SAME:]

    def known(self, token: Token) -> Stamp | None:
        """The answer to a question, if this reading asked it."""
        found = self._current.get(token)
        return found[0] if found is not None else None

    def about(self, needs: Needs, subject: Hashable) -> frozenset[Stamp]:
        """Those of some needs that ask a subject."""
        return needs & self._about.get(subject, set())

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
            new = needs - self._there
            found = new.isdisjoint(self._gone) and all(self._is_current(stamp) for stamp in new)
            self._holds[needs] = found
        return found

    def _is_current(self, stamp: Stamp) -> bool:
        if stamp is _NEVER or stamp.token[0] not in self.subjects:
            return False
        current = (self._current.get(stamp.token) or self._stamp(stamp.token))[0] is stamp
        (self._there if current else self._gone).add(stamp)
        return current

    def _stamp(self, token: Token) -> tuple[Stamp, Any]:
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
            if self.memory is not None:
                self.memory.forget(known[_MAX_SAME - 1 :])
        else:
            known.remove(stamp)
        known[:] = [stamp, *known[: _MAX_SAME - 1]]
        self._about.setdefault(subject, set()).add(stamp)
        found = self._current[token] = stamp, value
        return found
