"""What a rule looks at: the contract, and what the edited sources now say."""

from collections.abc import Mapping
from dataclasses import dataclass

from infrarsi.contract import Fact, Fix, Lock, TaskContract
from infrarsi.edits import Edit
from infrarsi.frozen import Scalar
from infrarsi.place import Place
from infrarsi.reading import Program, Reading, Sources
from infrarsi.reading.syntax import parse_source


@dataclass(frozen=True)
class Change:
    """One state of the sources held against one lock.

    `now` is what is there; `was` the untouched baseline, where the caller has it: rules that
    compare are silent without it. `file_hashes` are the present SHA-256 of locked files, empty
    text where a file is gone.
    """

    lock: Lock
    now: Program
    was: Program | None = None
    file_hashes: Mapping[str, str] | None = None

    @property
    def contract(self) -> TaskContract:
        """The contract."""
        return self.lock.contract

    @property
    def reading(self) -> Reading:
        """What was read of the present sources."""
        return self.now.reading

    @property
    def sources(self) -> Sources:
        """The present texts; fixes are computed on them."""
        return self.now.sources

    @property
    def sides(self) -> tuple[Program, Program] | None:
        """(now, was) where both can be followed and nothing is half typed; else None."""
        if self.was is None or not self.was.is_followed or not self.now.is_followed:
            return None
        return None if self.now.is_half_typed else (self.now, self.was)

    def is_written(self, name: str) -> bool:
        """Whether a finding on this fact would stand while other lines are half typed.

        A number that was merely computed may be off for want of the line being typed; a literal
        that sets the fact is as the user wrote it.
        """
        return not self.now.is_half_typed or name in self.reading.bindings

    def fact(self, name: str) -> Fact:
        """The fact as read now; unknown where the reading has none of that name."""
        return self.now.fact(name) or Fact(name=name, unknown="it was not read")

    def agreed(self, name: str) -> Fact:
        """The fact as the contract holds it."""
        return self.contract.fact(name) or Fact(name=name, unknown="the contract does not say")

    def count(self, fact: Fact) -> int | None:
        """A fact's value where it is a whole number."""
        return fact.value if type(fact.value) is int else None

    def set_value(self, name: str, value: Scalar, title: str) -> Fix | None:
        """A fix that writes another value where the literal of a fact stands.

        None where no literal of its own sets the fact, or it stands on the launch line.
        """
        binding = self.reading.bindings.get(name)
        if binding is None or binding.place is None:
            return None
        edit = self._replace(binding.place, repr(value))
        return Fix(title=title, edits=(edit,)) if edit is not None else None

    def rewrite(self, place: Place | None, new: str, title: str) -> Fix | None:
        """A fix that puts other text where `place` is; None where there is no such text."""
        edit = self._replace(place, new) if place is not None else None
        return Fix(title=title, edits=(edit,)) if edit is not None else None

    def _replace(self, place: Place, new: str) -> Edit | None:
        text = self.sources.text(place.file)
        if text is None:
            return None
        source = parse_source(place.file, text)
        start = source.offset(place.line, place.column)
        return Edit(file=place.file, start=start, old=source.written(place), new=new)
