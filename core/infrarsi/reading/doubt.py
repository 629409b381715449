"""Where the absence of something is no evidence: a library not followed, a line half typed.

That gradients are not clipped, that nothing is cast, that every pass steps: such values say that
nothing was found. They do not stand where it may be hidden.
"""

import re

from infrarsi.reading.project import Project
from infrarsi.reading.trainers.library_job import LibraryJob
from infrarsi.reading.values import Known, Unknown, Value

_ABSENT = {"clip": "none", "precision": "fp32", "parameters": "fp32", "accumulation": 1}
_WORDS = {
    "clip": re.compile("clip|norm"),
    "precision": re.compile(r"autocast|amp|precision|fp16|bf16|float16|half|dtype|with\b|ctx"),
    "parameters": re.compile(r"(model|net)\s*=|float16|bf16|fp16|half\b|dtype|\.to\(|precision"),
    "accumulation": re.compile(r"accum|micro|for\b|while\b|%|step"),
}


def doubted(
    project: Project, library: LibraryJob | None, name: str, value: Value, *, has_loop: bool = True
) -> Value:
    """The value, or why what was merely not found may be there all the same."""
    if name not in _ABSENT or not isinstance(value, Known):
        return value
    if value.origins or value.place is not None:
        return value
    if value.value != _ABSENT[name] or isinstance(value.value, bool):
        return value
    if library is not None and library.unseen is not None:
        return library.unseen
    if not has_loop and name == "parameters":
        return Unknown("no training loop was found")
    half_typed = any(_WORDS[name].search(text) for text in project.lost())
    return Unknown("a line that may set it is half typed") if half_typed else value
