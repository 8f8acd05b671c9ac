"""Reports name what a kernel says as older versions of Triton did."""

import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource


@deuteron.jit
def attention(q, k, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    scores = tl.zeros([N, N], tl.float32)
    scores += tl.dot(tl.load(q + at), tl.load(k + at), trans_b=True)
    tl.store(out + at, scores)


@pytest.mark.parametrize("target", ["cpu", "cuda:80", "cuda:90"])
def test_the_report_names_them(target: str):
    source = ASTSource(attention, {"q": "*fp16", "k": "*fp16", "out": "*fp32"}, {"N": 64})
    report = deuteron.compile(source, target=target).report()
    (spelling,) = report.old_spellings
    assert spelling.said == "trans_b=True is tl.trans(other) now" and spelling.place.line == 14
    assert "Older spellings" in str(report) and "test_spellings.py:14" in str(report)
    assert report.to_dict()["old_spellings"][0]["said"] == spelling.said


@deuteron.jit
def doubled(x, n):
    rows = tl._experimental_make_tensor_descriptor(x, [n, 16], [16, 1], [16, 16])
    for row in range(0, n, 16):
        loaded = tl._experimental_descriptor_load(rows, [row, 0], [16, 16], tl.float32)
        tl._experimental_descriptor_store(rows, 2 * loaded, [row, 0])


@pytest.mark.parametrize("target", ["cpu", "cuda:80", "cuda:90"])
def test_it_names_them_whatever_becomes_of_the_ops(target: str):
    """Without TMA accesses through descriptors are loads and stores in tile IR, and nothing makes a descriptor."""
    report = deuteron.compile(ASTSource(doubled, {"x": "*fp32", "n": "i32"}), target=target).report()
    first = doubled.source.first_line + 2
    assert [(spelling.place.line - first, spelling.said.split()[0]) for spelling in report.old_spellings] == [
        (0, "tl._experimental_make_tensor_descriptor"),
        (2, "tl._experimental_descriptor_load"),
        (3, "tl._experimental_descriptor_store"),
    ]
