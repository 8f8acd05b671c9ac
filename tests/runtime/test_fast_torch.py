"""Launches in machine code with torch's tensors: what they mean is what Python says, whatever kind of tensor it is."""

import random

import pytest

import deuteron
from deuteron.backend.launcher import torch_tensors
from deuteron.backend.metadata import Apart
from deuteron.backend.overlaps import are_apart
from deuteron.backend.spans import view_of
from deuteron.errors import LaunchError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@deuteron.jit
def copy(x, y, n):
    pass


@deuteron.jit
def columns(x, y):
    pass


KERNELS = (copy, columns)
APART = {"columns": (Apart("x", "y", True),)}


class Subclass(torch.Tensor):
    pass


def tensors():
    whole = torch.zeros(64, 3)
    yield from (whole, whole[1:], whole[:, 1:], whole.T, whole.conj(), torch.zeros(0), torch.tensor(2.0))
    yield from (torch._neg_view(whole), torch.ones(64, dtype=torch.complex64).conj().imag)
    yield from (whole.to(dtype) for dtype in (torch.int8, torch.bfloat16, torch.float8_e4m3fn, torch.complex64))
    yield from (torch.nn.Parameter(whole), whole.as_subclass(Subclass), whole.to_sparse(), whole.to("meta"))
    yield from (torch.zeros(64, dtype=torch.bool)[step:] for step in (0, 1, 15, 16))
    if torch.backends.mkldnn.is_available():
        yield whole.to_mkldnn()


def outcome(launch, log):
    before = len(log)
    try:
        return launch(), log[before:]
    except Exception as error:
        return type(error), str(error), log[before:]


def test_every_kind_of_tensor(rng, log, slow):
    rng, kinds = random.Random(int(rng.integers(1 << 32))), list(tensors())
    for _ in range(100):
        x, y = rng.choice(kinds), rng.choice(kinds)
        found = [outcome(lambda: copy[(1,)](x, y, 5), log) for _ in range(2)]  # noqa: B023
        before = len(slow)
        found.append(outcome(lambda: copy[(1,)](x, y, 5), log))  # noqa: B023
        is_fast = len(slow) == before
        found.append(outcome(lambda: copy.run(x, y, 5, grid=(1,)), log))  # noqa: B023
        assert all(one == found[0] for one in found)
        assert is_fast or not found[0][-1]


def test_where_the_elements_are(rng, log, slow):
    rng, whole = random.Random(int(rng.integers(1 << 32))), torch.zeros(300)

    def view():
        sizes, strides = ([rng.randint(0, most) for _ in range(2)] for most in (4, 40))
        return whole.as_strided(sizes, strides, rng.choice((0, 1, 4, 60)))

    for _ in range(200):
        x, y = view(), view()
        are_distinct = x.data_ptr() == y.data_ptr() or are_apart(view_of(x), view_of(y))
        for _ in range(2):
            assert bool(columns[(1,)](x, y).metadata.apart) == are_distinct
    assert len(slow) < 60


def test_the_code_reads_tensors_itself(log, slow, monkeypatch):
    x, y = torch.zeros(64), torch.nn.Parameter(torch.zeros(64))
    copy[(1,)](x, y, 5)
    asked = []
    monkeypatch.setattr(torch.Tensor, "data_ptr", lambda self: asked.append(self))
    copy[(1,)](x, y, 5)
    copy[(1,)](y, x[4:], 5)
    assert len(slow) == 1 and not asked


def test_a_tensor_with_the_other_sign_in_memory(log, slow):
    """What a kernel would load of it is not what it holds: refused, also by machine code."""
    x = torch.ones(64)
    for _ in range(2):
        copy[(1,)](x, x, 5)
    for negative in (torch._neg_view(x), torch.ones(64, dtype=torch.complex64).conj().imag):
        for _ in range(2):
            with pytest.raises(LaunchError, match=r"'x'.*with the other sign.*: pass x.resolve_neg\(\)"):
                copy[(1,)](negative, x, 5)
        copy[(1,)](negative.resolve_neg(), x, 5)


def test_a_tensor_that_gets_other_memory(log, slow):
    x, other = torch.zeros(64), torch.zeros(65, dtype=torch.float32)[1:]
    for _ in range(2):
        copy[(1,)](x, x, 5)
    x.data = other
    copy[(1,)](x, x, 5)
    assert log[-1][2][:8] == other.data_ptr().to_bytes(8, "little")
    assert log[-1][0] is not log[0][0]
    x.data = torch.zeros(64, dtype=torch.float16)
    assert copy[(1,)](x, x, 5).launch is not log[0][0]


def test_tensors_within_transforms(log):
    x = torch.zeros(4, 64)
    for _ in range(2):
        copy[(1,)](x, x, 5)

    def body(tensor):
        with pytest.raises(Exception, match="data pointer|storage|functorch|vmap"):
            copy[(1,)](tensor, tensor, 5)
        return tensor

    torch.vmap(body)(x)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        in_python = outcome(lambda: copy.run(fake, fake, 5, grid=(1,)), [])
        assert outcome(lambda: copy[(1,)](fake, fake, 5), [])[:2] == in_python[:2]


def test_a_torch_that_is_laid_out_otherwise(monkeypatch):
    monkeypatch.setattr(torch_tensors, "_places", lambda torch, tensor: set())
    assert torch_tensors.functions.__wrapped__() is None
    monkeypatch.undo()
    monkeypatch.setattr(torch_tensors, "_LIBRARIES", ("none.so",))
    assert torch_tensors.functions.__wrapped__() is None


def test_operators_that_are_replaced_do_not_matter(monkeypatch):
    """As FlagGems replaces them, by kernels that are launched: what torch's tensors are is found out without them."""

    def replaced(*args, **kwargs):
        raise AssertionError("a kernel would be launched")

    monkeypatch.setattr(torch_tensors, "functions", torch_tensors.functions.__wrapped__)
    library = torch.library.Library("aten", "IMPL")
    try:
        for name in ("zeros", "ones", "empty.memory_format", "fill_.Scalar", "zero_", "copy_"):
            library.impl(name, replaced, "CPU")
        with torch.device("meta"):
            assert torch_tensors.functions() is not None
    finally:
        library._destroy()
