"""Attention written out by hand becomes `scaled_dot_product_attention`."""

from typing import Literal, cast

import libcst as cst

from infrarsi.launch import Launch
from infrarsi.patches.attention.chain import Attention, attention_in
from infrarsi.patches.attention.products import permuted
from infrarsi.patches.attention.scale import is_inverse_root_of_size, scale_code
from infrarsi.patches.attention.scope import Entry, Scope, Value, functions
from infrarsi.patches.building import call, expression, with_method
from infrarsi.patches.modules import Module, read_codebase
from infrarsi.patches.recipe import Claim, Declined, Rewritten
from infrarsi.patches.rewriting import Rewriting, ensure_import
from infrarsi.patches.syntax import load_nodes, loads, stores, walk
from infrarsi.reading.sources import Sources

_FULL = "torch.nn.functional.scaled_dot_product_attention"


class Sdpa:
    """Let torch's fused attention kernel compute what is written out by hand.

    `softmax(mask(q @ k^T * scale)) @ v` becomes `F.scaled_dot_product_attention(q, k, v,
    is_causal=True)`, in whatever spelling: `@`, `matmul` or `einsum`, `masked_fill`, `where` or
    an added mask, in one expression or over several statements, with dropout on the weights.
    The scores are never stored whole, which saves memory that grows with the square of the
    sequence. Results differ by rounding (about 1e-6 in fp32).

    A mask counts as causal only where that is proven from how it was built, in the function or
    as a buffer of the class. A scale other than 1/sqrt(head size) is passed on. Declines where
    the weights are used elsewhere, where something else is added to the scores, where the
    softmax runs over another dimension, and where dropout has no training flag.
    """

    name: str = "sdpa"
    title: str = "Manual attention to SDPA"
    claim: Claim = Claim(log_speedup=0.25, sd=0.3)
    memory_role: Literal["hungry", "saver", "neutral"] = "saver"
    conflicts: tuple[str, ...] = ()

    def rewrite(self, sources: Sources, launch: Launch) -> Rewritten | Declined:
        """Replace every attention that is proven to be one."""
        codebase = read_codebase(sources, launch)
        if isinstance(codebase, Declined):
            return codebase
        texts: dict[str, str] = {}
        reasons: list[str] = []
        for module in codebase:
            tree = _rewrite(module, reasons)
            if tree is not None:
                texts[module.path] = module.text(tree)
        if texts:
            return Rewritten(texts=texts, why="The fused kernel computes the same softmax(qk)v.")
        if reasons:
            return Declined(reason=reasons[0])
        return Declined(reason="No attention written out by hand was found.")


def _rewrite(module: Module, reasons: list[str]) -> cst.Module | None:
    rewriting = Rewriting()
    spelled = module.names.spell(_FULL)
    for scope in functions(module):
        if any(module.names.full(node) == _FULL for node in walk(scope.node)):
            reasons.append("Attention goes through scaled_dot_product_attention already.")
            continue
        for attention in _attentions(scope, reasons):
            reason = _replace(attention, spelled or _FULL, rewriting)
            if reason is not None:
                reasons.append(reason)
    if not rewriting:
        return None
    tree = rewriting.apply(module.tree)
    return tree if spelled is not None else ensure_import(tree, "torch")


def _attentions(scope: Scope, reasons: list[str]) -> list[Attention]:
    found: list[Attention] = []
    nested = {
        below
        for node in walk(scope.node)
        if isinstance(node, cst.FunctionDef | cst.Lambda) and node is not scope.node
        for below in walk(node)
    }
    for node in walk(scope.node.body if isinstance(scope.node, cst.FunctionDef) else scope.node):
        if not isinstance(node, cst.BinaryOperation | cst.Call) or node in nested:
            continue
        attention = attention_in(node, scope.entry(node))
        if isinstance(attention, str):
            reasons.append(attention)
        elif attention is not None:
            found.append(attention)
    return found


def _replace(attention: Attention, spelled: str, rewriting: Rewriting) -> str | None:
    """Note the replacement, or say why not."""
    moved = [attention.scores.query, attention.scores.key]
    arguments: list[tuple[str | None, cst.BaseExpression]] = [
        (None, attention.scores.query.node),
        (None, _key(attention)),
        (None, attention.value),
    ]
    if attention.dropout is not None:
        arguments.append(("dropout_p", expression(attention.dropout)))
    if attention.scores.is_causal:
        arguments.append(("is_causal", expression("True")))
    if not is_inverse_root_of_size(attention.scores.factors, moved):
        scale = scale_code(attention.scores.factors)
        if scale is None:
            return "The scale of the scores may be a tensor."
        arguments.append(("scale", expression(scale)))
        moved += [factor.value for factor in attention.scores.factors]
    for value in moved:
        changed = _rebound(value, attention.at)
        if changed is not None:
            return f"{changed} is bound anew between the scores and the values."
    dropped = _serving_only(attention, [*moved, Value(attention.value, attention.at)])
    if dropped is None:
        return "The attention weights are used elsewhere, too."
    new: cst.BaseExpression = call(spelled, arguments)
    if attention.layout is not None:
        new = cast(cst.BaseExpression, permuted(new, *attention.layout))
    rewriting.replace(attention.product, new)
    for entry in dropped:
        rewriting.drop(entry.statement)
    return None


def _key(attention: Attention) -> cst.BaseExpression:
    key = attention.scores.key.node
    return key if attention.scores.key_is_transposed else with_method(key, "transpose(-2, -1)")


def _rebound(value: Value, at: Entry) -> str | None:
    """A name of the expression that means something else at `at` than where it stood."""
    for name in sorted(loads(value.node)):
        there, here = value.at.scope.definition(name, value.at), at.scope.definition(name, at)
        if (there and there.entry) is not (here and here.entry):
            return name
    return None


def _serving_only(attention: Attention, operands: list[Value]) -> list[Entry] | None:
    """Statements to drop; None where what they compute is read by something that stays."""
    going = set(walk(attention.left))
    kept = {below for value in operands for below in walk(value.node)}
    aside = list(attention.scores.aside)
    if any(_is_shared(entry) for entry in attention.chain):
        return None
    while True:
        dropped = [*attention.chain, *aside]
        read = [entry for entry in dropped if _is_read(entry, dropped, going, kept)]
        if any(entry in attention.chain for entry in read):
            return None
        if not read:
            return dropped
        aside = [entry for entry in aside if entry not in read]


def _is_shared(entry: Entry) -> bool:
    """Whether the statement binds more than the one name that is followed."""
    return len(stores(entry.statement)) > 1


def _is_read(
    entry: Entry, dropped: list[Entry], going: set[cst.CSTNode], kept: set[cst.CSTNode]
) -> bool:
    """Whether code that stays reads what `entry` binds.

    `kept` are nodes of statements that go which live on as operands of the new call.
    """
    scope = entry.scope
    names = stores(entry.statement) or loads(entry.statement)
    for name in names:
        for node in load_nodes(scope.node, name):
            if not _has_entry(scope, node):
                continue
            at = scope.entry(node)
            inside = at in dropped or node in going
            if inside and node not in kept:
                continue
            definition = scope.definition(name, at)
            if definition is not None and definition.entry is entry:
                return True
    return False


def _has_entry(scope: Scope, node: cst.CSTNode) -> bool:
    try:
        scope.entry(node)
    except KeyError:
        return False
    return True
