"""Doctor as one blocking call with a way to stop it. Imported only when somebody asks for it.

The measuring itself is the runner's; what happens here is handing over, following, stopping.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infrarsi.errors import RunnerRefused
from infrarsi.wire.messages import EventBody
from infrarsi_server.operations.campaigns import (
    Wish,
    ended_well,
    follow_campaign,
    prepare_campaign,
    start_campaign,
)
from infrarsi_server.operations.doctor import DoctorReport, doctor_report
from infrarsi_server.operations.project import open_project
from infrarsi_server.runner_process import find_runner, need_runner, state_folder


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """One doctor campaign of the job a wish names, in the workspace at `root`."""

    root: Path
    wish: Wish
    environ: Mapping[str, str]
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self, report: Callable[[EventBody], None]) -> DoctorReport:
        """Start it and follow it to its end; `report` is called on this thread.

        Raises:
            InfraRSIError: it cannot be started, failed, or was stopped.
        """
        ready = prepare_campaign(open_project(self.root), self.wish, self.environ)
        state = state_folder(self.environ)
        with need_runner(state) as runner:
            campaign = start_campaign(ready, self.wish, runner).id
            if self._stopped.is_set():
                runner.stop(campaign)
            for event in follow_campaign(runner, campaign, state):
                report(event.body)
            return doctor_report(ended_well(runner.campaign(campaign)))

    def stop(self) -> None:
        """Stop the campaign, also one that is only about to start."""
        self._stopped.set()
        runner = find_runner(state_folder(self.environ))
        if runner is None:
            return
        with runner:
            try:
                runner.stop(self.wish.id)
            except RunnerRefused:
                return
