"""Attention in fp16: causal in one and two loops, groups, windows, ALiBi, packed; backward, decoding.

Beside torch's on cuDNN where that has it, else on its other backends. Operations that a mask leaves out do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

LOG2_E = math.log2(math.e)
SOURCE, MORE = "everyday/attention_kernels", "everyday/more_attention_kernels"
# Matrices of scores in float64 are made for so many heads at a time.
HEADS_AT_A_TIME = 4


def cases(is_small: bool = False) -> Iterator[Case]:
    for dim, length in ((32, 64),) if is_small else ((64, 4096), (128, 4096), (128, 16384)):
        shape = (1, 2, length, dim) if is_small else (4 if length == 4096 else 1, 32, length, dim)
        tiles = (32, 16, 4, 2), (32, 32, 4, 2)
        if not is_small:
            narrow = (128, 64, 4, 3), (64, 64, 4, 3), (64, 64, 4, 2)
            tiles = narrow if dim == 64 else ((128, 64, 8, 3), (128, 128, 8, 2))
        yield _causal("one loop", "causal_in_one_loop", shape, tiles)
        yield _causal("two loops", "causal_in_two_loops", shape, tiles)
    tiles = ((16, 32, 4, 2),) if is_small else ((128, 64, 8, 3), (128, 128, 8, 2))
    yield _grouped_heads(*(2, 4, 2, 37, 53, 32) if is_small else (4, 32, 8, 4096, 4096, 128), tiles)
    yield _sliding_window(*((2, 2, 96, 32), 40) if is_small else ((1, 32, 16384, 128), 1024), tiles)
    yield _alibi((2, 3, 64, 32) if is_small else (4, 32, 4096, 128), tiles)
    yield _packed_sequences(*(3, 90, 2, 32) if is_small else (16, 32768, 32, 128), tiles)
    backward_tiles = ((32, 16, 4, 2),) if is_small else ((128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 4, 3))
    for dim in (32,) if is_small else (64, 128):
        for is_causal in (False, True):
            yield _backward((1, 2, 64, dim) if is_small else (4, 32, 4096, dim), is_causal, backward_tiles)
    sizes = (3, 2, 50, 16, 32, 2) if is_small else (64, 8, 8192, 16, 128, 8)
    for group in (1, 3) if is_small else (1, 4, 16):
        yield _paged_decode(group, *sizes)
    yield _paged_decode(0, *sizes)


def _configs(tiles: tuple[tuple[int, ...], ...], dim: int) -> tuple[Config, ...]:
    return tuple(config(warps, stages, HEAD_DIM=dim, BLOCK_M=m, BLOCK_N=n) for m, n, warps, stages in tiles)


def _case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    configs: tuple[Config, ...],
    grid: Callable[[dict[str, Any]], tuple[int, ...]],
    make: Callable[[], Problem],
    operations: float,
    num_bytes: float = 0.0,
    source: str = SOURCE,
) -> Case:
    return case(
        "attention",
        name,
        source,
        kernel,
        parameters,
        configs,
        grid,
        make,
        num_bytes=num_bytes,
        operations=operations,
        multiplied="fp16",
    )


def _operations(shape: tuple[int, int, int, int], share: float = 0.5) -> float:
    """Of both products, for the share of the scores that is not masked."""
    batches, heads, length, dim = shape
    return 4 * batches * heads * length**2 * dim * share


def _name(kind: str, shape: tuple[int, int, int, int]) -> str:
    batches, heads, length, dim = shape
    return f"attention {kind} D={dim} n={length} {batches}x{heads}"


def _grid(shape: tuple[int, int, int, int]) -> Callable[[dict[str, Any]], tuple[int, ...]]:
    batches, heads, length, _ = shape
    return lambda meta: (cdiv(length, meta["BLOCK_M"]), batches * heads)


def _inputs(*shape: int) -> tuple[Any, ...]:
    return tuple(random(*shape, dtype="float16") for _ in range(3))


def _exact(q: Any, k: Any, v: Any, mask: Callable[[Any, Any], Any], bias: Any = None) -> tuple[Any, Any]:
    """Attention in float64 and the logarithms (of 2) of its sums; `mask` says of rows and columns what is seen."""
    import torch  # deferred: --precompile needs none

    *heads, length, dim = q.shape
    out, lse = torch.empty(q.shape, dtype=torch.float64), torch.empty(q.shape[:-1], dtype=torch.float64)
    rows, columns = torch.arange(length)[:, None], torch.arange(k.shape[-2])[None, :]
    hidden = ~mask(rows, columns)
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v)]
    for first in range(0, math.prod(heads), HEADS_AT_A_TIME):
        q_here, k_here, v_here = (x[first : first + HEADS_AT_A_TIME].double() for x in flat)
        scores = q_here @ k_here.mT * dim**-0.5
        if bias is not None:
            scores += bias[first : first + HEADS_AT_A_TIME]
        scores.masked_fill_(hidden, -torch.inf)
        lse.view(-1, length)[first : first + HEADS_AT_A_TIME] = scores.logsumexp(-1) * LOG2_E
        out.view(-1, length, dim)[first : first + HEADS_AT_A_TIME] = scores.softmax(-1) @ v_here
    return out, lse


def _is_causal(rows: Any, columns: Any) -> Any:
    return rows >= columns


def _all_seen(rows: Any, columns: Any) -> Any:
    return rows + columns >= 0


def library(q: Any, k: Any, v: Any, **options: Any) -> tuple[str, Callable[[], Any]]:
    """PyTorch's attention on the first backend that takes this."""
    from torch.nn.attention import SDPBackend, sdpa_kernel  # deferred: as above
    from torch.nn.functional import scaled_dot_product_attention

    def run(backend: SDPBackend) -> Any:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, **options)

    names = {
        "cuDNN": "CUDNN_ATTENTION",
        "flash": "FLASH_ATTENTION",
        "efficient": "EFFICIENT_ATTENTION",
        "torch": "MATH",
    }
    for name, member in names.items():
        backend = getattr(SDPBackend, member)
        try:
            run(backend)
        except RuntimeError:
            continue
        return name, lambda backend=backend: run(backend)
    raise RuntimeError("no backend of torch takes this attention")


def _causal(kind: str, kernel: str, shape: tuple[int, int, int, int], tiles: Any) -> Case:
    batches, heads, length, dim = shape

    def make() -> Problem:
        q, k, v = _inputs(*shape)
        out, lse = empty(*shape, dtype="float16"), empty(*shape[:-1], dtype="float32")
        expected, expected_lse = _exact(q, k, v, _is_causal)
        outputs = (Output(out, expected), Output(lse, expected_lse))
        vendor = Vendor(*library(q, k, v, is_causal=True))
        if kernel == "causal_in_one_loop":
            return Problem((q, k, v, out), outputs[:1], vendor)
        return Problem((q, k, v, out, lse), outputs, vendor)

    arrays = ("*fp16",) * 4 + (("*fp32",) if kernel == "causal_in_two_loops" else ())
    parameters = (*arrays, dim**-0.5 * LOG2_E, length)
    return _case(_name(kind, shape), kernel, parameters, _configs(tiles, dim), _grid(shape), make, _operations(shape))


def _grouped_heads(batches: int, heads: int, kv_heads: int, length: int, num_keys: int, dim: int, tiles: Any) -> Case:
    def make() -> Problem:
        q, out = (
            random(batches, length, heads, dim, dtype="float16"),
            empty(batches, length, heads, dim, dtype="float16"),
        )
        k, v = (random(batches, num_keys, kv_heads, dim, dtype="float16") for _ in range(2))
        by_head = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        wide_k, wide_v = (x.repeat_interleave(heads // kv_heads, 1) for x in by_head[1:])
        expected, _ = _exact(by_head[0].contiguous(), wide_k, wide_v, _all_seen)
        vendor = Vendor(*library(*by_head, enable_gqa=True))
        return Problem((q, k, v, out), (Output(out, expected.transpose(1, 2)),), vendor)

    return _case(
        f"attention {heads} heads on {kv_heads} D={dim} n={num_keys}",
        "grouped_heads",
        ("*fp16",) * 4 + (dim**-0.5 * LOG2_E, length, num_keys, heads, kv_heads),
        _configs(tiles, dim),
        lambda meta: (cdiv(length, meta["BLOCK_M"]), heads, batches),
        make,
        4 * batches * heads * length * num_keys * dim,
    )


def _sliding_window(shape: tuple[int, int, int, int], window: int, tiles: Any) -> Case:
    *_, length, dim = shape

    def make() -> Problem:
        q, k, v = _inputs(*shape)
        out = empty(*shape, dtype="float16")
        expected, _ = _exact(q, k, v, lambda rows, columns: (rows >= columns) & (rows - columns < window))
        return Problem((q, k, v, out), (Output(out, expected),))

    parameters = ("*fp16",) * 4 + (dim**-0.5 * LOG2_E, length, window)
    name = _name(f"window {window}", shape)
    operations = _operations(shape, window / length)
    return _case(name, "sliding_window", parameters, _configs(tiles, dim), _grid(shape), make, operations)


def _alibi(shape: tuple[int, int, int, int], tiles: Any) -> Case:
    batches, heads, length, dim = shape

    def make() -> Problem:
        import torch  # deferred: as above

        q, k, v = _inputs(*shape)
        slopes, out = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads), empty(*shape, dtype="float16")
        distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        biases = _Biases(slopes.double().repeat(batches), distance.double())
        expected, _ = _exact(q, k, v, _is_causal, biases)
        return Problem((q, k, v, slopes, out), (Output(out, expected),))

    parameters = ("*fp16",) * 3 + ("*fp32", "*fp16", dim**-0.5 * LOG2_E, heads, length)
    return _case(
        _name("alibi", shape), "alibi", parameters, _configs(tiles, dim), _grid(shape), make, _operations(shape)
    )


class _Biases:
    """Of some heads at a time: all would not fit."""

    def __init__(self, slopes: Any, distance: Any):
        self._slopes, self._distance = slopes, distance

    def __getitem__(self, heads: slice) -> Any:
        return -self._slopes[heads, None, None] * self._distance


def _packed_sequences(num_sequences: int, tokens: int, heads: int, dim: int, tiles: Any) -> Case:
    """Sequences of equal lengths but for a part of each that is drawn."""
    mean = tokens // num_sequences
    longest = 2 * mean

    def make() -> Problem:
        import torch  # deferred: as above

        cuts = torch.arange(1, num_sequences) * mean + torch.randint(-mean // 2, mean // 2, (num_sequences - 1,))
        ends = [0, *cuts.tolist(), tokens]
        q, k, v = _inputs(tokens, heads, dim)
        out = empty(tokens, heads, dim, dtype="float16")
        parts = []
        for begin, end in zip(ends, ends[1:], strict=False):
            here = [x[begin:end].transpose(0, 1).contiguous() for x in (q, k, v)]
            parts.append(_exact(*here, _is_causal)[0].transpose(0, 1))
        starts = torch.tensor(ends, dtype=torch.int32)
        return Problem((q, k, v, out, starts), (Output(out, torch.cat(parts)),))

    return _case(
        f"attention packed {num_sequences} in {tokens} D={dim}",
        "packed_sequences",
        ("*fp16",) * 4 + ("*i32", dim**-0.5 * LOG2_E, heads),
        _configs(tiles, dim),
        lambda meta: (cdiv(longest, meta["BLOCK_M"]), heads, num_sequences),
        make,
        2 * heads * tokens * mean * dim,
    )


def _backward(shape: tuple[int, int, int, int], is_causal: bool, tiles: Any) -> Case:
    """dq, dk, dv by one launch; the vendor's has the sums of out * dout in it besides."""
    batches, heads, length, dim = shape

    def make() -> Problem:
        import torch  # deferred: as above

        q, k, v = (x.requires_grad_() for x in _inputs(*shape))
        dout = random(*shape, dtype="float16")
        out, lse, gradients = _exact_gradients(q.detach(), k.detach(), v.detach(), dout, is_causal)
        delta = (out * dout.double()).sum(-1).float()
        written = [empty(*shape, dtype="float16") for _ in range(3)]
        outputs = tuple(Output(array, exact, 2e-3) for array, exact in zip(written, gradients, strict=True))
        arrays = (*(x.detach() for x in (q, k, v)), dout, lse.float(), delta, *written)
        name, forward = library(q, k, v, is_causal=is_causal)
        result = forward()
        vendor = Vendor(name, lambda: torch.autograd.grad(result, (q, k, v), dout, retain_graph=True))
        return Problem(arrays, outputs, vendor)

    configs = tuple(
        config(warps, stages, CAUSAL=is_causal, HEAD_DIM=dim, BLOCK=block, BLOCK_LOOP=loop)
        for block, loop, warps, stages in tiles
    )
    return _case(
        _name(f"backward {'causal' if is_causal else 'full'}", shape),
        "backward",
        ("*fp16",) * 4 + ("*fp32", "*fp32") + ("*fp16",) * 3 + (dim**-0.5, length),
        configs,
        lambda meta: (length // meta["BLOCK"], batches * heads),
        make,
        2.5 * _operations(shape, 0.5 if is_causal else 1.0),
        source=MORE,
    )


def _exact_gradients(q: Any, k: Any, v: Any, dout: Any, is_causal: bool) -> tuple[Any, Any, tuple[Any, ...]]:
    """In float64, head by head: out, lse, and dq, dk, dv."""
    import torch  # deferred: as above

    length, dim = q.shape[-2:]
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1) if is_causal else None
    flat = [x.reshape(-1, length, dim) for x in (q, k, v, dout)]
    out, dq, dk, dv = (torch.empty(q.shape, dtype=torch.float64) for _ in range(4))
    lse = torch.empty(q.shape[:-1], dtype=torch.float64)
    for head in range(len(flat[0])):
        q_h, k_h, v_h, dout_h = (x[head].double() for x in flat)
        scores = q_h @ k_h.T * dim**-0.5
        if is_causal:
            scores.masked_fill_(hidden, -torch.inf)
        lse.view(-1, length)[head] = scores.logsumexp(-1) * LOG2_E
        p = scores.softmax(-1)
        out_h = p @ v_h
        ds = p * (dout_h @ v_h.T - (out_h * dout_h).sum(-1, keepdim=True)) * dim**-0.5
        of_head = (out, out_h), (dq, ds @ k_h), (dk, ds.T @ q_h), (dv, p.T @ dout_h)
        for whole, part in of_head:
            whole.view(-1, length, dim)[head] = part
    return out, lse, (dq, dk, dv)


def _paged_decode(group: int, sequences: int, heads: int, longest: int, page: int, dim: int, parts: int) -> Case:
    """`group` queries for each head of keys; 0: one, without dots. The last part of a sequence is cut somewhere."""
    queries = max(group, 1)
    keys_per_part = cdiv(longest, parts)
    max_pages = cdiv(longest, page)

    def make() -> Problem:
        import torch  # deferred: as above

        q = random(sequences, heads, queries, dim, dtype="float16")
        k, v = (random(sequences * max_pages, page, heads, dim, dtype="float16") for _ in range(2))
        pages = torch.randperm(sequences * max_pages).view(sequences, max_pages).to(torch.int32)
        lengths = torch.randint(longest - keys_per_part + 1, longest + 1, (sequences,), dtype=torch.int32)
        out = empty(sequences, heads, parts, queries, dim, dtype="float32")
        lse = empty(sequences, heads, parts, queries, dtype="float32")
        expected, expected_lse = (
            torch.empty(out.shape, dtype=torch.float64),
            torch.empty(lse.shape, dtype=torch.float64),
        )
        for sequence in range(sequences):
            k_s, v_s = (x[pages[sequence]].view(-1, heads, dim)[: lengths[sequence]].double() for x in (k, v))
            for part in range(parts):
                here = slice(part * keys_per_part, (part + 1) * keys_per_part)
                scores = torch.einsum("hgd,nhd->hgn", q[sequence].double(), k_s[here]) * dim**-0.5
                expected[sequence, :, part] = torch.einsum("hgn,nhd->hgd", scores.softmax(-1), v_s[here])
                expected_lse[sequence, :, part] = scores.logsumexp(-1) * LOG2_E
        outputs = (Output(out, expected), Output(lse, expected_lse, 1e-4))
        return Problem((q, k, v, pages, lengths, out, lse), outputs)

    arrays = ("*fp16",) * 3 + ("*i32", "*i32", "*fp32", "*fp32")
    parameters = (*arrays, dim**-0.5 * LOG2_E, heads, *((queries,) if group else ()), max_pages, keys_per_part)
    blocks = (16,) if dim < 128 else (64, 128) if group else (32, 64)
    padded = {"BLOCK_H": 16} if group else {}
    name = f"paged decode {queries} on a head{'' if group else ', no dots'} D={dim} n={longest}"
    read = longest - keys_per_part / 2
    return _case(
        name,
        "paged_decode" if group else "paged_decode_of_one",
        parameters,
        tuple(config(4, 3, PAGE=page, HEAD_DIM=dim, **padded, BLOCK_N=block) for block in blocks),
        lambda meta: (sequences, heads, parts),
        make,
        4 * sequences * heads * queries * read * dim,
        num_bytes=4 * sequences * heads * read * dim,
        source=MORE,
    )
