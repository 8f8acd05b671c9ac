"""The two sides of a run-time branch become one: variables, what is returned, and on which paths it has left.

    if n > 0: x = a           %x = scf.if %c -> (f32) { yield %a } else { yield %b }
    else: x = b

    if n > 0: x = a           %x, %left = scf.if %c -> (f32, i1) { yield %a, %false } else { yield %zero, %d }
    elif d: break             x has a value on the paths that go on; on the others it is lost

Both sides must give a variable the same type, unless one of them has left. Those of a conditional expression are
promoted to one.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region

from deuteron.frontend.carried import bind_results, can_join, how_to_agree, placeholder, promote
from deuteron.frontend.completion import NOTHING, Completion, Exit, Flag, Kind
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.constant import number
from deuteron.frontend.semantics.operands import common_shape_of, in_type, is_numeric
from deuteron.frontend.semantics.promote import promote_operands
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import (
    Tensor,
    Value,
    describe,
    is_runtime,
    is_same,
    is_same_kind,
    tensors_in,
    with_handles,
)
from deuteron.language.constant import rebuild
from deuteron.language.types import int1

_ABSENT = object()
_RETURNED = "the returned value"


@dataclass
class Side:
    """One side of a run-time branch: its block, how it ends, the variables then, and why names have no value.

    `result` is that of an expression.
    """

    block: Block
    completion: Completion
    variables: dict[str, Value]
    lost: dict[str, str]
    result: Value = None
    lost_on_exit: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        return self.variables.get(name, _ABSENT)


def compile_side(ctx: Context, compile_block: Callable[[], Completion]) -> Side:
    """What `compile_block` inserts, as a side; the scope is then what it was."""
    before, block = ctx.scope.snapshot(), Block()
    with ctx.builder.at(block):
        completion = compile_block()
    side = Side(block, completion, ctx.scope.variables, ctx.scope.lost)
    ctx.scope.restore(before)
    return side


def resume(ctx: Context, side: Side, compile_rest: Callable[[Completion], Completion]) -> Side:
    """The side, and after it what `compile_rest` inserts, which is told how the side ends."""
    before = ctx.scope.snapshot()
    ctx.scope.restore((side.variables, side.lost))
    with ctx.builder.at(side.block):
        completion = compile_rest(side.completion)
    resumed = Side(side.block, completion, ctx.scope.variables, ctx.scope.lost)
    ctx.scope.restore(before)
    return resumed


def join(ctx: Context, decision: Tensor, sides: tuple[Side, Side], what: str | None = None) -> tuple[Completion, Value]:
    """Build the scf.if: how it ends, and where `what` says what the sides' results are, their common value.

    Raises CompilationError where types differ.
    """
    return _Join(ctx, decision, sides).build(what)


@dataclass
class _Pair:
    """What both sides yield for one value; `name` is that of a variable."""

    name: str | None
    values: tuple[Value, Value]
    joined: Value = None


class _Join:
    def __init__(self, ctx: Context, decision: Tensor, sides: tuple[Side, Side]):
        self.ctx, self.decision, self.sides = ctx, decision, sides
        self.pairs: list[_Pair] = []
        self.falls_through = any(side.completion.falls_through for side in sides)

    def build(self, what: str | None) -> tuple[Completion, Value]:
        variables = [pair for name in self._names() if (pair := self._variable(name))]
        result = self._add(what, *self._unified(*(side.result for side in self.sides))) if what else None
        flags = self._flags()
        value = self._returned_value()
        self._insert()
        for pair in variables:
            self.ctx.scope.assign(pair.name, pair.joined)
        return self._completion(flags, value), result.joined if result else None

    # -- variables

    def _names(self) -> list[str]:
        """The variables that may be read afterwards: where all paths leave, those that the loop carries."""
        both = [*self.sides[0].variables, *self.sides[1].variables, *self.sides[0].lost, *self.sides[1].lost]
        carried = self.ctx.frame.carried
        if self.falls_through or carried is None:
            return list(dict.fromkeys(both))
        return [name for name in dict.fromkeys(both) if name in carried]

    def _variable(self, name: str) -> _Pair | None:
        """What the sides yield for a variable, if it is not the one from before."""
        before = self.ctx.scope.variables.get(name, _ABSENT)
        alive = [side for side in self.sides if side.completion.is_alive]
        if all(before is not _ABSENT and is_same(before, side.value(name)) for side in alive):
            return None
        having = [side for side in alive if side.value(name) is not _ABSENT]
        if len(having) == 2 and (pair := self._add_if_equal(name)):
            return pair
        staying = [side for side in alive if side.completion.falls_through]
        if len(having) == len(staying) == 2:
            raise self._disagreement(name, *(side.value(name) for side in self.sides))
        if len(staying) == 1 and staying[0] in having:
            return self._variable_of(name, staying[0], alive)
        if len(alive) == 1 and having:
            return self._variable_of(name, having[0], alive)
        self._lose(name, having)
        return None

    def _variable_of(self, name: str, owner: Side, alive: Sequence[Side]) -> _Pair | None:
        """A variable that has its value from one side, since the other one has left."""
        other = self.sides[1 if owner is self.sides[0] else 0]
        if other in alive:
            other.lost_on_exit[name] = other.lost.get(name) or self._loss(name, [owner])
        value, before = owner.value(name), self.ctx.scope.variables.get(name, _ABSENT)
        if before is not _ABSENT and is_same(before, value):
            return None
        if is_bound_to_region(value):
            self._lose(name, [owner])
            return None
        return self._add_one_sided(name, value, owner, other.value(name))

    def _lose(self, name: str, having: Sequence[Side]) -> None:
        reasons = [side.lost[name] for side in self.sides if name in side.lost]
        reason = reasons[0] if reasons and len(having) < 2 else self._loss(name, having)
        self.ctx.scope.lose(name, reason)
        for side in self.sides:
            if side not in having or len(having) == 2:
                side.lost_on_exit[name] = reason

    def _loss(self, name: str, having: Sequence[Side]) -> str:
        """Why the `if` leaves a name without a value."""
        kind = "'if'" if isinstance(self.ctx.frame.node, ast.If) else "statement"
        line = self.ctx.frame.location().line
        values = [side.value(name) for side in self.sides if side.value(name) is not _ABSENT]
        types = [describe(value) for value in values]
        if len(types) == 2 and types[0] != types[1]:
            return (
                f"'{name}' is {types[0]} on one side of the {kind} in line {line} and {types[1]} on the other, where "
                f"one of them leaves the loop's body. {how_to_agree(*values)}"
            )
        return (
            f"'{name}' is assigned on one side only of the {kind} in line {line}, so that it may have no value here. "
            f"Assign it before the {kind}, or on both sides."
        )

    # -- pairs

    def _add(self, what: str, then: Value, otherwise: Value) -> _Pair:
        pair = self._agree(what, then, otherwise)
        if pair is None:
            raise self._disagreement(what, then, otherwise)
        return pair

    def _unified(self, then: Value, otherwise: Value) -> tuple[Value, Value]:
        """The values in their common type and shape, as an operator would have it; items of tuples each."""
        if isinstance(then, tuple) and isinstance(otherwise, tuple) and is_same_kind(then, otherwise):
            pairs = [self._unified(*pair) for pair in zip(then, otherwise, strict=True)]
            return rebuild(then, [pair[0] for pair in pairs]), rebuild(otherwise, [pair[1] for pair in pairs])
        if is_same(then, otherwise) or not (is_numeric(then) and is_numeric(otherwise)):
            return then, otherwise
        self.ctx.stamp()
        type, shape = promote_operands(self.ctx, then, otherwise), common_shape_of(self.ctx, then, otherwise)
        values = []
        for side, value in zip(self.sides, (then, otherwise), strict=True):
            with self.ctx.builder.at(side.block):
                values.append(in_type(self.ctx, value, type, shape))
        return values[0], values[1]

    def _add_if_equal(self, name: str) -> _Pair | None:
        return self._agree(name, *(side.value(name) for side in self.sides))

    def _agree(self, what: str, then: Value, otherwise: Value) -> _Pair | None:
        name = what if what.isidentifier() else None
        self.ctx.stamp(name)
        with self.ctx.builder.at(self.sides[0].block):
            left = promote(self.ctx, then, otherwise)
        with self.ctx.builder.at(self.sides[1].block):
            right = promote(self.ctx, otherwise, then)
        if not can_join(left, right):
            return None
        self.pairs.append(_Pair(name, (left, right)))
        return self.pairs[-1]

    def _add_one_sided(self, name: str | None, value: Value, owner: Side, candidate: Value = _ABSENT) -> _Pair:
        """The value of one side; the other one, on which nobody reads it, yields what it has, or a placeholder."""
        other = self.sides[1 if owner is self.sides[0] else 0]
        filler = candidate
        if not can_join(value, candidate):
            self.ctx.stamp(name)
            with self.ctx.builder.at(other.block):
                filler = with_handles(value, (placeholder(self.ctx, tensor).handle for tensor in tensors_in(value)))
        self.pairs.append(_Pair(name, (value, filler) if owner is self.sides[0] else (filler, value)))
        return self.pairs[-1]

    def _disagreement(self, what: str, then: Value, otherwise: Value) -> Exception:
        shown = f"'{what}'" if what.isidentifier() else what
        return self.ctx.error(
            f"{shown[0].upper()}{shown[1:]} is {describe(then)} on one side and {describe(otherwise)} on the other. "
            f"{how_to_agree(then, otherwise)}"
        )

    # -- how it ends

    def _kinds(self) -> list[Kind]:
        return list(dict.fromkeys(kind for side in self.sides for kind in side.completion.exits))

    def _flags(self) -> dict[Kind | None, Flag | _Pair]:
        """On which paths it has left, and for which exit: known, as the decision says, or as the sides yield."""
        flags: dict[Kind | None, Flag | _Pair] = {None: self._flag([side.completion.left for side in self.sides])}
        kinds = self._kinds()
        for kind in kinds:
            is_only = len(kinds) == 1 or kind is ast.Continue
            whens = [side.completion.when(kind) for side in self.sides]
            flags[kind] = flags[None] if is_only else self._flag(whens)
        return flags

    def _flag(self, sides: Sequence[Flag]) -> Flag | _Pair:
        if not any(isinstance(flag, Tensor) for flag in sides):
            return sides[0] if sides[0] == sides[1] else _Known(sides[0])
        handles = []
        for side, flag in zip(self.sides, sides, strict=True):
            with self.ctx.builder.at(side.block):
                handles.append(flag_tensor(self.ctx, flag))
        self.pairs.append(_Pair(None, (handles[0], handles[1])))
        return self.pairs[-1]

    def _returned_value(self) -> _Pair | None:
        returning = [side for side in self.sides if side.completion.value is not NOTHING]
        if not returning:
            return None
        if len(returning) == 2:
            self._check_returned()
            return self._add(_RETURNED, *(side.completion.value for side in self.sides))
        value = returning[0].completion.value
        if any(side not in returning and ast.Return in side.completion.exits for side in self.sides):
            self._warn_of_nothing_returned(value)
        if is_bound_to_region(value):
            raise self.ctx.error(f"One path returns {describe(value)}, and others go on. Return it where all paths do.")
        return self._add_one_sided(None, value, returning[0])

    def _check_returned(self) -> None:
        values = [side.completion.value for side in self.sides]
        if any(value is None for value in values) and any(map(is_runtime, values)):
            shown = next(describe(value) for value in values if value is not None)
            raise self.ctx.error(f"Some paths return {shown} and others None. Return a value of that type there too.")

    def _warn_of_nothing_returned(self, value: Value) -> None:
        """Of a function that comes to its end on some paths: Triton takes it, and gives whatever there is."""
        what = f"'{self.ctx.scope.function.__name__}' returns {describe(value)} on some paths and nothing on others"
        way_out = "where its value may be anything. Return a value there too."
        warnings.warn(f"{self.ctx.frame.location()}: {what}, {way_out}", stacklevel=2)

    def _completion(self, flags: dict[Kind | None, Flag | _Pair], value: _Pair | None) -> Completion:
        left = self._final(flags[None])
        final = {kind: left if flag is flags[None] else self._final(flag) for kind, flag in flags.items()}
        exits = {kind: Exit(final[kind], self._lost_on_exit(kind)) for kind in self._kinds()}
        return Completion(final[None], exits, value.joined if value else NOTHING)

    def _final(self, flag: Flag | _Pair | _Known) -> Flag:
        if isinstance(flag, _Pair):
            return flag.joined
        if isinstance(flag, _Known):
            return self.decision if flag.where_decided else negated(self.ctx, self.decision)
        return flag

    def _lost_on_exit(self, kind: Kind) -> dict[str, str]:
        lost: dict[str, str] = {}
        for side in self.sides:
            if kind in side.completion.exits:
                lost |= side.completion.exits[kind].lost | side.lost_on_exit
        return lost

    # -- the op

    def _insert(self) -> None:
        ctx = self.ctx
        ctx.stamp()
        for index, side in enumerate(self.sides):
            yielded = [tensor.handle for pair in self.pairs for tensor in tensors_in(pair.values[index])]
            with ctx.builder.at(side.block):
                ctx.builder.insert(scf.YieldOp(*yielded))
        types = [tensor.handle.type for pair in self.pairs for tensor in tensors_in(pair.values[0])]
        then, otherwise = (side.block for side in self.sides)
        has_else = types or len(otherwise.ops) > 1
        op = scf.IfOp(self.decision.handle, types, Region(then), Region(otherwise) if has_else else None)
        results = iter(ctx.builder.insert(op).results)
        for pair in self.pairs:
            pair.joined = bind_results(pair.values[0], results, pair.name)


@dataclass(frozen=True)
class _Known:
    """A flag that is true just on the side of this decision."""

    where_decided: bool


def is_bound_to_region(value: Value) -> bool:
    """Whether no placeholder can stand for it on a path on which nobody reads it: a descriptor, a block pointer."""
    if isinstance(value, tuple):
        return any(map(is_bound_to_region, value))
    return is_runtime(value) and not isinstance(value, Tensor)


def flag_tensor(ctx: Context, flag: Flag) -> Tensor:
    return flag if isinstance(flag, Tensor) else number(ctx, flag, int1)


def negated(ctx: Context, flag: Tensor) -> Tensor:
    return tensor(ctx, arith.XOrIOp(flag.handle, number(ctx, True, int1).handle), int1)


def either(ctx: Context, flags: Sequence[Flag]) -> Flag:
    """Whether one of the flags is true."""
    result: Flag = False
    for flag in flags:
        if flag is True or result is False:
            result = flag
        elif isinstance(flag, Tensor) and result is not True and flag is not result:
            result = tensor(ctx, arith.OrIOp(result.handle, flag.handle), int1)
    return result
