"""Attention over pages and slots: decoding in parts, merging them, prompts and tokens in one launch."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

_case = functools.partial(case, "serving", source="projects/serving/attention_kernels")


def cases(is_small: bool = False) -> Iterator[Case]:
    small = is_small
    yield _decode_grouped(*(2, 8, 2, 100, 32, 0, 32, 2) if small else (128, 32, 8, 4096, 128, 0, 128, 8), cap=0)
    yield _decode_grouped(*(2, 8, 2, 100, 32, 0, 32, 2) if small else (64, 32, 4, 8192, 128, 0, 128, 16), cap=30)
    yield _decode_grouped(*(2, 16, 1, 100, 32, 16, 32, 2) if small else (128, 128, 1, 4096, 512, 64, 512, 4), cap=0)
    yield _decode_one(*(2, 3, 100, 32, 2) if small else (64, 32, 4096, 128, 8))
    yield _decode_merge(*(3, 4, 32, 4) if small else (2048, 64, 128, 8))
    yield _unified(*((7, 1, 20), 4, 2, 32, 0, 0) if small else ((2048,) * 4 + (1,) * 60, 32, 8, 128, 0, 50))
    yield _unified(*((7, 1, 20), 4, 2, 32, 9, 0) if small else ((1,) * 256, 64, 8, 64, 0, 0))
    yield _unified(*((7, 1, 20), 4, 2, 32, 9, 0) if small else ((4096,) * 4, 64, 8, 64, 128, 0))


def _slots(sequences: int, longest: int) -> Any:
    import torch  # deferred: --precompile needs none

    return torch.randperm(sequences * longest).view(sequences, longest).to(torch.int32)


def _lengths(sequences: int, longest: int) -> Any:
    import torch  # deferred: as above

    return torch.randint(longest * 7 // 8, longest + 1, (sequences,), dtype=torch.int32)


def _decode_grouped(
    sequences: int, heads: int, kv_heads: int, longest: int, dim: int, pe: int, value_dim: int, parts: int, cap: int
) -> Case:
    group = heads // kv_heads

    def make() -> Problem:
        import torch  # deferred: as above

        q = random(sequences, heads, dim + pe)
        k = random(sequences * longest, kv_heads, dim + pe)
        v = k if pe else random(sequences * longest, kv_heads, value_dim)
        slots, lengths = _slots(sequences, longest), _lengths(sequences, longest)
        out = empty(sequences, heads, parts, value_dim + 1, dtype="float32")
        expected = torch.empty(out.shape, dtype=torch.float64)
        for sequence in range(sequences):
            length = int(lengths[sequence])
            own = slots[sequence, :length].long()
            k_s, v_s = k[own].double(), v[own][:, :, :value_dim].double()
            q_s = q[sequence].double().view(kv_heads, group, dim + pe)
            scores = torch.einsum("hgd,nhd->hgn", q_s, k_s) * (dim + pe) ** -0.5
            if cap:
                scores = cap * torch.tanh(scores / cap)
            each = cdiv(length, parts)
            for part in range(parts):
                here = slice(part * each, min(length, (part + 1) * each))
                s = scores[:, :, here]
                value = torch.einsum("hgn,nhd->hgd", s.softmax(-1), v_s[here]).reshape(heads, -1)
                expected[sequence, :, part, :value_dim] = value
                expected[sequence, :, part, value_dim] = s.logsumexp(-1).view(-1)
        return Problem((q, k, v, out, slots, lengths), (Output(out, expected, 5e-3),))

    numbers = ((dim + pe) ** -0.5, heads * (dim + pe), dim + pe, kv_heads * (dim + pe), dim + pe)
    strides = (heads * parts * (value_dim + 1), parts * (value_dim + 1), value_dim + 1, longest)
    sizes = {"GROUP": group, "HEADS": heads, "CAP": cap, "BLOCK_D": dim, "BLOCK_PE": pe, "BLOCK_V": value_dim}
    return _case(
        f"decode {heads} heads on {kv_heads} D={dim}+{pe}{' capped' if cap else ''}",
        kernel="decode_part_grouped",
        parameters=("*bf16",) * 3 + ("*fp32", "*i32", "*i32") + numbers + strides,
        configs=tuple(
            config(warps, stages, **sizes, BLOCK_H=16, BLOCK_N=block, PARTS=parts)
            for block, warps, stages in ((32, 4, 2), (16, 4, 1) if pe else (64, 4, 2))
        ),
        grid=lambda meta: (sequences, cdiv(heads, min(16, group)), parts),
        make=make,
        num_bytes=2 * sequences * longest * 15 / 16 * kv_heads * (dim + pe if pe else 2 * dim),
        operations=2 * sequences * longest * 15 / 16 * heads * (dim + pe + value_dim),
    )


def _decode_one(sequences: int, heads: int, longest: int, dim: int, parts: int) -> Case:
    base = _decode_grouped(sequences, heads, heads, longest, dim, 0, dim, parts, 0)
    sizes = {"CAP": 0, "BLOCK_D": dim}
    return _case(
        f"decode {heads} heads D={dim} by sums",
        kernel="decode_part",
        parameters=base.parameters,
        configs=tuple(
            config(warps, 2, **sizes, BLOCK_N=block, PARTS=parts) for block, warps in ((64, 4), (32, 4), (64, 2))
        ),
        grid=lambda meta: (sequences, heads, parts),
        make=base.make,
        num_bytes=4 * sequences * longest * 15 / 16 * heads * dim,
    )


def _decode_merge(sequences: int, heads: int, dim: int, parts: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        partial = random(sequences, heads, parts, dim + 1, dtype="float32")
        lengths, out = torch.full((sequences,), 100, dtype=torch.int32), empty(sequences, heads, dim)
        wide = partial.double()
        weights = wide[..., dim].softmax(-1)
        return Problem((partial, out, lengths), (Output(out, (wide[..., :dim] * weights[..., None]).sum(2), 5e-3),))

    strides = (heads * parts * (dim + 1), parts * (dim + 1), dim + 1, heads * dim, dim)
    return _case(
        f"decode merge {sequences}x{heads}x{parts}",
        kernel="decode_merge",
        parameters=("*fp32", "*bf16", "*i32", *strides),
        configs=tuple(config(warps, 2, PARTS=parts, BLOCK_D=dim) for warps in (4, 1)),
        grid=lambda meta: (sequences, heads),
        make=make,
        num_bytes=sequences * heads * dim * (4 * parts + 2),
    )


def _unified(queries: tuple[int, ...], heads: int, kv_heads: int, dim: int, window: int, cap: int) -> Case:
    group, page, context = heads // kv_heads, 16, 2048 if dim >= 64 else 37
    count, tokens = len(queries), sum(queries)
    max_pages = cdiv(max(queries) + context, page)

    def make() -> Problem:
        import torch  # deferred: as above

        q, out = random(tokens, heads, dim), empty(tokens, heads, dim)
        k, v = (random(count * max_pages, page, kv_heads, dim) for _ in range(2))
        pages = torch.randperm(count * max_pages).view(count, max_pages).to(torch.int32)
        lengths = torch.tensor([n + context for n in queries], dtype=torch.int32)
        starts = torch.tensor([0, *torch.tensor(queries).cumsum(0).tolist()], dtype=torch.int32)
        sinks = random(heads)
        expected = torch.empty(out.shape, dtype=torch.float64)
        at = 0
        for sequence, n in enumerate(queries):
            whole = n + context
            own = pages[sequence].long()
            k_s, v_s = (x[own].view(-1, kv_heads, dim)[:whole] for x in (k, v))
            rows, keys = torch.arange(n)[:, None] + context, torch.arange(whole)[None, :]
            hidden = keys > rows
            if window:
                hidden |= rows - keys >= window
            for head in range(heads):
                wide = torch.float64 if n < 100 else torch.float32
                scores = q[at : at + n, head].to(wide) @ k_s[:, head // group].to(wide).T * dim**-0.5
                if cap:
                    scores = cap * torch.tanh(scores / cap)
                scores.masked_fill_(hidden, -torch.inf)
                joined = torch.cat([scores, sinks[head].to(wide).expand(n, 1)], 1).softmax(1)[:, :-1]
                expected[at : at + n, head] = (joined @ v_s[:, head // group].to(wide)).double()
            at += n
        return Problem((out, q, k, v, sinks, pages, lengths, starts), (Output(out, expected, 1e-2),))

    keys = sum(n * (min(window, context + n / 2) if window else context + n / 2) for n in queries)
    numbers = (dim**-0.5, float(cap), max_pages, heads * dim, dim, page * kv_heads * dim, kv_heads * dim, dim, count)
    block_ms = (16,) if max(queries) == 1 else (16, 64, 128)
    sizes = {"GROUP": group, "PAGE": page}
    read = sum(min(window, context + n) if window else context + n for n in queries)
    return _case(
        f"unified attention {tokens} tokens of {count}, D={dim}{f' window {window}' if window else ''}",
        kernel="unified_attention",
        parameters=("*bf16",) * 5 + ("*i32",) * 3 + numbers,
        configs=tuple(
            config(4, 2, **sizes, TILE=tile, HEAD_DIM=dim, WINDOW=window, HAS_CAP=bool(cap), BLOCK_M=block)
            for block in block_ms
            for tile in ((32, 64) if block == 16 else (64,))
        ),
        grid=lambda meta: (tokens // (meta["BLOCK_M"] // group) + count, kv_heads),
        make=make,
        num_bytes=4 * read * kv_heads * dim + 4 * tokens * heads * dim,
        operations=4 * keys * heads * dim,
    )
