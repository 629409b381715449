"""L218: no function gives way to one that only comes close.

GELU's tanh form, a cheaper activation, another epsilon or fewer iterations of a matrix root are
other functions. Exact rewrites are fine: SDPA for a written-out softmax, `F.silu` for
`x * sigmoid(x)`, a library norm for one's own.

Mend it by the baseline's function.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from infrarsi.contract import Violation
from infrarsi.contract.catalogue import violation
from infrarsi.place import Place
from infrarsi.reading import Call, Program
from infrarsi.reading.scopes import Scope
from infrarsi.reading.syntax import unparse
from infrarsi.reading.values import Known
from infrarsi.reading.walking import walk
from infrarsi.rules.change import Change
from infrarsi.rules.loss.methods import body_text, changed_methods

CODE = "L218"
_ACTIVATIONS = {
    "gelu": "GELU",
    "relu": "ReLU",
    "relu_": "ReLU",
    "relu6": "ReLU6",
    "silu": "SiLU",
    "swish": "SiLU",
    "mish": "Mish",
    "hardswish": "Hardswish",
    "hardtanh": "Hardtanh",
    "hardsigmoid": "Hardsigmoid",
    "leaky_relu": "LeakyReLU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "softplus": "Softplus",
    "softsign": "Softsign",
}
_PARTS = {"GELU": {"erf", "erfc"}, "SiLU": {"sigmoid"}, "Mish": {"tanh", "softplus"}}
_KERNELS = (
    "scaled_dot_product_attention",
    "flash_attn_func",
    "flex_attention",
    "memory_efficient_attention",
    "MultiheadAttention",
    "multi_head_attention_forward",
    "softmax",
    "Softmax",
    "logsumexp",
    "exp",
    "log_softmax",
)


def find(change: Change) -> Iterator[Violation]:
    """An error for another activation or GELU's tanh form, a warning for other numbers."""
    if change.sides is None:
        return
    now, was = change.sides
    yield from _activations(now, was)
    yield from _tanh_forms(now, was)
    yield from _norms(now, was)
    yield from _attention(now, was)
    yield from _numbers(now, was)


def _activations(now: Program, was: Program) -> Iterator[Violation]:
    fresh, gone = _kinds(now), _kinds(was)
    lost = [kind for kind in gone if len(fresh.get(kind, [])) < len(gone[kind])]
    gained = [kind for kind in fresh if len(fresh[kind]) > len(gone.get(kind, []))]
    names = Counter(now.by_file(_names_in_model))
    names.subtract(Counter(was.by_file(_names_in_model)))
    if names["erf"] < 0 and not gained:
        lost.append("GELU")
    for kind in lost:
        if gained:
            what = f"The activation is {gained[0]} instead of {kind}"
            yield _finding(what, fresh[gained[0]][-1].place, certain=True)
            return
        if any(names[part] > 0 for part in _PARTS.get(kind, ())):
            continue
        cheaper = [part for part in ("sigmoid", "tanh", "clamp") if names[part] > 0]
        place = _place_of(now, cheaper)
        if cheaper and place is not None:
            what = f"{kind} is computed by {cheaper[0]}, which only comes close"
            yield _finding(what, place, certain=kind == "GELU")
        elif not fresh.get(kind):
            yield _finding(f"{kind} is not computed any more", _forward_place(now), certain=False)
        return


def _names_in_model(program: Program, module: Scope) -> list[str]:
    return [call.name for call in program.calls_of(module) if call.in_model]


def _kinds(program: Program) -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    kinds = {**_ACTIVATIONS, **{name: name for name in _ACTIVATIONS.values()}}
    for call in program.named(*kinds):
        if call.in_model or call.callee.startswith("torch.nn."):
            found.setdefault(kinds[call.name], []).append(call)
    return found


def _place_of(program: Program, names: list[str]) -> Place | None:
    calls = (call for call in program.called(names) if call.in_model)
    return next((call.place for call in calls), None)


def _tanh_forms(now: Program, was: Program) -> Iterator[Violation]:
    forms, held = _approximated(now), _approximated(was)
    if len(forms) > len(held):
        what = "GELU is approximated by tanh"
        yield _finding(what, forms[-1].place, certain=True)


def _approximated(program: Program) -> list[Call]:
    calls = (*program.named("gelu", "GELU"),)
    return [
        call
        for call in calls
        if isinstance(value := call.argument("approximate", 0 if call.name == "GELU" else 1), Known)
        and value.value == "tanh"
    ]


def _norms(now: Program, was: Program) -> Iterator[Violation]:
    layer, held = (list(program.named("LayerNorm", "layer_norm")) for program in (now, was))
    rms, rms_held = (list(program.named("RMSNorm", "rms_norm")) for program in (now, was))
    if len(layer) < len(held) and len(rms) > len(rms_held):
        yield _finding("Rows are scaled by RMSNorm instead of LayerNorm", rms[-1].place, True)


def _attention(now: Program, was: Program) -> Iterator[Violation]:
    """The softmax of attention without anything that can stand for it."""
    softmaxes, held = (
        [call for call in program.named("softmax", "Softmax") if call.in_model]
        for program in (now, was)
    )
    stand_ins = sum(1 for call in now.named(*_KERNELS) if call.in_model)
    if len(softmaxes) < len(held) and stand_ins < sum(
        1 for call in was.named(*_KERNELS) if call.in_model
    ):
        yield _finding("A softmax of the model is gone", _forward_place(now), certain=False)


def _numbers(now: Program, was: Program) -> Iterator[Violation]:
    for scope, before in changed_methods(now, was):
        if scope.name in {"__init__", "_init_weights", "init_weights", "reset_parameters"}:
            mine, theirs = _eps_defaults(scope.node), _eps_defaults(before.node)
        else:
            mine, theirs = _constants(body_text(now, scope)), _constants(body_text(was, before))
        if mine is None or theirs is None or mine[0] != theirs[0]:
            continue
        pair = next(((a, b) for a, b in zip(mine[1], theirs[1], strict=True) if a != b), None)
        if pair is not None:
            what = f"{scope.name} computes with {pair[0]} instead of {pair[1]}"
            yield _finding(what, scope.source.place(scope.node), certain=False)
            return


def _constants(text: str) -> tuple[str, list[object]] | None:
    """The code with its numbers alike, and those numbers; None where it cannot be parsed back."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    numbers: list[object] = []
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            numbers.append(node.value)
            node.value = 0.0
    return unparse(tree), numbers


def _eps_defaults(node: ast.AST) -> tuple[str, list[object]] | None:
    if not isinstance(node, ast.FunctionDef):
        return None
    named = node.args.args[-len(node.args.defaults) :] if node.args.defaults else []
    pairs = zip(named, node.args.defaults, strict=True)
    return "", [unparse(value) for name, value in pairs if "eps" in name.arg] or [""]


def _forward_place(program: Program) -> Place | None:
    for scope in program.module_scopes():
        if scope.name == "forward":
            return scope.source.place(scope.node)
    return None


def _finding(what: str, place: Place | None, certain: bool) -> Violation:
    text = f"{what}; the contract holds the baseline's functions."
    return violation(CODE, text, severity="error" if certain else "warning", place=place)
