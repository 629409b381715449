"""The error tree. Expected outcomes (out of memory, a crash of the job) are values, not errors.

InfraRSIError
├── UsageError          exit 2: wrong arguments, no repository, no launch line
│   ├── LaunchRefused   exit 2: understood, and it would disturb what is measured
│   └── ConfigError     exit 2: infrarsi.toml or the lock cannot be used
├── RunnerError         exit 3: the daemon or the machine
│   ├── RunnerUnreachable
│   ├── RunnerRefused   the daemon answered with a refusal
│   │   └── RequestRefused  exit 2, a UsageError too: what was asked cannot be done
│   └── VersionMismatch
├── JobFailed           exit 2: the untouched baseline cannot be measured as it stands
├── EditConflict        the text moved on since the edit was computed
└── ImpossibleMfu       exit 3: more FLOPs than the roof allows: a measurement is wrong
"""


class InfraRSIError(Exception):
    """Root of all errors a person can act on.

    Args:
        what: one sentence, what was wrong, with the value.
        do: one sentence, what to do about it.
    """

    exit_code: int = 1

    def __init__(self, what: str, do: str = "") -> None:
        """Keep both sentences; `str()` joins them."""
        super().__init__(f"{what} {do}".strip())
        self.what = what
        self.do = do


class UsageError(InfraRSIError):
    """The command, its arguments or the folder it ran in."""

    exit_code = 2


class LaunchRefused(UsageError):
    """A launch line that is understood and would disturb the measurement.

    `code` is the violation it amounts to where a change brings it in.
    """

    def __init__(self, what: str, do: str, code: str) -> None:
        """Keep both sentences and the code."""
        super().__init__(what, do)
        self.code = code


class ConfigError(UsageError):
    """infrarsi.toml or the lock file cannot be read or used."""


class RunnerError(InfraRSIError):
    """The runner or the machine it runs on."""

    exit_code = 3


class RunnerUnreachable(RunnerError):
    """No daemon answers and none could be started."""


class RunnerRefused(RunnerError):
    """The daemon answered, and refused."""


class RequestRefused(UsageError, RunnerRefused):
    """The daemon is well and what was asked of it cannot be done: no such campaign, a used id."""


class VersionMismatch(RunnerError):
    """Server and runner speak no common protocol version."""


class JobFailed(InfraRSIError):
    """The user's own job, unchanged, does not run a window: it has to be mended first."""

    exit_code = 2


class EditConflict(InfraRSIError):
    """The text under an edit is no longer what the edit was computed from."""


class ImpossibleMfu(InfraRSIError):
    """A model FLOPs utilisation above 100 %: roof, FLOPs or time are measured wrongly."""

    exit_code = 3
