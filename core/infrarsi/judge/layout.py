"""Layout: how the parameters of a rewritten model hold those of the baseline.

A rewrite may stack experts, fuse projections, transpose or rename: the same numbers in other
places. `infer_layouts` proposes maps that permute, transpose, stack, split or concatenate and
nothing else, from names and shapes alone. A wrong proposal does no harm: the baseline's own step
is redone under it, and only the right one reproduces the candidate's update. Rows a rewrite adds
(a padded vocabulary) are allowed for where no gradient ever reaches them.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]
Shapes = Sequence[tuple[str, Shape]]
"""Parameters by name in the order in which the model registers them."""

_MOST_JOINED = 4
_TOKEN = re.compile(r"[A-Za-z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A part of a tensor: `start` to `stop` along `axis`; `dropped` where the axis is left out.

    `inner` is a further (axis, start, stop) in what is left then.
    """

    name: str
    axis: int = 0
    start: int = 0
    stop: int = 0
    dropped: bool = False
    inner: tuple[int, int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A block of both sides; `transposed` where the last two axes are swapped."""

    candidate: Block
    baseline: Block
    transposed: bool = False


@dataclass(frozen=True)
class Layout:
    """All pieces; together they cover every parameter of the baseline once.

    `padded` are the candidate's parameters that have rows beyond the baseline's.
    """

    pieces: tuple[Piece, ...]
    padded: tuple[str, ...] = ()

    @property
    def is_identity(self) -> bool:
        """Whether names and shapes are the baseline's."""
        return not self.padded and all(
            not p.transposed
            and p.candidate == p.baseline
            and not (p.candidate.dropped or p.baseline.dropped)
            for p in self.pieces
        )


def infer_layouts(ours: Shapes, theirs: Shapes) -> tuple[Layout, ...]:
    """Layouts under which the candidate's parameters are the baseline's, the likeliest first.

    Args:
        ours: the candidate's parameters.
        theirs: the baseline's.

    Returns at most three; none where some parameter finds no counterpart.
    """
    found: list[Layout] = []
    for prefers in ("names", "order", "transposed"):
        layout = _Matcher(ours, theirs, prefers).match()
        if layout is not None and layout not in found:
            found.append(layout)
    return tuple(found)


@dataclass(frozen=True)
class _Proposal:
    """One way to explain one tensor of the whole side by tensors of the parts' side.

    With `families` the whole is a stack of joins: `axis` is that of the join within one layer of
    the stack, and `parts` are the families one after the other.
    """

    whole: str
    parts: tuple[str, ...]
    axis: int
    stacked: bool
    transposed: bool
    families: tuple[tuple[str, ...], ...] = ()


class _Matcher:
    """Explains both sides' tensors by each other, the best explanation first."""

    def __init__(self, ours: Shapes, theirs: Shapes, prefers: str) -> None:
        self._ours, self._theirs = dict(ours), dict(theirs)
        self._prefers = prefers
        self._pieces: list[Piece] = []
        self._padded: list[str] = []

    def match(self) -> Layout | None:
        same = [n for n, shape in self._ours.items() if self._theirs.get(n) == shape]
        self._pieces += [_identity(name, self._ours[name]) for name in same]
        left = {n: s for n, s in self._ours.items() if n not in same}
        right = {n: s for n, s in self._theirs.items() if n not in same}
        self._pad(left, right)
        self._explain(left, right, swapped=False)
        self._explain(right, left, swapped=True)
        if left or right:
            return None
        return Layout(tuple(self._pieces), tuple(self._padded))

    def _pad(self, left: dict[str, Shape], right: dict[str, Shape]) -> None:
        for name in list(left.keys() & right.keys()):
            ours, theirs = left[name], right[name]
            if ours[1:] == theirs[1:] and ours and ours[0] > theirs[0]:
                block = Block(name=name, stop=theirs[0])
                self._pieces.append(Piece(candidate=block, baseline=block))
                self._padded.append(name)
                del left[name], right[name]

    def _explain(self, wholes: dict[str, Shape], parts: dict[str, Shape], swapped: bool) -> None:
        """Take from both what a tensor of `wholes` made of `parts` accounts for."""
        proposals = [p for name in wholes for p in _proposals(name, wholes[name], parts)]
        order = {name: i for i, name in enumerate([*wholes, *parts])}
        n_wholes = len(wholes)
        for proposal in sorted(proposals, key=lambda p: self._rank(p, order, n_wholes)):
            if proposal.whole in wholes and all(part in parts for part in proposal.parts):
                self._pieces += _pieces(proposal, wholes[proposal.whole], parts, swapped)
                del wholes[proposal.whole]
                for part in proposal.parts:
                    del parts[part]

    def _rank(self, p: _Proposal, order: dict[str, int], n_wholes: int) -> tuple[float, ...]:
        likeness = _likeness(p.whole, p.parts)
        place = order[p.whole] * len(p.parts) - (order[p.parts[0]] - n_wholes)
        if self._prefers == "names":
            return (-len(p.parts), -likeness, abs(place), p.transposed)
        if self._prefers == "order":
            return (-len(p.parts), order[p.whole], order[p.parts[0]], p.transposed)
        return (-len(p.parts), not p.transposed, -likeness, order[p.whole], order[p.parts[0]])


def _proposals(name: str, shape: Shape, parts: dict[str, Shape]) -> Iterator[_Proposal]:
    for transposed in (False, True):
        yield from _renamed(name, shape, parts, transposed)
        yield from _stacked(name, shape, parts, transposed)
        yield from _stacked_joins(name, shape, parts, transposed)
        for axis in range(len(shape)):
            yield from _joined(name, shape, parts, axis, transposed)


def _renamed(
    name: str, shape: Shape, parts: dict[str, Shape], transposed: bool
) -> Iterator[_Proposal]:
    for part, part_shape in parts.items():
        fits = len(shape) == len(part_shape) and _turned(shape, transposed) == part_shape
        if fits and _same_numbers(name, (part,)):
            yield _Proposal(name, (part,), 0, False, transposed)


def _stacked(
    name: str, shape: Shape, parts: dict[str, Shape], transposed: bool
) -> Iterator[_Proposal]:
    if len(shape) < 2:
        return
    wanted = _turned(shape[1:], transposed)
    if wanted is None:
        return
    for group in _series([n for n, s in parts.items() if s == wanted], shape[0]):
        if _same_numbers(name, group):
            yield _Proposal(name, group, 0, True, transposed)


def _stacked_joins(
    name: str, shape: Shape, parts: dict[str, Shape], transposed: bool
) -> Iterator[_Proposal]:
    """Neighbouring series whose members, joined along one axis, are the layers of a stack."""
    if len(shape) < 3:
        return
    families = [
        group
        for one in dict.fromkeys(parts.values())
        for group in _series([n for n, s in parts.items() if s == one], shape[0])
        if _same_numbers(name, group)
    ]
    families.sort(key=lambda group: list(parts).index(group[0]))
    for first, second in itertools.pairwise(families):
        joined = (first, second)
        for axis in range(len(shape) - 1):
            shapes = [_turned(parts[group[0]], transposed) for group in joined]
            if _adds_up(shape[1:], shapes, axis):
                names = (*first, *second)
                yield _Proposal(name, names, axis, True, transposed, joined)


def _joined(
    name: str, shape: Shape, parts: dict[str, Shape], axis: int, transposed: bool
) -> Iterator[_Proposal]:
    """Neighbours in registration order whose sizes add up along one axis."""
    around = {_parent(name), _parent(_parent(name))}
    names = [n for n in parts if _parent(_parent(n)) in around]
    kinds: dict[str, list[str]] = {}
    for part in names:
        kinds.setdefault(part.rpartition(".")[2], []).append(part)
    for alike in kinds.values():
        for n_parts in range(2, min(_MOST_JOINED, len(alike)) + 1):
            for first in range(len(alike) - n_parts + 1):
                group = tuple(alike[first : first + n_parts])
                if _adds_up(shape, [_turned(parts[n], transposed) for n in group], axis):
                    yield _Proposal(name, group, axis, False, transposed)


def _adds_up(shape: Shape, parts: list[Shape | None], axis: int) -> bool:
    known = [p for p in parts if p is not None and len(p) == len(shape)]
    if len(known) != len(parts):
        return False
    rest = {p[:axis] + p[axis + 1 :] for p in known}
    return rest == {shape[:axis] + shape[axis + 1 :]} and sum(p[axis] for p in known) == shape[axis]


def _pieces(p: _Proposal, shape: Shape, parts: dict[str, Shape], swapped: bool) -> Iterator[Piece]:
    if p.families:
        yield from _stack_pieces(p, parts, swapped)
        return
    start = 0
    for part in p.parts:
        if p.stacked:
            length = 1
        elif len(p.parts) == 1:
            length = shape[p.axis] if shape else 0
        else:
            turned = _turned(parts[part], p.transposed) or ()
            length = turned[p.axis]
        whole = Block(
            name=p.whole, axis=p.axis, start=start, stop=start + length, dropped=p.stacked
        )
        block = Block(name=part, stop=parts[part][0] if parts[part] else 0)
        start += length
        candidate, baseline = (block, whole) if swapped else (whole, block)
        yield Piece(candidate=candidate, baseline=baseline, transposed=p.transposed)


def _stack_pieces(p: _Proposal, parts: dict[str, Shape], swapped: bool) -> Iterator[Piece]:
    start = 0
    for family in p.families:
        length = (_turned(parts[family[0]], p.transposed) or ())[p.axis]
        inner = (p.axis, start, start + length)
        start += length
        for layer, part in enumerate(family):
            whole = Block(name=p.whole, start=layer, stop=layer + 1, dropped=True, inner=inner)
            block = Block(name=part, stop=parts[part][0])
            candidate, baseline = (block, whole) if swapped else (whole, block)
            yield Piece(candidate=candidate, baseline=baseline, transposed=p.transposed)


def _identity(name: str, shape: Shape) -> Piece:
    block = Block(name=name, stop=shape[0] if shape else 0)
    return Piece(candidate=block, baseline=block)


def _turned(shape: Shape, transposed: bool) -> Shape | None:
    if not transposed:
        return shape
    return (*shape[:-2], shape[-1], shape[-2]) if len(shape) >= 2 else None


def _series(names: list[str], length: int) -> Iterator[tuple[str, ...]]:
    """Groups of names that differ in one number only, which counts 0 to length - 1."""
    families: dict[tuple[str, ...], dict[int, str]] = {}
    for name in names:
        tokens = name.split(".")
        for i, token in enumerate(tokens):
            if token.isdecimal():
                key = (*tokens[:i], "*", *tokens[i + 1 :])
                families.setdefault(key, {})[int(token)] = name
    for members in families.values():
        if length > 0 and sorted(members) == list(range(length)):
            yield tuple(members[i] for i in range(length))


def _same_numbers(name: str, parts: tuple[str, ...]) -> bool:
    """Whether the layer numbers of a tensor are those all its parts share."""
    common = set(re.findall(r"\d+", parts[0]))
    for part in parts[1:]:
        common &= set(re.findall(r"\d+", part))
    layers = [n for n in name.split(".") if n.isdecimal()]
    wanted = [n for n in parts[0].split(".") if n.isdecimal()]
    return all(n in wanted for n in layers) if len(parts) == 1 else set(layers) <= common


def _likeness(name: str, parts: tuple[str, ...]) -> float:
    mine = _words(name)
    theirs = set(itertools.chain.from_iterable(map(_words, parts)))
    return len(theirs & mine) / max(1, len(mine))


def _words(name: str) -> set[str]:
    name = name.lower()
    return {*_TOKEN.findall(name), *name.replace("_", ".").split(".")}


def _parent(name: str) -> str:
    return name.rpartition(".")[0]
