"""Decoding over pages and slots, experts in fp8, LoRA, rotary embeddings in place, caches, sampling, quantisation."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu.case import Case, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

SOURCE = "projects/serving_kernels"
LARGEST_FP8 = 448.0


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
    for tokens in (30,) if small else (64, 4096):
        yield _experts(tokens, *(4, 2, 256, 256) if small else (64, 6, 2048, 2048))
    yield _lora_shrink(*(40, 3, 16, 256) if small else (8192, 8, 16, 4096))
    yield _lora_expand(*(40, 3, 16, 200) if small else (8192, 8, 16, 4096))
    yield _rope_in_place(*(9, 6, 2, 16) if small else (16384, 32, 8, 128))
    yield _rope_interleaved(*(30, 3, 16) if small else (16384, 32, 128))
    yield _write_cache(*(9, 96, 20) if small else (32768, 1024, 65536))
    yield _quantise_groups(*(9, 256) if small else (16384, 7168))
    yield _quantise_int8(*(9, 200, 256) if small else (16384, 5120, 8192))
    yield _top_p(*(3, 700, 256) if small else (512, 128256, 8192))
    yield _gumbel(*(3, 700, 256) if small else (1024, 128256, 4096))
    yield _nf4(2048 if small else 2**27)
    yield _count_experts(3000 if small else 2**24, 64)


_case = functools.partial(case, "serving", source=SOURCE)


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


def _experts(tokens: int, experts: int, top_k: int, n: int, k: int) -> Case:
    block_m = 16 if tokens <= 64 else 64
    num_ids = tokens * top_k
    num_tiles = cdiv(num_ids, block_m) + experts

    def make() -> Problem:
        import torch  # deferred: as above

        fp8 = torch.float8_e4m3fn
        a, w = torch.randn(tokens, k).to(fp8), torch.randn(experts, n, k).to(fp8)
        a_scales, w_scales = torch.rand(tokens, k // 128) + 0.5, torch.rand(experts, n // 128, k // 128) + 0.5
        weights, out = torch.rand(num_ids), empty(num_ids, n)
        wide_a = a.double() * a_scales.double().repeat_interleave(128, 1)
        chosen = torch.rand(tokens, experts).argsort(1)[:, :top_k].reshape(-1)
        ids = torch.full((num_tiles * block_m,), num_ids, dtype=torch.int32)
        of_tile = torch.zeros(num_tiles, dtype=torch.int32)
        expected = torch.empty(num_ids, n, dtype=torch.float64)
        tile = 0
        for expert in range(experts):
            own = (chosen == expert).nonzero()[:, 0]
            ids[tile * block_m : tile * block_m + len(own)] = own.to(torch.int32)
            wide = w[expert].double() * w_scales[expert].double().repeat_interleave(128, 0).repeat_interleave(128, 1)
            expected[own] = wide_a[own // top_k] @ wide.T * weights[own, None].double()
            last = tile + cdiv(len(own), block_m)
            of_tile[tile:last] = expert
            tile = last
        padded = torch.tensor([tile * block_m], dtype=torch.int32)
        arrays = (a, w, out, a_scales, w_scales, weights, ids, of_tile, padded)
        return Problem(arrays, (Output(out, expected, 5e-3),))

    strides = (n, k, num_ids, k, n * k, k, n, k // 128, n // 128 * (k // 128), k // 128)
    used = min(experts, num_ids)
    return _case(
        f"experts in fp8 {tokens}x{n}x{k}, {top_k} of {experts}",
        kernel="experts_fp8_blocks",
        parameters=("*fp8e4nv", "*fp8e4nv", "*bf16") + ("*fp32",) * 3 + ("*i32",) * 3 + strides,
        configs=tuple(
            config(4, stages, TOP_K=top_k, GROUP_K=128, BLOCK_M=block_m, BLOCK_N=128, BLOCK_K=128, GROUP_M=group)
            for stages, group in ((3, 1), (4, 16))
        ),
        grid=lambda meta: (num_tiles * cdiv(n, 128),),
        make=make,
        num_bytes=used * n * k + tokens * k + 2 * num_ids * n,
        operations=2 * num_ids * n * k,
        multiplied="fp8e4nv",
    )


def _adapters(tokens: int, loras: int) -> tuple[Any, Any, Any, Any]:
    """The adapter of each token, tokens sorted by it, how many each has, where each begins."""
    import torch  # deferred: as above

    own = torch.randint(loras, (tokens,))
    counts = torch.bincount(own, minlength=loras)
    starts = counts.cumsum(0) - counts
    return own, own.argsort().to(torch.int32), counts.to(torch.int32), starts.to(torch.int32)


def _lora_shrink(tokens: int, loras: int, rank: int, hidden: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, w, out = random(tokens, hidden), random(loras, rank, hidden), empty(tokens, rank, dtype="float32")
        own, order, counts, starts = _adapters(tokens, loras)
        expected = torch.empty(out.shape, dtype=torch.float64)
        for lora in range(loras):
            expected[own == lora] = x[own == lora].double() @ w[lora].double().T * 0.5
        return Problem((x, w, out, order, counts, starts), (Output(out, expected, 1e-4),), None, (out,))

    split = 8 if hidden > 1000 else 2
    return _case(
        f"lora shrink {tokens}x{hidden} to {rank}, {loras}",
        kernel="lora_shrink",
        parameters=(
            "*bf16",
            "*bf16",
            "*fp32",
            "*i32",
            "*i32",
            "*i32",
            rank,
            hidden,
            0.5,
            hidden,
            rank * hidden,
            hidden,
            rank,
        ),
        configs=(
            config(4, 2, BLOCK_M=32, BLOCK_N=16, BLOCK_K=64, SPLIT_K=split),
            config(8, 2, BLOCK_M=32, BLOCK_N=16, BLOCK_K=256 if split == 8 else 64, SPLIT_K=split),
        ),
        grid=lambda meta: (cdiv(tokens, meta["BLOCK_M"]) * split, 1, loras),
        make=make,
        num_bytes=2 * tokens * hidden,
    )


def _lora_expand(tokens: int, loras: int, rank: int, hidden: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, w, out = random(tokens, rank, dtype="float32"), random(loras, hidden, rank), empty(tokens, hidden)
        own, order, counts, starts = _adapters(tokens, loras)
        expected = torch.empty(out.shape, dtype=torch.float64)
        for lora in range(loras):
            expected[own == lora] = x[own == lora].to(torch.bfloat16).double() @ w[lora].double().T
        return Problem((x, w, out, order, counts, starts), (Output(out, expected, 5e-3),), None, (out,))

    return _case(
        f"lora expand {tokens}x{rank} to {hidden}, {loras}",
        kernel="lora_expand",
        parameters=("*fp32", "*bf16", "*bf16", "*i32", "*i32", "*i32", hidden, rank, rank, rank * hidden, rank, hidden),
        configs=(
            config(4, 2, BLOCK_M=64, BLOCK_N=128, BLOCK_K=16),
            config(4, 2, BLOCK_M=32, BLOCK_N=256, BLOCK_K=16),
        ),
        grid=lambda meta: (cdiv(tokens, meta["BLOCK_M"]), cdiv(hidden, meta["BLOCK_N"]), loras),
        make=make,
        num_bytes=4 * tokens * hidden,
    )


def _angles(length: int, dim: int) -> tuple[Any, Any]:
    import torch  # deferred: as above

    angle = torch.outer(torch.arange(length).double(), 10000.0 ** (-torch.arange(0, dim, 2).double() / dim))
    return angle.cos().float(), angle.sin().float()


def _rope_in_place(tokens: int, heads: int, kv_heads: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        cos, sin = _angles(tokens, dim)
        positions = torch.randperm(tokens)
        inputs = random(tokens, heads, dim), random(tokens, kv_heads, dim)
        arrays = tuple(torch.empty_like(x) for x in inputs)
        c, s = (x.double()[positions][:, None] for x in (cos, sin))
        outputs = []
        for array, x in zip(arrays, inputs, strict=True):
            x1, x2 = x.double().chunk(2, -1)
            outputs.append(Output(array, torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], -1), 5e-3))
        restored = tuple(zip(arrays, inputs, strict=True))
        return Problem((*arrays, cos, sin, positions), tuple(outputs), restored=restored)

    return _case(
        f"rope in place {tokens}x{heads}+{kv_heads}x{dim}",
        kernel="rope_in_place",
        parameters=("*bf16", "*bf16", "*fp32", "*fp32", "*i64", heads * dim, kv_heads * dim),
        configs=tuple(
            config(warps, 1, Q_HEADS=heads, K_HEADS=kv_heads, PAD_Q=8 if heads < 8 else heads, PAD_K=kv_heads, DIM=dim)
            for warps in (4, 8)
        ),
        grid=lambda meta: (tokens,),
        make=make,
        num_bytes=4 * tokens * (heads + kv_heads) * dim + 4 * tokens * dim,
    )


def _rope_interleaved(tokens: int, heads: int, dim: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out = random(tokens, heads, dim), empty(tokens, heads, dim)
        cos, sin = _angles(tokens, dim)
        c, s = cos.double()[:, None], sin.double()[:, None]
        x0, x1 = x.double()[..., ::2], x.double()[..., 1::2]
        expected = torch.stack([x0 * c - x1 * s, x0 * s + x1 * c], -1).flatten(2)
        return Problem((x, cos, sin, out), (Output(out, expected, 5e-3),))

    return _case(
        f"rope interleaved {tokens}x{heads}x{dim}",
        kernel="rope_interleaved",
        parameters=("*bf16", "*fp32", "*fp32", "*bf16", tokens),
        configs=(config(4, 1, HEADS=heads, DIM=dim, ROWS=16), config(4, 1, HEADS=heads, DIM=dim, ROWS=64)),
        grid=lambda meta: (cdiv(tokens, meta["ROWS"]), heads),
        make=make,
        num_bytes=4 * tokens * heads * dim,
    )


def _write_cache(tokens: int, width: int, slots: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        k, v = random(tokens, width), random(tokens, width)
        k_cache, v_cache = empty(slots, width), empty(slots, width)
        chosen = torch.randperm(slots)[:tokens]
        expected = torch.zeros(2, slots, width, dtype=k.dtype)
        expected[0, chosen], expected[1, chosen] = k, v
        outputs = (Output(k_cache, expected[0], 0.0), Output(v_cache, expected[1], 0.0))
        return Problem((k, v, k_cache, v_cache, chosen), outputs, None, (k_cache, v_cache))

    return _case(
        f"write cache {tokens}x{width}",
        kernel="write_cache",
        parameters=("*bf16",) * 4 + ("*i64", width),
        configs=tuple(config(warps, 1, WIDTH=width, TILE=tile) for warps, tile in ((4, 1024), (1, 512), (16, 2048))),
        grid=lambda meta: (tokens, cdiv(width, meta["TILE"])),
        make=make,
        num_bytes=8 * tokens * width,
    )


def _quantise_groups(rows: int, columns: int) -> Case:
    groups = rows * columns // 128

    def make() -> Problem:
        import torch  # deferred: as above

        x = random(rows, columns)
        out, scales = empty(rows, columns, dtype="float8_e4m3fn"), empty(groups, dtype="float32")
        exact = x.double().view(groups, 128).abs().amax(1) / LARGEST_FP8
        expected = (x.float().view(groups, 128) / exact.float()[:, None]).to(torch.float8_e4m3fn).float()
        return Problem((x, out, scales), (Output(out, expected.view(rows, columns), 1e-2), Output(scales, exact, 1e-5)))

    return _case(
        f"quantise groups of 128 {rows}x{columns}",
        kernel="quantise_groups",
        parameters=("*bf16", "*fp8e4nv", "*fp32", groups),
        configs=(config(1, 1, GROUP=128, ROWS=1), config(4, 1, GROUP=128, ROWS=16), config(4, 1, GROUP=128, ROWS=64)),
        grid=lambda meta: (cdiv(groups, meta["ROWS"]),),
        make=make,
        num_bytes=3 * rows * columns,
    )


def _quantise_int8(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        x, out, scales = random(rows, columns), empty(rows, columns, dtype="int8"), empty(rows, dtype="float32")
        exact = x.double().abs().amax(1) / 127
        expected = (x.float() / exact.float()[:, None] + 0.5).floor().to(torch.int8)
        return Problem((x, out, scales), (Output(out, expected, 1e-2), Output(scales, exact, 1e-5)))

    return _case(
        f"quantise tokens int8 {rows}x{columns}",
        kernel="quantise_tokens_int8",
        parameters=("*bf16", "*i8", "*fp32", columns, columns, columns),
        configs=(config(8, 1, BLOCK=block), config(16, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=3 * rows * columns,
    )


def _top_p(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        logits, out = random(rows, columns), empty(rows, dtype="float32")
        p = logits.double().softmax(1)
        order = p.sort(1, descending=True)[0]
        place = (order.cumsum(1) < 0.9).sum(1)
        return Problem((logits, out), (Output(out, order.gather(1, place[:, None])[:, 0], 3e-2),))

    return _case(
        f"top p {rows}x{columns}",
        kernel="top_p_threshold",
        parameters=("*bf16", "*fp32", columns, columns, 0.9),
        configs=(config(8, 1, STEPS=16, BLOCK=block), config(16, 1, STEPS=16, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=2 * rows * columns * 18,
    )


def _gumbel(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        logits, out = random(rows, columns, dtype="float32"), empty(rows, dtype="int32")
        noise = torch.empty(rows, columns).exponential_()
        expected = (logits.double() / 0.5 - noise.double().log()).argmax(1)
        return Problem((logits, out, noise), (Output(out, expected, 0.0),))

    return _case(
        f"gumbel sample {rows}x{columns}",
        kernel="gumbel_sample",
        parameters=("*fp32", "*i32", "*fp32", columns, columns, 0.5),
        configs=(config(4, 1, BLOCK=block // 4), config(8, 1, BLOCK=block)),
        grid=lambda meta: (rows,),
        make=make,
        num_bytes=8 * rows * columns,
    )


def _nf4(n: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        packed = torch.randint(256, (n,), dtype=torch.uint8)
        table, absmax = torch.linspace(-1, 1, 16) ** 3, torch.rand(2 * n // 64)
        out = empty(2 * n, dtype="bfloat16")
        pairs = torch.stack([table[(packed >> 4).long()], table[(packed & 15).long()]], -1)
        expected = (pairs.view(-1, 64) * absmax[:, None]).view(-1)
        return Problem((packed, absmax, table, out), (Output(out, expected, 5e-3),))

    return _case(
        f"dequantise nf4 {2 * n}",
        kernel="dequantise_nf4",
        parameters=("*u8", "*fp32", "*fp32", "*bf16", n),
        configs=(config(4, 1, BLOCK=1024, GROUP=64), config(8, 1, BLOCK=2048, GROUP=64)),
        grid=lambda meta: (cdiv(n, meta["BLOCK"]),),
        make=make,
        num_bytes=5 * n,
    )


def _count_experts(n: int, experts: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        ids, counts = torch.randint(experts, (n,), dtype=torch.int32), empty(experts, dtype="int32")
        outputs = (Output(counts, torch.bincount(ids, minlength=experts), 0.0),)
        return Problem((ids, counts), outputs, Vendor("torch", lambda: torch.bincount(ids)), (counts,))

    return _case(
        f"count experts {n}",
        kernel="count_experts",
        parameters=("*i32", "*i32", n),
        configs=(config(4, 1, EXPERTS=experts, BLOCK=2048), config(8, 1, EXPERTS=experts, BLOCK=8192)),
        grid=lambda meta: (cdiv(n, meta["BLOCK"]),),
        make=make,
        num_bytes=4 * n,
    )
