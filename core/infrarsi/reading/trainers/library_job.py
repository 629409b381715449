"""What a library's settings say of a step, for the facts that no loop in the job tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from infrarsi.reading.flow import Fetch
from infrarsi.reading.project import CallSite
from infrarsi.reading.scopes import Scope
from infrarsi.reading.values import Unknown, Value


@dataclass(frozen=True, eq=False)
class LibraryJob:
    """A library at work in a job.

    `values` are by fact; what is missing there is left to control flow. `defaults` hold only
    where control flow finds nothing. `owns_loop` says that the library calls backward and step
    itself; otherwise a loop of the job does, and `steps_inside` that the library decides within
    its own step call whether weights are updated. `replicas` divide the rows of a step where some
    processes share them (None: none do); `splits_rows` says that a loader's rows are those of all
    processes together (None: not known). `step` computes the loss, `fetches` give its rows.
    `unseen` says that some library is at work that is not followed.
    """

    site: CallSite
    owns_loop: bool = False
    steps_inside: bool = False
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])
    defaults: Mapping[str, Value] = field(default_factory=dict[str, Value])
    replicas: Value | None = None
    splits_rows: bool | None = False
    unseen: Unknown | None = None
    step: Scope | None = None
    fetches: tuple[Fetch, ...] = ()
