"""What stays fp32 under autocast: losses, the routers of experts, and preallocated results."""

from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from infrarsi.patches.autocast.losses import Losses, loss_input
from infrarsi.patches.building import expression, with_method
from infrarsi.patches.modules import Module
from infrarsi.patches.rewriting import Rewriting
from infrarsi.patches.syntax import argument, calls, dotted, method, receiver, walk

Code = Iterable[tuple[Module, cst.CSTNode]]
Functions = Iterable[tuple[Module, cst.FunctionDef]]

_SCATTERS = {
    "index_add_": "source",
    "index_add": "source",
    "index_copy_": "source",
    "index_copy": "source",
    "scatter_add_": "src",
    "scatter_add": "src",
}


def keep_losses_fp32(losses: Losses, code: Code, rewritings: Mapping[str, Rewriting]) -> bool:
    """Cast what enters each loss to fp32; False where there is no loss at all."""
    done: set[cst.Call] = set()
    for module, node in code:
        for call in losses.calls_in(module, node):
            source = loss_input(module, call)
            if call in done or source is None:
                continue
            done.add(call)
            if not _is_fp32(module, source):
                rewritings[module.path].change(source, _to_float)
    return bool(done)


def keep_routers_fp32(functions: Functions, rewritings: Mapping[str, Rewriting]) -> None:
    """Take the projection that scores experts out of autocast.

    A router is the module whose output, softmaxed or not, goes to `topk`: rounding it would
    send tokens to other experts.
    """
    for module, function in functions:
        torch = module.names.spell("torch") or "torch"
        for line, call in _routers(module, function):
            source = call.args[0].value
            root = _root(source)
            if root is None:
                continue
            context = expression(f"{torch}.autocast(device_type={root}.device.type, enabled=False)")
            rewritings[module.path].change(source, _to_float)
            rewritings[module.path].wrap(line, line, _header(context))


def match_scatter_dtypes(functions: Functions, rewritings: Mapping[str, Rewriting]) -> None:
    """Cast what is written into a tensor at given rows to that tensor's dtype.

    `index_add_` and its kin, and `out[rows] = ...`, refuse mixed dtypes.
    """
    for module, function in functions:
        for target, source in [*_scattered(function), *_assigned_rows(module, function)]:
            if method(source) not in ("to", "type_as", "type"):
                rewritings[module.path].change(source, _to_dtype_of(target))


def _to_float(node: cst.CSTNode) -> cst.CSTNode:
    assert isinstance(node, cst.BaseExpression)
    return with_method(node, "float()")


def _to_dtype_of(target: str):
    def change(node: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(node, cst.BaseExpression)
        return with_method(node, f"to({target}.dtype)")

    return change


def _header(context: cst.BaseExpression):
    def header(body: cst.BaseSuite, leading_lines: Iterable[cst.EmptyLine]) -> cst.With:
        return cst.With(
            items=[cst.WithItem(item=context)], body=body, leading_lines=tuple(leading_lines)
        )

    return header


def _is_fp32(module: Module, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call):
        return False
    if method(node) == "float" or module.names.full(node.func).endswith("log_softmax"):
        return True
    return any(module.names.full(a.value) == "torch.float32" for a in node.args)


def _routers(
    module: Module, function: cst.FunctionDef
) -> Iterator[tuple[cst.BaseStatement, cst.Call]]:
    """(line, call of the scoring module) for each choice of experts in the function."""
    values = _assignments(function)
    seen: set[cst.Call] = set()
    for call in calls(function.body):
        full = module.names.full(call.func)
        is_function = full.startswith("torch.")
        short = full.rpartition(".")[2] if is_function else method(call)
        if short not in ("topk", "argmax", "max"):
            continue
        scores = argument(call, 0, "input") if is_function else receiver(call)
        router = _scoring_call(scores, values, is_soft=short == "topk")
        line = None if router is None or router in seen else _line_of(function, router)
        if router is not None and line is not None:
            seen.add(router)
            yield line, router


def _scoring_call(
    node: cst.BaseExpression | None,
    values: Mapping[str, list[cst.BaseExpression]],
    is_soft: bool,
) -> cst.Call | None:
    """Follow softmax and names back to `self.gate(x)`.

    Without a softmax on the way (or `is_soft`), what is chosen from may be no router: predicted
    tokens come from an argmax of logits.
    """
    for _ in range(8):
        if isinstance(node, cst.Name):
            found = values.get(node.value, [])
            node = found[0] if len(found) == 1 else None
            continue
        name = (dotted(node.func) or "") if isinstance(node, cst.Call) else ""
        if not isinstance(node, cst.Call):
            return None
        if name.startswith("self.") and name.count(".") == 1 and len(node.args) == 1:
            return node if is_soft else None
        short = name.rpartition(".")[2] or method(node)
        if short not in ("softmax", "sigmoid", "float"):
            return None
        is_soft = is_soft or short != "float"
        base = receiver(node)
        own = base is not None and (dotted(base) is None or dotted(base) in values)
        node = base if own else argument(node, 0, "input")
    return None


def _assignments(function: cst.FunctionDef) -> dict[str, list[cst.BaseExpression]]:
    values: dict[str, list[cst.BaseExpression]] = {}
    for node in walk(function.body):
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            name = dotted(node.targets[0].target)
            if name is not None:
                values.setdefault(name, []).append(node.value)
    return values


def _line_of(function: cst.FunctionDef, call: cst.Call) -> cst.BaseStatement | None:
    for node in walk(function.body):
        if isinstance(node, cst.SimpleStatementLine) and any(n is call for n in walk(node)):
            return node
    return None


def _root(node: cst.BaseExpression) -> str | None:
    """The name a chain of methods and attributes hangs on."""
    while True:
        if isinstance(node, cst.Name):
            return None if node.value == "self" else node.value
        if isinstance(node, cst.Call):
            node = node.func
        elif isinstance(node, cst.Attribute | cst.Subscript):
            node = node.value
        else:
            return None


def _scattered(function: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression]]:
    for call in calls(function.body):
        keyword = _SCATTERS.get(method(call) or "")
        target = dotted(receiver(call))
        if keyword is None or target is None or target == "torch":
            continue
        source = argument(call, 2, keyword)
        if source is not None:
            yield target, source


def _assigned_rows(
    module: Module, function: cst.FunctionDef
) -> Iterator[tuple[str, cst.BaseExpression]]:
    """`out[rows] = self.expert(x)` where `out` is a tensor made in this function."""
    values = _assignments(function)
    for node in walk(function.body):
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0].target
        if not isinstance(target, cst.Subscript):
            continue
        name = dotted(target.value)
        made = values.get(name or "", [])
        if (
            name
            and made
            and all(_is_new_tensor(module, v) for v in made)
            and _calls_module(node.value)
        ):
            yield name, node.value


def _is_new_tensor(module: Module, value: cst.BaseExpression) -> bool:
    if not isinstance(value, cst.Call):
        return False
    full = module.names.full(value.func)
    return full.startswith("torch.") or (method(value) or "").startswith("new_")


def _calls_module(node: cst.CSTNode) -> bool:
    for call in calls(node):
        func = call.func.value if isinstance(call.func, cst.Subscript) else call.func
        if (dotted(func) or "").startswith("self.") or isinstance(call.func, cst.Subscript):
            return True
    return False
