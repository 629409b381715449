"""What `accelerate launch` and `deepspeed` amount to on one node, as torchrun would start it.

Also the variables and interpreter options that are refused, with the code each one breaks.
Options that only say how the processes of one node find each other are dropped.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn

from infrarsi.errors import LaunchRefused, UsageError

_PYTHON_ALLOWED = {
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "PYTHONWARNINGS",
    "PYTHONFAULTHANDLER",
    "PYTHONUNBUFFERED",
}
_OURS = {"PATH", "HOME", "ENV", "BASH_ENV"}
_OURS_PREFIXES = ("INFRARSI_", "TORCHELASTIC_", "BASH_FUNC_", "PYTHON")
RENDEZVOUS = {"MASTER_ADDR", "MASTER_PORT"}
PRIORITY = {"nice", "ionice", "chrt", "taskset", "numactl", "prlimit", "cgexec", "renice"}
"""Programs that give a command other processors or another priority."""


@dataclass
class Started:
    """The words left after a launcher's own options, how many processes, and what it sets."""

    words: list[str]
    n_processes: int | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])


def accelerate_launch(words: list[str]) -> Started:
    """Take the options of `accelerate launch`; the script and its arguments are left.

    The variables are those that accelerate itself hands to the script.

    Raises:
        UsageError: an option is not understood, or the number of processes is not written.
    """
    started = Started(list(words))
    while started.words and started.words[0].startswith("-"):
        flag, name, value = _option(started.words, _ACCELERATE_ALONE, "accelerate launch")
        if name == "num-processes":
            started.n_processes = _count(flag, value)
        elif name in _ACCELERATE_SETS:
            text = value.lower() if name != "dynamo-backend" else value.upper()
            started.env[_ACCELERATE_SETS[name]] = text
        elif name in {"cpu", "use-cpu"}:
            started.env["ACCELERATE_USE_CPU"] = "True"
        elif name in _ONE_NODE and value != _ONE_NODE[name]:
            _more_nodes(flag, value)
        elif name not in {*_ONE_NODE, *_DROPPED, "multi-gpu", "same-network"}:
            _unknown(flag, "accelerate launch", "--num_processes and --mixed_precision")
    if started.n_processes is None:
        raise UsageError(
            "`accelerate launch` without --num_processes starts as many as the machine has.",
            "Add --num_processes, or give the `torchrun` line it amounts to.",
        )
    return started


def deepspeed_launch(words: list[str]) -> Started:
    """Take the options of `deepspeed`; the script and its arguments are left.

    The `--local_rank` that deepspeed adds to each process's arguments is not.

    Raises:
        UsageError: an option is not understood, or the number of processes is not written.
    """
    started = Started(list(words))
    while started.words and started.words[0].startswith("-"):
        flag, name, value = _option(started.words, {"no-local-rank"}, "deepspeed")
        if name == "num-gpus":
            started.n_processes = _count(flag, value)
        elif name in {"include", "i"}:
            host, _, devices = value.partition(":")
            if host != "localhost" or not re.fullmatch(r"\d+(,\d+)*", devices):
                _more_nodes(flag, value)
            started.n_processes = devices.count(",") + 1
        elif name in _ONE_NODE and value != _ONE_NODE[name]:
            _more_nodes(flag, value)
        elif name not in {*_ONE_NODE, *_DROPPED, "no-local-rank"}:
            _unknown(flag, "deepspeed", "--num_gpus")
    if started.n_processes is None:
        raise UsageError(
            "`deepspeed` without --num_gpus starts as many processes as the machine has devices.",
            "Add --num_gpus, or give the `torchrun` line it amounts to.",
        )
    return started


def refuse_variable(name: str, value: str) -> None:
    """Refuse a variable that would keep measurements out of the process or load code into it.

    Raises:
        LaunchRefused: with the code the variable breaks.
    """
    code = None
    if name.startswith(("LD_", "DYLD_")):
        code = "S407"
    elif name == "PYTHONOPTIMIZE" and value not in ("", "0"):
        code = "S415"
    elif name in _OURS or name.startswith(_OURS_PREFIXES):
        code = None if name in _PYTHON_ALLOWED else "S406"
    if code is not None:
        raise LaunchRefused(
            f"The launch line sets {name}, which the runner has to set itself.",
            "Take it out of the launch line.",
            code,
        )


def refuse_interpreter_option(flag: str) -> NoReturn:
    """Refuse an option of `python` other than -u.

    Raises:
        LaunchRefused: the option keeps measurements out or assertions off.
        UsageError: any other.
    """
    what = f"The interpreter option `{flag}` is not accepted."
    letters = flag[1:] if re.fullmatch(r"-[A-Za-z]+", flag) else ""
    if set(letters) & set("SIEPs") and flag[1:2] not in ("c", "m", "W", "X"):
        do = "It would keep measurements out of the process; leave it out."
        raise LaunchRefused(what, do, "S406")
    if "O" in letters and flag[1:2] not in ("c", "m", "W", "X"):
        raise LaunchRefused(what, "It would drop assertions; leave it out.", "S415")
    if flag.startswith(("-c", "-m")):
        raise UsageError(what, "Put the code in a script file and name that file.")
    raise UsageError(what, "Leave it out.")


_ACCELERATE_SETS = {
    "mixed-precision": "ACCELERATE_MIXED_PRECISION",
    "gradient-accumulation-steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
    "gradient-clipping": "ACCELERATE_GRADIENT_CLIPPING",
    "dynamo-backend": "ACCELERATE_DYNAMO_BACKEND",
    "num-cpu-threads-per-process": "OMP_NUM_THREADS",
}
_ACCELERATE_ALONE = {"cpu", "use-cpu", "multi-gpu", "same-network"}
_ONE_NODE = {
    "num-machines": "1",
    "machine-rank": "0",
    "num-nodes": "1",
    "node-rank": "0",
    "gpu-ids": "all",
}
_DROPPED = {
    "main-process-port",
    "main-process-ip",
    "master-port",
    "master-addr",
    "rdzv-backend",
    "max-restarts",
}


def _option(words: list[str], alone: set[str], program: str) -> tuple[str, str, str]:
    """Take one option off the words: as written, its name with dashes, its value."""
    flag, equals, value = words.pop(0).partition("=")
    name = flag.lstrip("-").replace("_", "-")
    if not equals and name not in alone:
        if not words:
            raise UsageError(f"The {program} option `{flag}` has no value.", "Give it one.")
        value = words.pop(0)
    return flag, name, value


def _count(flag: str, value: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", value):
        raise UsageError(
            f"`{flag} {value}` is not a number of processes.", "Write a number such as 2."
        )
    return int(value)


def _more_nodes(flag: str, value: str) -> NoReturn:
    raise UsageError(f"`{flag} {value}` asks for more than one node.", "Launch on one node.")


def _unknown(flag: str, program: str, known: str) -> NoReturn:
    raise UsageError(
        f"The {program} option `{flag}` is not understood.",
        f"Keep to {known}, or give the `torchrun` line it amounts to.",
    )
