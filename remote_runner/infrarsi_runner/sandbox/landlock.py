"""The second choice: Landlock alone, and the choice to confine nothing, behind the same guard."""

import json
import sys
from pathlib import Path

from infrarsi_runner.sandbox import guard
from infrarsi_runner.sandbox.confinement import Confinement

_READABLE = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt/rocm",
    "/proc",
    "/sys/devices/system",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/certs",
    "/etc/passwd",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/dev/urandom",
    "/dev/random",
)
_WRITABLE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/shm")  # noqa: S108
_DEVICES = ("nvidia*", "kfd", "dri", "infiniband")


class Guarded:
    """A job below the guard; `restricted` by Landlock or not."""

    can_mount = False

    def __init__(self, *, restricted: bool) -> None:
        """Choose between the levels `landlock` and `off`."""
        self._restricted = restricted
        self.level = "landlock" if restricted else "off"

    def wrap(self, argv: tuple[str, ...], confinement: Confinement) -> tuple[str, ...]:
        """Paths keep their own names; mounts are not honoured."""
        devices = [str(p) for pattern in _DEVICES for p in Path("/dev").glob(pattern)]
        setup = {
            "restrict": self._restricted,
            "readable": [*_READABLE, *map(str, confinement.readable)],
            "writable": [
                *_WRITABLE,
                *devices,
                str(confinement.tmp),
                *map(str, confinement.writable),
            ],
        }
        return (sys.executable, "-I", "-S", guard.__file__, json.dumps(setup), "--", *argv)

    def tmp(self, confinement: Confinement) -> Path:
        """The folder under its own name."""
        return confinement.tmp


def find_landlock() -> Guarded | None:
    """Landlock, if this kernel has it."""
    return Guarded(restricted=True) if guard.landlock_abi() > 0 else None
