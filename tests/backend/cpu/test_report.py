"""The compile report of a kernel for a CPU."""

from pathlib import Path

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource

SOURCE = Path(__file__).read_text().splitlines()


@deuteron.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, mask=i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, e / tl.sum(e, 0), mask=i < n)


def test_vectors_and_kept_tiles():
    source = ASTSource(softmax, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024})
    report = deuteron.compile(source, target="cpu:x86-64-v3").report()
    assert (report.cpu, report.vector_bits, report.scratch_bytes) == ("x86-64-v3", 256, 4096)
    assert [(tile.name, tile.num_bytes) for tile in report.kept] == [("e", 4096)]
    assert "tl.exp(" in SOURCE[report.kept[0].place.line - 1]
    assert {(a.kind, a.how) for a in report.accesses} >= {
        ("load", "plain"),
        ("store", "masked"),
        ("store", "past the caches"),
    }
    assert "e   1024 f32   4096 bytes" in str(report)
    assert "all threads of the pool" in str(report)


@deuteron.jit
def locked(lock, out):
    while tl.atomic_cas(lock, 0, 1) != 0:
        pass
    tl.store(out, tl.load(out) + 1)
    tl.atomic_xchg(lock, 0)


def test_where_programs_wait():
    source = ASTSource(locked, {"lock": "*i32", "out": "*i32"}, {})
    report = deuteron.compile(source, target="cpu").report()
    assert "while tl.atomic_cas" in SOURCE[report.waiting_line - 1]
    assert f"a thread for each program, as they may wait for one another (line {report.waiting_line})" in str(report)
