"""One job from its start to its result: watched, limited, paused, ended, and what it left read.

Single-threaded: whoever drives it calls `pump` (or one of the waits) and everything that is due
happens there. Leaves out the order of things: see `running` for one run, `turns` for pairs.
"""

import os

from infrarsi.errors import RunnerError
from infrarsi.run import RunEnd, RunObservation
from infrarsi.wire.probe import RunnerLine, StopCommand
from infrarsi_runner import process_tree
from infrarsi_runner.control import ControlSocket
from infrarsi_runner.ending import Traces, signal_of, why_it_ended
from infrarsi_runner.evidence import read_evidence
from infrarsi_runner.folders import remove_folder
from infrarsi_runner.job_log import JobLog
from infrarsi_runner.launch.base import Ended
from infrarsi_runner.memory_watch import MemoryWatch
from infrarsi_runner.preparing import prepare
from infrarsi_runner.process_tree import ProcessTree
from infrarsi_runner.run_spec import RunResult, RunSpec
from infrarsi_runner.site import Site

_POLL_S = 0.25
_LINGER_S = 30.0


class LiveJob:
    """A started job. Use as a context: leaving it kills whatever is left and frees sockets."""

    def __init__(self, spec: RunSpec, site: Site) -> None:
        """Prepare and start it. Raises UsageError or RunnerError; then nothing runs."""
        self.spec = spec
        self._site = site
        self._prepared = prepare(spec, site)
        self.control = ControlSocket(self._prepared.socket, site.clock, self._is_ours)
        self._oom_kills = process_tree.n_kernel_oom_kills()
        self._started_s = site.clock()
        try:
            self._job, pipe = site.launcher.start(self._prepared.command)
        except RunnerError:
            self._drop_workings()
            raise
        site.ledger.started(self._job, self._prepared.folder.path)
        self._log = JobLog(pipe, self._prepared.folder.log)
        self._wake = os.pidfd_open(self._job.pid)
        self.control.wake_on(self._wake)
        self._tree = ProcessTree(self._job.pid)
        self._memory = MemoryWatch(spec.memory_budget_bytes)
        self._ended: Ended | None = None
        self._because: RunEnd | None = None
        self._next_poll_s = 0.0
        self._next_memory_s = 0.0
        self._took_turns = False
        self._paused_at_s: float | None = None
        self._paused_s = 0.0
        self._cpu_at_pause_s = 0.0
        self._cpu_outside_s = 0.0
        self._cpu_at_step: dict[int, float] = {}
        self._last_step_s: float | None = None
        self._stop_after: int | None = None

    def __enter__(self) -> "LiveJob":
        """The job itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Kill what is left of it; forget it only once nothing is."""
        self.kill()
        os.close(self._wake)
        self._log.finish()
        self._site.ledger.ended(self._job)
        self._drop_workings()

    @property
    def alive(self) -> bool:
        """Whether it has not been seen to end."""
        return self._ended is None

    @property
    def n_ranks(self) -> int:
        """How many ranks announce each step."""
        if self.spec.launch.launcher == "torchrun":
            return self.spec.launch.n_processes
        return max((rank.world_size for rank in self.control.ranks.values()), default=1)

    def steps(self) -> dict[int, float]:
        """When, in s, the last of all ranks ended each step."""
        ends = {i: self.control.ended_together(i, self.n_ranks) for i in self.control.arrivals}
        return {index: at_s for index, at_s in ends.items() if at_s is not None}

    def last_step(self) -> int:
        """The last step that every rank has ended; -1 before the first."""
        return max(self.steps(), default=-1)

    def wait_for_step(self, index: int) -> bool:
        """Let it run until every rank has ended that step; false if it ended before."""
        while self.alive and not self._reached(index):
            self.pump(_POLL_S)
        return self._reached(index)

    def wait_for_end(self) -> None:
        """Let it run until it has ended."""
        while self.alive:
            self.pump(_POLL_S)

    def ended_well(self) -> bool:
        """Whether it has ended by itself, all steps done, with success."""
        return self._ended is not None and self._ended.exit_code == 0 and self._reached_window()

    def send(self, line: RunnerLine) -> None:
        """Send a command to every rank."""
        if isinstance(line, StopCommand):
            self._stop_after = line.after
        self.control.send(line)

    def pump(self, timeout_s: float) -> None:
        """Take in what happens within `timeout_s`, and do what is due. Raises Cancelled."""
        self._site.stop.check()
        n_before = len(self.control.steps)
        self.control.wait(timeout_s)
        if len(self.control.steps) > n_before:
            self._note_steps()
        self._ended = self._site.launcher.poll(self._job)
        now_s = self._site.clock()
        if self._ended is None and now_s >= self._next_poll_s:
            self._next_poll_s = now_s + _POLL_S
            self._check_limits(now_s)

    def pause(self) -> bool:
        """Stop all its processes; false where they could not all be stopped."""
        self._took_turns = True
        stopped = self._tree.pause()
        while self.control.wait(0.0):
            pass
        self._paused_at_s = self._site.clock()
        self._cpu_at_pause_s = self._tree.cpu_s()
        return stopped

    def resume(self) -> float:
        """Let it go on; the processor seconds it used while it was paused."""
        assert self._paused_at_s is not None
        used_s = max(0.0, self._tree.cpu_s() - self._cpu_at_pause_s)
        self._cpu_outside_s += used_s
        self._end_pause()
        self._tree.resume()
        return used_s

    def kill(self, because: RunEnd | None = None) -> None:
        """End it and all it started; `because` is kept as the run's end if none is known."""
        if self._ended is None:
            self._because = self._because or because
            self._end_pause()
            self._memory.sample(self._tree.members(), {})
            self._tree.cpu_s()
            self._site.launcher.kill(self._job)
            while self._ended is None:
                self._ended = self._site.launcher.poll(self._job)

    def result(self) -> RunResult:
        """What is left of it; call once it has ended."""
        assert self._ended is not None
        ended_s, cpu_s = self._site.clock(), max(self._tree.cpu_s(), self._ended.cpu_s)
        folder = self._prepared.folder
        moved = (str(self._prepared.tree), str(self.spec.tree))
        evidence, problems = read_evidence(folder.evidence, moved if moved[0] != moved[1] else None)
        tail = self._log.finish()
        end = why_it_ended(
            Traces(
                exit_code=self._ended.exit_code,
                ended_by_runner=self._because,
                reached_window=self._reached_window(),
                evidence=evidence,
                n_ranks=self.n_ranks,
                log_tail=tail,
                kernel_oom_kills=process_tree.n_kernel_oom_kills() - self._oom_kills,
                memory_used_frac=self._memory.used_frac(),
            )
        )
        first_s = min(self.steps().values(), default=None)
        return RunResult(
            observation=RunObservation(
                end="stopped" if end == "finished" and self._took_turns else end,
                exit_code=self._ended.exit_code,
                signal=signal_of(self._ended.exit_code),
                wall_s=ended_s - self._started_s - self._paused_s,
                cpu_s=cpu_s,
                peak_rss_bytes=self._memory.peaks(self._rank_pids(), self.n_ranks),
                steps=tuple(self.control.steps),
                cpu_outside_turn_s=self._cpu_outside_s,
                sandbox_level=self._site.sandbox.level,
                log_tail=tail,
            ),
            evidence=evidence,
            folder=str(folder.path),
            evidence_dir=str(folder.evidence),
            startup_wall_s=first_s - self._started_s if first_s is not None else 0.0,
            startup_cpu_s=self._cpu_at_step.get(0, 0.0),
            window_cpu_s=self._window_cpu_s(),
            changed_files=folder.changed_since(self.spec.tree),
            problems=problems,
        )

    def _end_pause(self) -> None:
        if self._paused_at_s is not None:
            self._paused_s += self._site.clock() - self._paused_at_s
            self._paused_at_s = None

    def _drop_workings(self) -> None:
        self.control.close()
        if self._prepared.socket is not None:
            remove_folder(self._prepared.socket.parent)
        self._prepared.folder.drop_workings()

    def _note_steps(self) -> None:
        """Keep the processor time at the steps that bound something."""
        now_s = self._last_step_s = self._site.clock()
        if now_s >= self._next_memory_s:
            self._next_memory_s = now_s + _POLL_S / 4
            self._memory.sample(self._rank_pids().values(), self._rank_pids())
        for index in (0, self.spec.warmup_steps - 1, self.spec.last_step):
            if index not in self._cpu_at_step and self._reached(index):
                self._cpu_at_step[index] = self._tree.cpu_s()

    def _check_limits(self, now_s: float) -> None:
        members = self._tree.members()
        self._tree.cpu_s()
        if self._memory.sample(members, self._rank_pids()):
            self.kill("out_of_memory")
        elif now_s - self._started_s - self._paused_s > self.spec.timeout_s:
            self.kill("timeout")
        elif self._lingers(now_s):
            self.kill("finished")

    def _lingers(self, now_s: float) -> bool:
        """Whether it has ended its last step long ago and does not leave."""
        done = self._stop_after is not None and self._reached(self._stop_after)
        return done and self._last_step_s is not None and now_s - self._last_step_s > _LINGER_S

    def _reached(self, index: int) -> bool:
        return self.control.ended_together(index, self.n_ranks) is not None

    def _reached_window(self) -> bool:
        """Whether it did all the steps that were asked of it, where the runner counts them."""
        if not self.spec.counted:
            return True
        return self._stop_after is not None and self._reached(self._stop_after)

    def _window_cpu_s(self) -> float | None:
        first = self.spec.warmup_steps - 1
        a, b = self._cpu_at_step.get(first), self._cpu_at_step.get(first + self.spec.window_steps)
        return b - a if a is not None and b is not None else None

    def _rank_pids(self) -> dict[int, int]:
        return {number: rank.pid for number, rank in self.control.ranks.items()}

    def _is_ours(self, pid: int) -> bool:
        return process_tree.descends_from(pid, self._job.pid)
