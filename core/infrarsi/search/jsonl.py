"""The searcher behind lines of JSON, so that a daemon can host it in a child process.

One request a line, one answer a line: `{"ok": true, "result": ...}` or
`{"ok": false, "what", "do"}`. The first request is `start`; operations are

    start    space, job, claims, seed, conflicts   (a setting that has all of a conflict's values
                                                    is not allowed)
    ask      null where every allowed setting was tried
    tell (setting, outcome) | best | predict (settings) | prices | reliability
    suspects (setting)

Leaves out reading and writing: lines come in and go out through arguments.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from infrarsi.errors import InfraRSIError, UsageError
from infrarsi.knobs import Setting
from infrarsi.search.searcher import Searcher
from infrarsi.search.space import Valid

Request = Mapping[str, Any]

_SEE = "See search.jsonl."


def serve(lines_in: Iterable[str], write: Callable[[str], None]) -> None:
    """Answer every line until they end; a bad request is answered, never raised."""
    searcher: Searcher | None = None
    for line in lines_in:
        if not line.strip():
            continue
        try:
            request = _read(line)
            if request["op"] == "start":
                searcher = _start(request)
                answer: dict[str, Any] = {"ok": True, "result": None}
            elif searcher is None:
                raise UsageError("The search was not started.", "Send start first.")
            else:
                answer = {"ok": True, "result": _carry_out(searcher, request)}
        except InfraRSIError as error:
            answer = {"ok": False, "what": error.what, "do": error.do}
        except (AttributeError, TypeError, ValueError) as error:
            answer = {"ok": False, "what": f"A field is of the wrong type ({error}).", "do": _SEE}
        write(json.dumps(answer) + "\n")


def _read(line: str) -> Request:
    try:
        request = json.loads(line)
    except ValueError as error:
        raise UsageError(f"A request is not JSON ({error}).", "Send one object a line.") from error
    if not isinstance(request, dict) or not isinstance(request.get("op"), str):
        raise UsageError("A request names no operation.", 'Send {"op": ...}.')
    return request


def _start(request: Request) -> Searcher:
    return Searcher(
        _field(request, "space", Mapping),
        valid=_refuse(request.get("conflicts") or ()),
        job=request.get("job"),
        claims=request.get("claims") or (),
        seed=int(request.get("seed") or 0),
    )


def _carry_out(searcher: Searcher, request: Request) -> object:
    match request["op"]:
        case "ask":
            return None if searcher.exhausted() else searcher.ask()
        case "tell":
            setting = _field(request, "setting", Mapping)
            return searcher.tell(setting, _field(request, "outcome", Mapping))
        case "best":
            return searcher.best()
        case "predict":
            return searcher.predict(_field(request, "settings", list))
        case "prices":
            return searcher.prices()
        case "reliability":
            return searcher.reliability()
        case "suspects":
            return searcher.suspects(_field(request, "setting", Mapping))
        case unknown:
            raise UsageError(f"There is no operation {unknown!r}.", _SEE)


def _field(request: Request, name: str, kind: type) -> Any:
    value = request.get(name)
    if not isinstance(value, kind):
        raise UsageError(f"{request['op']} needs {name}.", _SEE)
    return value


def _refuse(conflicts: Iterable[Setting]) -> Valid | None:
    listed = [dict(conflict) for conflict in conflicts if conflict]
    if not listed:
        return None

    def valid(setting: Setting) -> str | None:
        for conflict in listed:
            if all(setting.get(name) == value for name, value in conflict.items()):
                return f"{', '.join(conflict)} exclude each other"
        return None

    return valid
