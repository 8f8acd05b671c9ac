"""Loops over blocks of keys as attention has them, with everything at once that such kernels have: bounds of each
program's own, masks of many kinds, branches on arguments and on what was loaded, scales, biases, blocks left out.

    for first in range(low, high, 16):
        if tl.load(kept + first // 16) == 0: continue
        keys = first + tl.arange(0, 16)
        k = tl.load(k_ptr + keys[None, :] * d + dims[:, None], mask=keys[None, :] < n, other=0.0)
        s = tl.dot(q, k)
        if is_causal: s = tl.where(rows[:, None] >= keys[None, :], s, -64.0)
        ...
        acc = tl.dot(p, tl.load(v_ptr ...), acc * alpha[:, None])

What stands for the softmax is in whole numbers and powers of two, so that sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.generator.builder import Builder, Unfit, statement_of
from tests.fuzz.generator.control import hints
from tests.fuzz.generator.dots import rows_of

TYPES = ("float16", "float16", "bfloat16")
MAX_BLOCKS = 5


@dataclass
class _Names:
    """Texts of the program: the number of queries and keys, what rows, dims, keys and the first key are called."""

    dtype: str
    m: int
    n: int
    d: int
    blocks: int
    num_rows: str
    num_keys: str
    rows: str
    dims: str
    keys: str
    first: str
    flag: str

    @property
    def length(self) -> int:
        return self.n * self.blocks


@statement_of("scores")
def scores(b: Builder) -> None:
    if b.depth > 1:
        raise Unfit
    names = _begin(b)
    q, acc, best, total = (b.name(prefix) for prefix in ("q", "acc", "best", "sum"))
    of_queries = b.array(names.dtype, names.m * names.d * b.programs, "small")
    mask = f", mask={names.rows}[:, None] < {names.num_rows}, other=0.0" if b.chance(0.5) else ""
    b.emit(f"{q} = tl.load({of_queries} + {names.rows}[:, None] * {names.d} + {names.dims}[None, :]{mask})")
    b.emit(f"{acc} = tl.zeros(({names.m}, {names.d}), tl.float32)")
    b.emit(f"{best} = tl.full(({names.m},), -1000.0, tl.float32)")
    b.emit(f"{total} = tl.zeros(({names.m},), tl.float32)")
    load_keys, load_values = _operand(b, names, "k"), _operand(b, names, "v")
    low, high, step = _bounds(b, names)
    for begin, end, is_masked in _parts(b, low, high, names):
        hint = b.rng.choice(("", "", ", num_stages=3", ", warp_specialize=True", f", {hints(b)}"))
        with b.block(f"for {names.first} in tl.range({begin}, {end}, {step}{hint}):"):
            b.emit(f"{names.keys} = {names.first} + tl.arange(0, {names.n})")
            _leave_out(b, names)
            _iteration(b, names, (q, acc, best, total), load_keys, load_values, is_masked)
    if b.chance(0.5):
        b.emit(f"{acc} = {acc} + {total}[:, None] + {best}[:, None]")
    _store(b, names, acc)


def _begin(b: Builder) -> _Names:
    m, n, d = rows_of(b, 16, 64, 64, 128), b.rng.choice((16, 32, 64)), b.rng.choice((16, 32, 64))
    blocks = b.rng.randint(1, MAX_BLOCKS)
    num_rows = b.number("int32", b.rng.choice((m * b.programs, m * b.programs - 3, 5)))
    num_keys = b.number("int32", b.rng.choice((n * blocks, n * blocks, n * blocks - 5, 1, 0, n)))
    rows, dims, keys, first = (b.name(prefix) for prefix in ("rows", "dims", "keys", "first"))
    b.emit(f"{rows}, {dims} = pid * {m} + tl.arange(0, {m}), tl.arange(0, {d})")
    flag = str(b.number("int32", b.rng.choice((0, 1))))
    return _Names(b.rng.choice(TYPES), m, n, d, blocks, str(num_rows), str(num_keys), rows, dims, keys, first, flag)


def _operand(b: Builder, names: _Names, kind: str) -> str:
    """How an iteration loads keys, of (d, n), or values, of (n, d)."""
    array = b.array(names.dtype, names.length * names.d, "small")
    form = b.rng.choice(("plain", "turned", "masked", "masked turned", "descriptor", "block"))
    if form == "descriptor":
        name, height = b.name("d"), b.rng.choice((names.length, f"tl.maximum({names.num_keys}, 1)"))
        b.emit(
            f"{name} = tl.make_tensor_descriptor({array}, [{height}, "
            f"{names.d}], [{names.d}, 1], [{names.n}, {names.d}])"
        )
        text = f"{name}.load([{names.first}, 0])"
        return f"{text}.T" if kind == "k" else text
    if form == "block":
        pointer = (
            f"tl.make_block_ptr({array}, ({names.num_keys}, {names.d}), ({names.d}, 1), ({names.first}, 0), "
            f"({names.n}, {names.d}), (1, 0))"
        )
        text = f'tl.load({pointer}, boundary_check=(0,), padding_option="zero")'
        return f"tl.trans({text})" if kind == "k" else text
    is_direct = (kind == "k") == ("turned" in form)
    along, across = ("[None, :]", "[:, None]") if is_direct else ("[:, None]", "[None, :]")
    mask = f", mask={names.keys}{along} < {names.num_keys}, other=0.0" if "masked" in form else ""
    text = f"tl.load({array} + {names.keys}{along} * {names.d} + {names.dims}{across}{mask})"
    return f"tl.trans({text})" if is_direct != (kind == "k") else text


def _bounds(b: Builder, names: _Names) -> tuple[str, str, str]:
    """From which key to which; always within the arrays."""
    n, m, length = names.n, names.m, names.length
    lows = ("0", "0", f"tl.maximum(pid * {m} - {2 * n}, 0) // {n} * {n}", _loaded(b, "lows", names, 0))
    highs = (
        str(length),
        f"tl.minimum({names.num_keys}, {length})",
        f"tl.minimum((pid + 1) * {m}, {length})",
        f"tl.minimum((pid + 1) * {m}, {names.num_keys})",
        _loaded(b, "highs", names, 1),
    )
    return b.rng.choice(lows), b.rng.choice(highs), str(n)


def _loaded(b: Builder, prefix: str, names: _Names, extra: int) -> str:
    blocks = b.array("int32", b.programs, "index", names.blocks + extra, prefix)
    return f"tl.load({blocks} + pid) * {names.n}"


def _parts(b: Builder, low: str, high: str, names: _Names) -> list[tuple[str, str, bool]]:
    """One loop; or one without masks and one with them."""
    if b.chance(0.7):
        return [(low, high, True)]
    middle, begin, end = (b.name(prefix) for prefix in ("middle", "low", "high"))
    b.emit(f"{begin}, {end} = {low}, {high}")
    b.emit(f"{middle} = tl.minimum(tl.maximum(pid * {names.m} // {names.n} * {names.n}, {begin}), {end})")
    return [(begin, middle, False), (middle, end, True)]


def _leave_out(b: Builder, names: _Names) -> None:
    if b.chance(0.25):
        kept = b.array("int8", names.blocks * b.programs, "index", 3)
        condition = f"tl.load({kept} + pid * {names.blocks} + {names.first} // {names.n}) == 0"
        b.emit(f"if {b.rng.choice((condition, f'{names.first} == {names.n}'))}:")
        b.emit(f"    {b.rng.choice(('continue', 'continue', 'break'))}")


def _iteration(
    b: Builder, names: _Names, carried: tuple[str, str, str, str], keys: str, values: str, is_masked: bool
) -> None:
    q, acc, best, total = carried
    s, p, higher, alpha = (b.name(prefix) for prefix in ("s", "p", "higher", "alpha"))
    b.emit(f"{s} = tl.dot({q}, {keys}){b.rng.choice(('', ' * 0.5'))}")
    for _ in range(b.rng.choice((1, 1, 2)) if is_masked else 0):
        _mask(b, names, s)
    if b.chance(0.25):
        _bias(b, names, s)
    v = b.name("x")
    is_early = b.chance(0.4)
    if is_early:
        b.emit(f"{v} = {values}")
    b.emit(f"{higher} = tl.maximum({best}, tl.max({s}, 1))")
    b.emit(f"{p} = tl.where({s} == {higher}[:, None], 2.0, tl.clamp({s}, -3.0, 3.0))")
    b.emit(f"{alpha} = tl.where({higher} > {best}, 0.5, 1.0)")
    b.emit(f"{total} = {total} * {alpha} + tl.sum({p}, 1)")
    if not is_early:
        b.emit(f"{v} = {values}")
    given = _narrow(b, names, p, total)
    ways = (
        f"{acc} = tl.dot({given}, {v}, {acc} * {alpha}[:, None])",
        f"{acc} = {acc} * {alpha}[:, None]\n{{}}{acc} = tl.dot({given}, {v}, {acc})",
        f"{acc} = {acc} * {alpha}[:, None] + tl.dot({given}, {v})",
        f"{acc} += tl.dot({given}, {v})",
    )
    b.emit(b.rng.choice(ways).format("    " * b.depth))
    b.emit(f"{best} = {higher}")


def _narrow(b: Builder, names: _Names, p: str, total: str) -> str:
    """The operand beside the values, which something else in the iteration needs too at times."""
    given = f"{p}.to(tl.{names.dtype})"
    if b.chance(0.7):
        return given
    narrow = b.name("p")
    b.emit(f"{narrow} = {given}")
    if b.chance(0.3):
        b.emit(f"{total} += tl.sum({narrow}.to(tl.float32), 1)")
        return narrow
    scores_left = b.array(names.dtype, names.m * b.programs * names.length, "poison", prefix="out")
    store = f"tl.store({scores_left} + {names.rows}[:, None] * {names.length} + {names.keys}[None, :], {narrow})"
    if b.chance(0.3):
        with b.block(f"if {names.flag} == 1:"):
            b.emit(store)
    else:
        b.emit(store)
    return narrow


def _mask(b: Builder, names: _Names, s: str) -> None:
    row, key = f"{names.rows}[:, None]", f"{names.keys}[None, :]"
    window = b.number("int32", b.rng.choice((0, 3, names.n, 2**31 - 1)))
    conditions = [
        f"({row} >= {key})",
        f"({key} < {names.num_keys})",
        f"({row} - {key} < {window})",
        f"(({row} - {key} <= {window}) & ({key} - {row} <= {window}))",
        f"({key} <= {row} + {window} - {names.n})",
        f"(({key} < {names.n}) | ({row} >= {key}))",
        f"({row} < {names.num_rows})",
        f"({key} % 3 != 0)",
        f"({row} // 8 == {key} // 8)",
    ]
    condition = " & ".join(b.rng.sample(conditions, b.rng.choice((1, 1, 2))))
    masked = f"{s} = tl.where({condition}, {s}, {b.rng.choice(('-64.0', '0.0'))})"
    kind = b.rng.choice(("always", "always", "flag", "edge", "choice"))
    if kind == "always":
        b.emit(masked)
    elif kind == "choice":
        b.emit(f"{s} = tl.where(({names.flag} != 0) | ({condition}), {s}, -64.0)")
    else:
        edge = f"{names.first} + {names.n} > {b.rng.choice((names.num_keys, f'pid * {names.m}'))}"
        with b.block(f"if {f'{names.flag} != 0' if kind == 'flag' else edge}:"):
            b.emit(masked)


def _bias(b: Builder, names: _Names, s: str) -> None:
    """Of each key, or of each row and key, on an argument or always."""
    if b.chance(0.5):
        bias = b.array("float32", names.length, "small")
        text = f"{s} = {s} + tl.load({bias} + {names.keys})[None, :]"
    else:
        bias = b.array(names.dtype, names.m * b.programs * names.length, "small")
        at = f"{names.rows}[:, None] * {names.length} + {names.keys}[None, :]"
        text = f"{s} = {s} + tl.load({bias} + {at})"
    if b.chance(0.5):
        with b.block(f"if {names.flag} == 1:"):
            b.emit(text)
    else:
        b.emit(text)


def _store(b: Builder, names: _Names, acc: str) -> None:
    size = names.m * names.d * b.programs
    at = f"{names.rows}[:, None] * {names.d} + {names.dims}[None, :]"
    mask = f", mask={names.rows}[:, None] < {names.num_rows}" if b.chance(0.6) else ""
    if b.chance(0.2):
        b.emit(f"tl.atomic_add({b.array('float32', size, 'small', prefix='io')} + {at}, {acc}{mask})")
    else:
        b.emit(f"tl.store({b.array('float32', size, 'poison', prefix='out')} + {at}, {acc}{mask})")
