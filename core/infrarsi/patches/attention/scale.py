"""The factor before the softmax: whether it is 1/sqrt(head size), or a plain number to pass on."""

from dataclasses import dataclass

import libcst as cst

from infrarsi.patches.attention.mask import number_of
from infrarsi.patches.attention.scope import Entry, Value, attribute, module_constant
from infrarsi.patches.building import bare
from infrarsi.patches.syntax import calls, code_of, dotted, method, plain_arguments, receiver

_ROOTS = ("math.sqrt", "numpy.sqrt", "np.sqrt", "torch.sqrt")
_TENSORS = ("torch.tensor", "torch.as_tensor", "torch.FloatTensor")


@dataclass(frozen=True)
class Factor:
    """One factor of the scores; `power` is -1 where it divides."""

    value: Value
    power: int


def is_inverse_root_of_size(factors: list[Factor], operands: list[Value]) -> bool:
    """Whether the product of all factors is 1/sqrt of the operands' last dimension."""
    powers = [_power(f.value, operands) for f in factors]
    if not factors or any(p is None for p in powers):
        return False
    return sum(p * f.power for p, f in zip(powers, factors, strict=True) if p is not None) == -0.5


def scale_code(factors: list[Factor]) -> str | None:
    """The factors as one expression of plain numbers; None where one may be a tensor."""
    if not all(_is_number(f.value) for f in factors):
        return None
    above = [_code(f.value) for f in factors if f.power > 0]
    below = [_code(f.value) for f in factors if f.power < 0]
    if len(factors) == 1 and above:
        return code_of(factors[0].value.node)
    return " / ".join([" * ".join(above) or "1.0", *below])


def _power(value: Value, operands: list[Value]) -> float | None:
    """The e for which the value is an operand's last dimension ** e."""
    node, at = value.node, value.at
    if _is_last_dimension(node, at, operands):
        return 1.0
    if isinstance(node, cst.Name):
        definition = at.scope.definition(node.value, at)
        if definition is None:
            return None
        if definition.value is not None:
            return _power(definition.value, operands)
        return 1.0 if _unpacks_last(definition.entry, node.value, operands) else None
    if isinstance(node, cst.Call):
        inside = _rooted(value)
        if inside is not None:
            power = _power(inside, operands)
            return None if power is None else power / 2
        if dotted(node.func) in ("float", "int", *_TENSORS) and plain_arguments(node):
            return _power(Value(plain_arguments(node)[0], at), operands)
    if isinstance(node, cst.BinaryOperation):
        return _power_of_operation(node, at, operands)
    return None


def _power_of_operation(
    node: cst.BinaryOperation, at: Entry, operands: list[Value]
) -> float | None:
    if isinstance(node.operator, cst.Power):
        power, exponent = _power(Value(node.left, at), operands), number_of(Value(node.right, at))
        return None if power is None or exponent is None else power * exponent
    if isinstance(node.operator, cst.Divide) and number_of(Value(node.left, at)) == 1.0:
        power = _power(Value(node.right, at), operands)
        return None if power is None else -power
    return None


def _is_last_dimension(node: cst.BaseExpression, at: Entry, operands: list[Value]) -> bool:
    """`k.size(-1)`, `k.shape[-1]` or `k.size()[-1]` of an operand."""
    base: cst.BaseExpression | None = None
    if isinstance(node, cst.Call) and method(node) == "size":
        given = plain_arguments(node)
        base = receiver(node) if len(given) == 1 and code_of(given[0]) == "-1" else None
    if isinstance(node, cst.Subscript) and code_of(node).endswith("[-1]"):
        base = _shaped(node.value)
    return base is not None and _is_operand(base, at, operands)


def _shaped(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `x.shape` and `x.size()`."""
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        return node.value
    if isinstance(node, cst.Call) and method(node) == "size" and not node.args:
        return receiver(node)
    return None


def _is_operand(base: cst.BaseExpression, at: Entry, operands: list[Value]) -> bool:
    name = dotted(base)
    if name is None:
        return False
    for operand in operands:
        if dotted(operand.node) != name:
            continue
        here = at.scope.definition(name.partition(".")[0], at)
        there = operand.at.scope.definition(name.partition(".")[0], operand.at)
        if (here and here.entry) is (there and there.entry):
            return True
    return False


def _unpacks_last(entry: Entry, name: str, operands: list[Value]) -> bool:
    """`b, h, t, name = q.shape`."""
    node = entry.statement
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return False
    target, base = node.targets[0].target, _shaped(node.value)
    if not isinstance(target, cst.Tuple) or base is None:
        return False
    return dotted(target.elements[-1].value) == name and _is_operand(base, entry, operands)


def _rooted(value: Value) -> Value | None:
    """What a square root is taken of, tensors around it taken off."""
    node = value.node
    if not isinstance(node, cst.Call):
        return None
    if value.at.scope.module.names.full(node.func) not in _ROOTS or not plain_arguments(node):
        return None
    inside = plain_arguments(node)[0]
    while isinstance(inside, cst.Call):
        wraps = value.at.scope.module.names.full(inside.func) in _TENSORS
        if not wraps or not plain_arguments(inside):
            break
        inside = plain_arguments(inside)[0]
        if isinstance(inside, cst.List) and len(inside.elements) == 1:
            inside = inside.elements[0].value
    return Value(inside, value.at)


def _code(value: Value) -> str:
    """The number as code, a tensor's square root as a plain one."""
    inside = _rooted(value)
    node = value.node
    if inside is not None and "torch" in value.at.scope.module.names.full(
        node.func if isinstance(node, cst.Call) else None
    ):
        return f"({code_of(inside.node)}) ** 0.5"
    simple = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Integer | cst.Float)
    return code_of(node) if simple else f"({code_of(bare(node))})"


def _is_number(value: Value, depth: int = 0) -> bool:
    """Whether the value cannot be a tensor that gradients flow into or that varies by position."""
    node, at = value.node, value.at
    if depth > 10:
        return False
    if number_of(value) is not None:
        return _tensor_free(node, at)
    if isinstance(node, cst.Call):
        return _is_number_call(value, node, depth)
    if isinstance(node, cst.Subscript):
        return _shaped(node.value) is not None
    if isinstance(node, cst.UnaryOperation):
        return _is_number(Value(node.expression, at), depth + 1)
    if isinstance(node, cst.BinaryOperation):
        sides = (node.left, node.right)
        return all(_is_number(Value(side, at), depth + 1) for side in sides)
    return _is_number_name(node, at, depth)


def _is_number_call(value: Value, node: cst.Call, depth: int) -> bool:
    inside = _rooted(value)
    if inside is not None:
        return _is_number(inside, depth + 1)
    if dotted(node.func) in ("float", "int", "len"):
        return True
    return method(node) == "size" and len(node.args) == 1


def _is_number_name(node: cst.BaseExpression, at: Entry, depth: int) -> bool:
    name = dotted(node)
    if name is None:
        return False
    if name.startswith("self.") and name.count(".") == 1:
        bound = attribute(at.scope, name.removeprefix("self."))
        return bound is not None and _is_number(bound, depth + 1)
    head = name.partition(".")[0]
    definition = at.scope.definition(head, at)
    if definition is not None:
        if definition.value is not None and head == name:
            return _is_number(definition.value, depth + 1)
        return head == name and _unpacks_shape(definition.entry)
    if head in at.scope.parameters:
        return _is_number_parameter(at, name)
    constant = module_constant(at.scope, name)
    return constant is not None and _is_number(constant, depth + 1)


def _unpacks_shape(entry: Entry) -> bool:
    node = entry.statement
    return isinstance(node, cst.Assign) and _shaped(node.value) is not None


def _is_number_parameter(at: Entry, name: str) -> bool:
    """Parameters of a constructor are sizes; others only where annotated or defaulted so."""
    node = at.scope.node
    if isinstance(node, cst.FunctionDef) and node.name.value == "__init__":
        return True
    parameter = at.scope.parameters[name.partition(".")[0]]
    if parameter.annotation is not None:
        return dotted(parameter.annotation.annotation) in ("int", "float")
    return isinstance(parameter.default, cst.Integer | cst.Float)


def _tensor_free(node: cst.BaseExpression, at: Entry) -> bool:
    full = at.scope.module.names.full
    return not any(full(call.func).startswith("torch.") for call in calls(node))
