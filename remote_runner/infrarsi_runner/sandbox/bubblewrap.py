"""The first choice: mount, process, network and ipc namespaces of the job's own, no capabilities.

The network holds nothing but loopback, which is enough for the ranks of one machine.
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from infrarsi_runner.sandbox.confinement import Confinement

_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM = (
    "/usr",
    "/nix/store",
    "/opt/rocm",
    "/sys/devices/system",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/certs",
)
_DEVICES = ("nvidia*", "kfd", "dri", "infiniband")
_NAMESPACES = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")


class Bubblewrap:
    """Needs the bwrap program and user namespaces."""

    level = "bubblewrap"
    can_mount = True

    def __init__(self, program: str) -> None:
        """Keep the program's path."""
        self._program = program

    def wrap(self, argv: tuple[str, ...], confinement: Confinement) -> tuple[str, ...]:
        """Binds go from the least to the most specific, so that later ones show through."""
        options = [*_NAMESPACES, "--hostname", "sandbox"]
        if Path("/") in confinement.readable:
            options += ["--ro-bind", "/", "/"]
        else:
            options += [*_system(), *_binds("--ro-bind-try", _SYSTEM)]
        options += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", *_devices()]  # noqa: S108
        options += ["--bind", str(confinement.tmp), "/tmp"]  # noqa: S108
        options += _binds("--ro-bind", (str(p) for p in confinement.readable if p != Path("/")))
        options += _binds("--bind", map(str, confinement.writable))
        for target, source in confinement.mounts.items():
            options += ["--bind", str(source), str(target)]
        for file in sorted(confinement.etc.iterdir()) if confinement.etc else ():
            options += ["--ro-bind", str(file), f"/etc/{file.name}"]
        return (self._program, *options, "--chdir", str(confinement.cwd), "--", *argv)

    def tmp(self, confinement: Confinement) -> Path:
        """Always /tmp: short, because sockets are made in it."""
        return Path("/tmp")  # noqa: S108


def find_bubblewrap() -> Bubblewrap | None:
    """Bubblewrap, if it is installed and the kernel lets it work; tried by running it once."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    test = (program, "--ro-bind", "/", "/", *_NAMESPACES, "true")
    works = subprocess.run(test, capture_output=True, timeout=30, check=False).returncode == 0
    return Bubblewrap(program) if works else None


def _system() -> Iterator[str]:
    for name in _MERGED:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.is_dir():
            yield from ("--ro-bind", name, name)


def _devices() -> Iterator[str]:
    found = [str(p) for pattern in _DEVICES for p in sorted(Path("/dev").glob(pattern))]
    yield from _binds("--dev-bind", found)
    if found:
        yield from ("--ro-bind", "/sys", "/sys")


def _binds(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (option, path, path)]
