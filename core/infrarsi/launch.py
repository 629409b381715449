"""A parsed launch line: which launcher, how many processes, which script with which arguments."""

from typing import Literal

from infrarsi.frozen import Frozen


class Launch(Frozen):
    """One training job's launch.

    The runner builds argv and environment from this; the user's text never reaches a shell.
    `script` is a posix path relative to the workspace root.
    """

    launcher: Literal["python", "torchrun"] = "python"
    n_processes: int = 1
    script: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
