"""Where a training micro-step stands: its loop, its forward, its loss, its backward.

A statement belongs to the forward when it calls a model, or a function of the workspace that in
turn calls one. A model is a name built from a module class, or whose `.parameters()` are taken.
Leaves out what is done with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.modules import Codebase, Module
from infrarsi.patches.syntax import (
    Block,
    argument,
    calls,
    children,
    dotted,
    loads,
    method,
    receiver,
    stores,
    walk,
)

_WRAPPERS = (
    "torch.compile",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
)


@dataclass(frozen=True, kw_only=True)
class Level:
    """A list of statements and which of them we are in."""

    block: Block
    index: int

    @property
    def statement(self) -> cst.BaseStatement:
        """The statement we are in."""
        return _statements(self.block)[self.index]

    @property
    def before(self) -> Sequence[cst.BaseStatement]:
        """The statements before it."""
        return _statements(self.block)[: self.index]

    @property
    def after(self) -> Sequence[cst.BaseStatement]:
        """The statements behind it."""
        return _statements(self.block)[self.index + 1 :]


@dataclass(frozen=True, kw_only=True)
class MicroStep:
    """One `loss.backward()` with what leads to it.

    `levels` run from the function's body (or the module's) inwards to the line that calls
    backward; `parents` are the nodes that own those blocks.
    """

    module: Module
    function: cst.FunctionDef | None
    levels: tuple[Level, ...]
    parents: tuple[cst.CSTNode, ...]
    call: cst.Call
    loss: cst.BaseExpression

    @property
    def scope(self) -> cst.CSTNode:
        """The function it stands in, or the module."""
        return self.function or self.module.tree

    def slice(self) -> list[tuple[Level, cst.BaseStatement]]:
        """The statements the loss is computed by, last first, up to the function's start."""
        needed = loads(self.loss)
        found: list[tuple[Level, cst.BaseStatement]] = []
        for level in reversed(self.levels):
            for statement in reversed(level.before):
                bound = stores(statement)
                is_definition = isinstance(statement, cst.FunctionDef | cst.ClassDef)
                if is_definition or not bound & needed:
                    continue
                found.append((level, statement))
                if isinstance(statement, cst.SimpleStatementLine):
                    needed -= bound
                needed |= loads(statement)
        return found

    def loops(self) -> list[tuple[Level, cst.For | cst.While]]:
        """The loops it stands in, innermost first."""
        return [
            (level, level.statement)
            for level in reversed(self.levels)
            if isinstance(level.statement, cst.For | cst.While)
        ]


def micro_steps(codebase: Codebase) -> tuple[MicroStep, ...]:
    """Every backward call on a loss, in source order."""
    return tuple(step for module in codebase for step in _in_module(module))


class Models:
    """Which names are models and which functions call one, over the whole codebase."""

    def __init__(self, codebase: Codebase) -> None:
        """Look through all modules until nothing new is found."""
        self._classes = _module_classes(codebase)
        self._functions = {
            node.name.value: node
            for module in codebase
            for node in walk(module.tree)
            if isinstance(node, cst.FunctionDef)
        }
        self.names: set[str] = set()
        self.functions: set[str] = set()
        while self._grow(codebase):
            pass

    def calls_in(self, node: cst.CSTNode) -> list[cst.Call]:
        """Calls below `node` of a model or of a function that calls one."""
        return [
            call
            for call in calls(node)
            if dotted(call.func) in self.names
            or (dotted(call.func) or "").split(".")[-1] in self.functions
        ]

    def _grow(self, codebase: Codebase) -> bool:
        before = (len(self.names), len(self.functions))
        for module in codebase:
            for node in walk(module.tree):
                self._learn(module, node)
        return (len(self.names), len(self.functions)) != before

    def _learn(self, module: Module, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Assign | cst.AnnAssign) and node.value is not None:
            if self._is_model(module, node.value):
                targets = (
                    [t.target for t in node.targets]
                    if isinstance(node, cst.Assign)
                    else [node.target]
                )
                self.names.update(filter(None, map(dotted, targets)))
        elif isinstance(node, cst.Call):
            if method(node) in ("parameters", "named_parameters", "state_dict"):
                name = dotted(receiver(node))
                if name not in (None, "self") and "optim" not in str(name):
                    self.names.add(str(name))
            self._follow_arguments(node)
        elif isinstance(node, cst.FunctionDef) and self._is_step_function(node):
            self.functions.add(node.name.value)

    def _is_model(self, module: Module, value: cst.BaseExpression) -> bool:
        if dotted(value) in self.names:
            return True
        if not isinstance(value, cst.Call):
            return False
        full = module.names.full(value.func)
        if full.split(".")[-1] in self._classes or full == "torch.nn.Sequential":
            return True
        if method(value) in ("to", "cuda", "cpu", "train", "float"):
            base = receiver(value)
            return base is not None and self._is_model(module, base)
        wrapped = argument(value, 0, "module") or argument(value, 0, "model")
        return full in _WRAPPERS and wrapped is not None and self._is_model(module, wrapped)

    def _follow_arguments(self, call: cst.Call) -> None:
        function = self._functions.get((dotted(call.func) or "").split(".")[-1])
        if function is None:
            return
        names = [p.name.value for p in function.params.params]
        if names[:1] == ["self"]:
            names = names[1:]
        for position, arg in enumerate(call.args):
            if dotted(arg.value) in self.names and not arg.star:
                name = (
                    arg.keyword.value
                    if arg.keyword
                    else (names[position : position + 1] or [""])[0]
                )
                if name in names:
                    self.names.add(name)

    def _is_step_function(self, node: cst.FunctionDef) -> bool:
        if node.name.value in ("forward", "__init__", "__call__", "main"):
            return False
        return bool(self.calls_in(node.body))


def _in_module(module: Module) -> Iterator[MicroStep]:
    def visit(
        node: cst.CSTNode,
        function: cst.FunctionDef | None,
        levels: tuple[Level, ...],
        parents: tuple[cst.CSTNode, ...],
    ) -> Iterator[MicroStep]:
        if isinstance(node, cst.FunctionDef):
            function, levels, parents = node, (), ()
        if isinstance(node, cst.Module | cst.IndentedBlock):
            for index, statement in enumerate(_statements(node)):
                inner = (*levels, Level(block=node, index=index))
                yield from visit(statement, function, inner, (*parents, node))
            return
        if isinstance(node, cst.Call):
            loss = _loss_of(module, node)
            if loss is not None and levels:
                yield MicroStep(
                    module=module,
                    function=function,
                    levels=levels,
                    parents=parents,
                    call=node,
                    loss=loss,
                )
        for child in children(node):
            yield from visit(child, function, levels, parents)

    yield from visit(module.tree, None, (), ())


def _loss_of(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    if module.names.full(call.func) == "torch.autograd.backward":
        return argument(call, 0, "tensors")
    if method(call) == "backward" and not any(a.keyword is None for a in call.args):
        return receiver(call)
    return None


def _module_classes(codebase: Codebase) -> set[str]:
    """Names of classes that derive from `torch.nn.Module`, directly or through each other."""
    bases: dict[str, list[str]] = {}
    for module in codebase:
        for node in walk(module.tree):
            if isinstance(node, cst.ClassDef):
                bases[node.name.value] = [module.names.full(b.value) for b in node.bases]
    found = {"torch.nn.Module", "torch.nn.Sequential"}
    size = 0
    while size != len(found):
        size = len(found)
        found |= {
            name
            for name, parents in bases.items()
            if any(p in found or p.split(".")[-1] in found for p in parents)
        }
    return {name for name in found if "." not in name}


def _statements(block: Block) -> Sequence[cst.BaseStatement]:
    return [s for s in block.body if isinstance(s, cst.BaseStatement)]
