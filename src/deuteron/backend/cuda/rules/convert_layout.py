"""Tiles in shared memory by ldmatrix and stmatrix, where these move such a layout; else as on every GPU."""

from __future__ import annotations

from deuteron.backend.cuda.instructions.matrices import load_matrices, store_matrices
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.rules.convert_layout import SharedMoves
from deuteron.backend.gpu.shared_tile import SharedTile, load_tile, store_tile
from deuteron.backend.llvm.types import Value
from deuteron.layout.linear import LinearLayout


def _load(ctx: Context, shared: SharedTile, layout: LinearLayout) -> list[Value]:
    matrices = load_matrices(ctx, shared, layout) if shared.origin is None else None
    return matrices or load_tile(ctx, shared, layout)


def _store(ctx: Context, shared: SharedTile, layout: LinearLayout, bits: list[Value]) -> None:
    if not store_matrices(ctx, shared, layout, bits):
        store_tile(ctx, shared, layout, bits)


RULES: dict[str, Rule] = SharedMoves(_load, _store).rules
