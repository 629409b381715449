"""A parsed launch line: which launcher, how many processes, which script with which arguments.

Only lines whose meaning is fully understood are accepted: `python`, `torchrun`, `accelerate
launch` and `deepspeed` on one node, with leading variable assignments. Shell syntax (pipes, `&&`,
expansions) is refused rather than guessed, because the runner rebuilds argv and environment
itself and never asks a shell; `reading/shell.py` reads the few forms of it that launch files use.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Literal, NoReturn

from infrarsi.errors import LaunchRefused, UsageError
from infrarsi.frozen import Frozen
from infrarsi.launchers import (
    PRIORITY,
    RENDEZVOUS,
    Started,
    accelerate_launch,
    deepspeed_launch,
    refuse_interpreter_option,
    refuse_variable,
)

Launcher = Literal["python", "torchrun"]


class Launch(Frozen):
    """One training job's launch.

    The runner builds argv and environment from this; the user's text never reaches a shell.
    `script` is a posix path relative to the workspace root.
    """

    launcher: Launcher = "python"
    n_processes: int = 1
    script: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}


def parse_launch(text: str) -> Launch:
    """Parse a launch line as a person would type it into a shell at the workspace root.

    Understood: `VAR=value ... [env VAR=value] python [-u] SCRIPT ARGS`, `torchrun OPTIONS SCRIPT
    ARGS`, `python -m torch.distributed.run OPTIONS SCRIPT ARGS`, and `accelerate launch` and
    `deepspeed` with the number of processes. Options that only say how the processes of one node
    find each other are accepted and dropped; the runner sets its own.

    Raises:
        LaunchRefused: the line is understood and would disturb what is measured.
        UsageError: the line is not one of these; says which word and what to write instead.
    """
    return parse_words(_split(text))


def parse_words(words: list[str]) -> Launch:
    """The same for a command that is already split into words.

    Raises:
        LaunchRefused: the line is understood and would disturb what is measured.
        UsageError: it is not understood.
    """
    words = list(words)
    env = _take_environment(words)
    for name, value in env.items():
        refuse_variable(name, value)
    env = {name: value for name, value in env.items() if name not in RENDEZVOUS}
    if not words:
        _refuse("The launch line names no command.", "Write it as `python train.py`.")
    command = words.pop(0)
    program = posixpath.basename(command)
    if program == "torchrun":
        return _torchrun(words, env)
    if re.fullmatch(r"python(3(\.\d+)?)?", program):
        return _python(words, env)
    if program == "accelerate" and words[:1] == ["launch"]:
        return _started(accelerate_launch(words[1:]), env)
    if program == "deepspeed":
        return _started(deepspeed_launch(words), env)
    if program in PRIORITY:
        raise LaunchRefused(
            f"The launch line runs the job under `{program}`.", _instead_of("bash"), "E501"
        )
    _refuse(f"The launcher `{program}` is not understood.", _instead_of(program))


def named_interpreter(text: str) -> str | None:
    """The interpreter's path where the line names one with a folder (`.venv/bin/python`)."""
    words = _split(text)
    _take_environment(words)
    is_path = bool(words) and "/" in words[0]
    return words[0] if is_path and posixpath.basename(words[0]).startswith("python") else None


def render_launch(launch: Launch) -> str:
    """The launch as one line for a shell or for `infrarsi.toml`; `parse_launch` reads it back."""
    words = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    if launch.launcher == "torchrun":
        words += ["torchrun", "--standalone", "--nproc-per-node", str(launch.n_processes)]
    else:
        words.append("python")
    script = f"./{launch.script}" if launch.script.startswith("-") else launch.script
    return " ".join([*words, shlex.join([script, *launch.args])])


def _python(words: list[str], env: dict[str, str]) -> Launch:
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag == "-m" and words[:1] == ["torch.distributed.run"]:
            return _torchrun(words[1:], env)
        if flag == "-m" and words[:1] == ["accelerate.commands.launch"]:
            return _started(accelerate_launch(words[1:]), env)
        if flag != "-u":
            refuse_interpreter_option(flag)
    return _finish("python", 1, words, env)


def _started(started: Started, env: dict[str, str]) -> Launch:
    n_processes = started.n_processes or 1
    launcher: Launcher = "torchrun" if n_processes > 1 else "python"
    return _finish(launcher, n_processes, started.words, {**env, **started.env})


def _torchrun(words: list[str], env: dict[str, str]) -> Launch:
    n_processes = 1
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        name = flag.lstrip("-").replace("_", "-")
        if name == "standalone":
            continue
        if name not in _TORCHRUN_VALUES:
            _refuse(
                f"The torchrun option `{flag}` is not understood.",
                "Keep to --standalone and --nproc-per-node on one node.",
            )
        if not equals:
            if not words:
                _refuse(f"The torchrun option `{flag}` has no value.", "Give it one.")
            value = words.pop(0)
        if name == "nproc-per-node":
            n_processes = _count(flag, value)
        elif name in _SINGLE_NODE and value != _SINGLE_NODE[name]:
            _refuse(f"`{flag} {value}` asks for more than one node.", "Launch on one node.")
    return _finish("torchrun", n_processes, words, env)


_SINGLE_NODE = {"nnodes": "1", "node-rank": "0"}
_TORCHRUN_VALUES = {
    "nproc-per-node",
    "master-addr",
    "master-port",
    "rdzv-backend",
    "rdzv-endpoint",
    "rdzv-id",
    "max-restarts",
    *_SINGLE_NODE,
}


def _count(flag: str, value: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,5}", value):
        _refuse(f"`{flag} {value}` is not a number of processes.", "Write a number such as 2.")
    return int(value)


def _finish(launcher: Launcher, n_processes: int, words: list[str], env: dict[str, str]) -> Launch:
    if not words:
        _refuse("The launch line names no script.", "Write it as `python train.py`.")
    script = posixpath.normpath(words[0])
    if posixpath.isabs(script) or script.split("/")[0] == "..":
        _refuse(
            f"The script `{words[0]}` is outside the workspace.",
            "Name it relative to the workspace root.",
        )
    if not script.endswith(".py"):
        _refuse(f"The script `{words[0]}` is not a Python file.", "Name the training script.")
    return Launch(
        launcher=launcher,
        n_processes=n_processes,
        script=script,
        args=tuple(words[1:]),
        env=env,
    )


def _take_environment(words: list[str]) -> dict[str, str]:
    env: dict[str, str] = {}
    if words[:1] == ["env"]:
        words.pop(0)
        if words and words[0].startswith("-"):
            raise LaunchRefused(
                f"`env {words[0]}` changes the whole environment.",
                "Write only VAR=value before the launcher.",
                "S406",
            )
    while words and (match := re.match(r"([A-Za-z_][A-Za-z0-9_]*)=", words[0])):
        env[match[1]] = words.pop(0)[match.end() :]
        if words[:1] == ["env"]:
            return env | _take_environment(words)
    return env


def _split(text: str) -> list[str]:
    joined = text.strip().replace("\\\r\n", " ").replace("\\\n", " ")
    if "\0" in joined:
        _refuse("The launch line contains a NUL character.", "Remove it.")
    for what in _shell_syntax(joined):
        _refuse(
            f"The launch line uses shell syntax (`{what}`), and no shell runs it.",
            "Write one plain command, with values spelled out or in single quotes.",
        )
    try:
        return shlex.split(joined)
    except ValueError as error:
        raise UsageError(
            f"The launch line cannot be split into words: {error}.", "Close the quotation mark."
        ) from error


def _shell_syntax(text: str) -> Iterator[str]:
    """Characters a shell would act on, outside the quotes that make them plain."""
    quote = ""
    previous = " "
    skip = False
    for character in text:
        at_start, previous = previous.isspace() or previous == "=", character
        if character == "\n":
            yield "a line break"
        elif skip:
            skip = False
        elif character == "\\" and quote != "'":
            skip = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in "$`":
                yield character
        elif character in "'\"":
            quote = character
        elif character in "|&;<>()$`*?{" or (character in "~#" and at_start):
            yield character


def _refuse(what: str, do: str) -> NoReturn:
    raise UsageError(what, do)


def _instead_of(program: str) -> str:
    if program in {"accelerate", "srun", "sbatch", "mpirun", "mpiexec", "horovodrun"}:
        return "Give the `torchrun` line it amounts to on one node."
    if program in {"bash", "sh", "zsh", "make", "uv", "poetry", "pipenv", "conda", "sudo", "nohup"}:
        return "Give the `python` or `torchrun` line it ends up running."
    return "Start the line with `python` or `torchrun`."
