"""E509: tuning before the first step is bounded.

Searching for the fastest kernels over hours costs what the steps then save. Compiler modes and
switches that search without a bound are looked for. Plain compilation and cudnn's short
benchmark are allowed.

Mend it by compiling in the default mode, or by giving the search a bound.
"""

import ast
from collections.abc import Iterator

from infrarsi.contract import CONFIG_PATH, Violation, place_of
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Program
from infrarsi.rules.change import Change
from infrarsi.rules.fragments import Fragment, fresh
from infrarsi.rules.remembered import remembered

CODE = "E509"
_SWITCHES = (
    *("max_autotune", "coordinate_descent", "coordinate_descent_tuning", "max-autotune"),
    *("autotune_in_subproc", "exhaustive", "search_autotune_cache", "autotune_multi_device"),
    *("TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING", "benchmark_limit"),
    *("TORCHINDUCTOR_SEARCH_AUTOTUNE", "tunable", "TUNABLEOP", "beam_search_size"),
)
_HELD = "the contract holds tuning before the first step bounded"


def find(change: Change) -> Iterator[Violation]:
    """A warning for each switch that searches, on the launch line or in code."""
    if change.sides is None:
        return
    now, was = change.sides
    for name, value in now.launch.env.items():
        is_switch = any(word.upper() in name for word in ("MAX_AUTOTUNE", "DESCENT", "TUNABLE"))
        if is_switch and was.launch.env.get(name) != value:
            text = change.sources.text(CONFIG_PATH)
            line = place_of(text, change.contract.job, "launch") if text is not None else None
            yield _found(f"{name}={value}", line)
    for piece in fresh(_switches(now), _switches(was)):
        yield _found(piece.text[:70], piece.place)


def _found(what: str, place: Place | None) -> Violation:
    return violation(
        CODE,
        f"`{what}` searches for kernels without a bound; {_HELD}.",
        severity="warning",
        place=place,
    )


@remembered
def _switches(program: Program) -> list[Fragment]:
    """Statements and arguments that name a switch."""
    found: list[Fragment] = []
    for file, source in program.project.files.items():
        if not any(name in source.text for name in _SWITCHES):
            continue
        for node in source.nodes:
            if _is_switch(node) and not _is_off(source.parents, node):
                scope = program.project.scope_of(file, node)
                found.append(Fragment(program, scope, source.statement(node)))
    return list({piece.node: piece for piece in found}.values())


def _is_switch(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return text.startswith(_SWITCHES)
        case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            return name.startswith(_SWITCHES)
        case _:
            return False


def _is_off(parents: dict[ast.AST, ast.AST], node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.keyword) else None
    parent = parents.get(node)
    if isinstance(parent, ast.Assign):
        value = parent.value
    return isinstance(value, ast.Constant) and value.value in (False, 0, None)
