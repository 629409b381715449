"""Progress of a campaign on standard error: a live table on a terminal, plain lines elsewhere."""

from types import TracebackType
from typing import Protocol, assert_never

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from infrarsi.report.outcomes import describe_outcome
from infrarsi.report.printable import one_line
from infrarsi.trial import Completed, OutOfMemory, Trial
from infrarsi.units import format_ratio, format_seconds
from infrarsi.wire.messages import (
    Event,
    Plan,
    Planned,
    Progressed,
    StateChanged,
    TableChanged,
    TrialEnded,
)

_SHOWN_TRIALS = 15
_REFRESH_PER_S = 4


class Progress(Protocol):
    """Something events are shown on."""

    def __enter__(self) -> "Progress":
        """Begin."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""
        ...

    def show(self, event: Event) -> None:
        """Show one event."""
        ...


def progress_on(console: Console) -> Progress:
    """The live table on a terminal, plain lines elsewhere."""
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)


def plan_lines(plan: Plan) -> list[str]:
    """What will be run and for how long."""
    about = f"This takes about {format_seconds(plan.expected_s)}."
    return [*(one_line(sentence, 500) for sentence in plan.sentences), about]


class PlainProgress:
    """One line an event; what repeats is said once."""

    def __init__(self, console: Console) -> None:
        """Write to that console."""
        self._console = console
        self._last = ""

    def __enter__(self) -> "PlainProgress":
        """Nothing to begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to leave."""

    def show(self, event: Event) -> None:
        """Print the event's line."""
        for line in _lines(event):
            if line != self._last:
                self._console.print(Text(line), soft_wrap=True)
                self._last = line


class LiveProgress:
    """The plan, the stage, the newest trials, best so far, out-of-memory count, time left."""

    def __init__(self, console: Console) -> None:
        """Draw on that console."""
        self._live = Live(console=console, refresh_per_second=_REFRESH_PER_S, transient=False)
        self._console = console
        self._stage: Progressed | None = None
        self._trials: list[TrialEnded] = []
        self._best: float | None = None
        self._n_oom = 0

    def __enter__(self) -> "LiveProgress":
        """Take over the lower part of the terminal."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last picture standing."""
        self._live.stop()

    def show(self, event: Event) -> None:
        """Take the event into the picture."""
        match event.body:
            case Progressed():
                self._stage = event.body
            case TrialEnded():
                self._trials.append(event.body)
                self._best, self._n_oom = event.body.best_ratio, event.body.n_oom
            case TableChanged():
                return
            case Planned() | StateChanged():
                for line in _lines(event):
                    self._console.print(Text(line))
            case _:
                assert_never(event.body)
        self._live.update(self.picture())

    def picture(self) -> Group:
        """Everything as it stands."""
        parts: list[Table | Text] = [_trial_table(self._trials)] if self._trials else []
        if self._stage is not None:
            parts.append(Text(_stage_line(self._stage), style="bold"))
        if self._trials:
            parts.append(Text(_summary(self._best, self._n_oom)))
        return Group(*parts)


def _trial_table(trials: list[TrialEnded]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("#", "change", "outcome", "took"):
        table.add_column(column, overflow="fold")
    hidden = len(trials) - _SHOWN_TRIALS
    if hidden > 0:
        table.add_row("", Text(f"{hidden} earlier", style="dim"), "", "")
    for ended in trials[-_SHOWN_TRIALS:]:
        trial = ended.trial
        table.add_row(
            str(trial.number),
            Text(_change(ended)),
            Text(one_line(describe_outcome(trial.outcome)), style=_style(trial)),
            format_seconds(trial.wall_s),
        )
    return table


def _style(trial: Trial) -> str:
    match trial.outcome:
        case Completed():
            return "green"
        case OutOfMemory():
            return "yellow"
        case _:
            return "red"


def _lines(event: Event) -> list[str]:
    match event.body:
        case Planned():
            return plan_lines(event.body.plan)
        case Progressed():
            return [_stage_line(event.body)]
        case TrialEnded():
            trial = event.body.trial
            outcome = describe_outcome(trial.outcome)
            told = _summary(event.body.best_ratio, event.body.n_oom)
            return [f"trial {trial.number}: {_change(event.body)}: {outcome} ({told})"]
        case StateChanged():
            return [one_line(f"{event.body.state}. {event.body.what}", 500)]
        case TableChanged():
            return []
        case _:
            assert_never(event.body)


def _stage_line(stage: Progressed) -> str:
    count = f" {stage.done}/{stage.total}" if stage.total else ""
    left = "" if stage.left_s is None else f", about {format_seconds(stage.left_s)} left"
    return f"{stage.stage}{count}: {one_line(stage.message)}{left}"


def _summary(best: float | None, n_oom: int) -> str:
    found = "nothing faster yet" if best is None or best <= 1 else f"best {format_ratio(best)}"
    return f"{found}, {n_oom} out of memory"


def _change(ended: TrialEnded) -> str:
    """What the trial changed; its whole setting without the switches that are off if not told."""
    told = ended.changed or {
        knob: value for knob, value in ended.trial.candidate.setting.items() if value is not False
    }
    on = [knob if value is True else f"{knob}={value}" for knob, value in told.items()]
    return one_line(", ".join(on)) or "baseline"
