"""Confining a job: bubblewrap, else Landlock, else a refusal unless this host switched it off."""

from functools import cache

from infrarsi.errors import RunnerError
from infrarsi_runner.host import HostSettings
from infrarsi_runner.sandbox.bubblewrap import find_bubblewrap
from infrarsi_runner.sandbox.confinement import Confinement, Sandbox
from infrarsi_runner.sandbox.landlock import Guarded, find_landlock

__all__ = ["Confinement", "Sandbox", "choose_sandbox", "forget_detection"]

_bubblewrap = cache(find_bubblewrap)
_landlock = cache(find_landlock)


def choose_sandbox(host: HostSettings) -> Sandbox:
    """The strongest sandbox this host offers and its settings allow.

    Raises:
        RunnerError: there is none, and the host's settings do not switch it off.
    """
    if host.sandbox == "off":
        return Guarded(restricted=False)
    found: Sandbox | None = None
    if host.sandbox in ("auto", "bubblewrap"):
        found = _bubblewrap()
    if found is None and host.sandbox in ("auto", "landlock"):
        found = _landlock()
    if found is None:
        raise RunnerError(
            f"This machine offers no sandbox (asked for: {host.sandbox}), so no job is run.",
            "Install bubblewrap, or set sandbox in the runner's host.toml.",
        )
    return found


def forget_detection() -> None:
    """Look again what this host offers, the next time it is asked."""
    _bubblewrap.cache_clear()
    _landlock.cache_clear()
