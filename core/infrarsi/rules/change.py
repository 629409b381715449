"""What a rule looks at: the contract, and what the edited sources now say."""

from collections.abc import Mapping
from dataclasses import dataclass

from infrarsi.contract import Fact, Fix, Lock, TaskContract
from infrarsi.edits import Edit
from infrarsi.frozen import Scalar
from infrarsi.place import Place
from infrarsi.reading import Reading, Sources
from infrarsi.reading.syntax import parse_source


@dataclass(frozen=True)
class Change:
    """One state of the sources held against one lock.

    `before` is the reading of the untouched baseline, where the caller has it. `file_hashes`
    are the present SHA-256 of locked files, empty text where a file is gone.
    """

    lock: Lock
    reading: Reading
    sources: Sources
    before: Reading | None = None
    file_hashes: Mapping[str, str] | None = None

    @property
    def contract(self) -> TaskContract:
        """The contract."""
        return self.lock.contract

    def is_written(self, name: str) -> bool:
        """Whether a finding on this fact would stand while other lines are half typed.

        A number that was merely computed may be off for want of the line being typed; a literal
        that sets the fact is as the user wrote it.
        """
        half_typed = any(problem.half_typed for problem in self.reading.problems)
        return not half_typed or name in self.reading.bindings

    def fact(self, name: str) -> Fact:
        """The fact as read now; unknown where the reading has none of that name."""
        return self.reading.fact(name) or Fact(name=name, unknown="it was not read")

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

    def _replace(self, place: Place, new: str) -> Edit | None:
        text = self.sources.text(place.file)
        if text is None:
            return None
        source = parse_source(place.file, text)
        start = source.offset(place.line, place.column)
        return Edit(file=place.file, start=start, old=source.written(place), new=new)
