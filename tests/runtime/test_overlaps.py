"""Arrays that overlap where a kernel takes them to be apart: it is compiled for that, and does what its text says."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import deuteron
import deuteron.language as tl
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.overlaps import are_apart
from deuteron.backend.spans import view_of
from deuteron.errors import LaunchError, StrictError, UsageError
from deuteron.layout.steps import WRAP, are_injective
from deuteron.runtime import fast_launch

N = 64


@deuteron.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)


@deuteron.jit
def follow(a, b, n, BLOCK: tl.constexpr):
    """Each iteration loads through `a` what the one before may have stored through `b`."""
    i = tl.arange(0, BLOCK)
    for t in range(n):
        tl.store(b + t * BLOCK + i, tl.load(a + t * BLOCK + i) + 1)


def followed(whole, a, b, n):
    for t in range(n):
        whole[b + 16 * t : b + 16 * t + 16] = whole[a + 16 * t : a + 16 * t + 16] + 1


@pytest.fixture(params=["cpu", "cuda:80", "cuda:90"])
def executor(request, monkeypatch):
    if request.param != "cpu":
        monkeypatch.setenv("DEUTERON_EMULATE", "1")
        monkeypatch.setenv("DEUTERON_TARGET", request.param)
    return request.param


@pytest.mark.parametrize(("a", "b"), [(0, 16), (16, 0), (0, 0), (0, 32), (0, 80)])
def test_views_of_one_array(executor, a, b):
    whole = np.arange(160.0, dtype=np.float32)
    expected = whole.copy()
    followed(expected, a, b, 5)
    follow[(1,)](whole[a : a + 80], whole[b : b + 80], 5, BLOCK=16, num_warps=1)
    np.testing.assert_array_equal(whole, expected)


@pytest.mark.parametrize("shift", [-64, -7, -1, 0, 1, 7, 64])
def test_a_tile_is_loaded_before_it_is_stored(shift):
    """On the CPU whatever the addresses are."""
    whole = np.arange(3.0 * N, dtype=np.float32)
    expected = whole.copy()
    expected[N + shift : 2 * N + shift] = whole[N : 2 * N] + 1
    copy[(1,)](whole[N : 2 * N], whole[N + shift : 2 * N + shift], N, BLOCK=N)
    np.testing.assert_array_equal(whole, expected)


def test_launches_alternate():
    """What is apart goes on without Python; what is not is seen each time."""
    whole = np.zeros(3 * N, np.float32)
    other = np.zeros(N, np.float32)
    for _ in range(6):
        whole[:] = np.arange(3 * N)
        copy[(1,)](whole[:N], other, N, BLOCK=N)
        np.testing.assert_array_equal(other, np.arange(N) + 1)
        copy[(1,)](whole[:N], whole[1 : N + 1], N, BLOCK=N)
        np.testing.assert_array_equal(whole[1 : N + 1], np.arange(N) + 1)


def test_conditions_of_the_kernel_for_what_overlaps(monkeypatch):
    """They were noted when another CPU was asked for: the kernel for what is apart has been found anew since then."""
    own = deuteron.jit(copy.fn)
    whole = np.zeros(3 * N, np.float32)
    ends = {"apart": slice(2 * N, 3 * N), "overlapping": slice(16, N + 16)}
    for cpu, turns in [("x86-64-v2", ["overlapping"]), ("x86-64-v3", ["apart", "overlapping"])]:
        monkeypatch.setenv("DEUTERON_TARGET", f"cpu:{cpu}")
        for how in [turn for turn in turns for _ in range(4)]:
            whole[:] = np.arange(3 * N)
            kernel = own[(1,)](whole[:N], whole[ends[how]], N, BLOCK=N)
            assert kernel.metadata.target.arch == cpu
            np.testing.assert_array_equal(whole[ends[how]], np.arange(N) + 1)


@pytest.mark.parametrize("target", ["cpu", "cuda:80", "cuda:90"])
def test_what_kernels_rely_on(target):
    def pairs(fn, **options):
        source = deuteron.ASTSource(fn, fn_types(fn), {"BLOCK": N})
        return [(p.first, p.second, p.or_equal) for p in deuteron.compile(source, target, options).metadata.apart]

    assert pairs(copy) == [("x", "out", True)]
    assert pairs(follow) == [("a", "b", True)]
    assert pairs(copy, may_alias=True) == pairs(follow, may_alias=True) == []


def fn_types(fn):
    return {name: "i32" if name == "n" else "*fp32" for name in fn.arg_names if name != "BLOCK"}


@pytest.mark.parametrize("shift", [0, 5, N // 2, 3 * N])
def test_ctas_that_share_a_tile(monkeypatch, shift):
    """What one stores the other may load, of views that overlap: nobody orders that."""
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90")
    whole = np.arange(5.0 * N, dtype=np.float32)
    expected = whole.copy()
    expected[shift : shift + N] += 1 - shift
    options = {"BLOCK": N, "num_warps": 1, "num_ctas": 2}
    if 0 < shift < N:
        with pytest.raises(UsageError, match="num_ctas = 2: the program stores to what is loaded here"):
            copy[(1,)](whole[:N], whole[shift : shift + N], N, **options)
        return
    copy[(1,)](whole[:N], whole[shift : shift + N], N, **options)
    np.testing.assert_array_equal(whole, expected)


def test_why_it_is_compiled(monkeypatch):
    own = deuteron.jit(copy.fn)
    whole = np.zeros(2 * N, np.float32)
    own[(1,)](whole[:N], whole[N:], N, BLOCK=N)
    own[(1,)](whole[:N], whole[1 : N + 1], N, BLOCK=N)
    last = deuteron.recompiles()[-1]
    assert last.reason == "arguments 'x' and 'out' of kernel 'copy' overlap" and last.options["may_alias"] == "True"
    again = deuteron.jit(follow.fn)
    again.warmup(np.float32, np.float32, 4, BLOCK=8, grid=(1,))
    monkeypatch.setenv("DEUTERON_STRICT", "1")
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    with pytest.raises(StrictError, match="arguments 'a' and 'b' of kernel 'follow' overlap"):
        again[(1,)](whole[:N], whole[8 : N + 8], 4, BLOCK=8)


class Pointer:
    """Tells an address and a type, and no more."""

    def __init__(self, array):
        self.array, self.dtype = array, "float32"

    def data_ptr(self):
        return self.array.ctypes.data


class Tensor(Pointer):
    """Tells all that torch's tensors do."""

    @property
    def shape(self):
        return self.array.shape

    def stride(self):
        return [stride // self.array.itemsize for stride in self.array.strides]

    def element_size(self):
        return self.array.itemsize


def test_of_a_pointer_nobody_knows_the_end():
    whole = np.arange(2.0 * N, dtype=np.float32)
    own = deuteron.jit(copy.fn)
    own[(1,)](Pointer(whole), Pointer(whole[1:]), N, BLOCK=N)
    np.testing.assert_array_equal(whole[1 : N + 1], np.arange(N) + 1)
    assert all(kernel.metadata.options["may_alias"] or kernel.metadata.apart for kernel in own.cache[0].values())


def test_prepared_launches():
    whole = np.zeros(2 * N, np.float32)
    prepared = copy.prepare(whole[:N], whole[N:], N, BLOCK=N, grid=(1,))
    prepared.launch(whole[:N], whole[N:], N)
    prepared.launch(whole[:N], whole[:N], N)
    with pytest.raises(LaunchError, match="'x' and 'out' of kernel 'copy' overlap"):
        prepared.launch(whole[:N], whole[4 : N + 4], N)
    whole[:] = np.arange(2 * N)
    copy.prepare(whole[:N], whole[4 : N + 4], N, BLOCK=N, grid=(1,)).launch(whole[:N], whole[4 : N + 4], N)
    np.testing.assert_array_equal(whole[4 : N + 4], np.arange(N) + 1)


def check_compiled(kernel):
    """By its grid, and as launchers that torch generates launch it."""
    for launch in (
        lambda *args: kernel[(1,)](*args, N, N),
        lambda *args: kernel.run(1, 1, 1, 0, kernel.function, kernel.packed_metadata, None, None, None, *args, N, N),
    ):
        for passed in (Tensor, Tensor, address, address, address):
            whole = np.arange(2.0 * N, dtype=np.float32)
            launch(passed(whole[:N]), passed(whole[1 : N + 1]))
            np.testing.assert_array_equal(whole[1 : N + 1], np.arange(N) + 1)


def address(array):
    return array.ctypes.data


def test_compiled_kernels():
    check_compiled(deuteron.compile(deuteron.ASTSource(copy, fn_types(copy), {"BLOCK": N}), "cpu"))


def test_a_kernel_without_its_function():
    """As those that torch.compile keeps: it is compiled again of its tile IR, which has no constexprs."""
    own = deuteron.jit(copy.fn)
    kernel = deuteron.compile(deuteron.ASTSource(own, fn_types(own), {"BLOCK": N}), "cpu")
    own.fn = None
    whole = np.arange(2.0 * N, dtype=np.float32)
    kernel[(1,)](whole[:N], whole[1 : N + 1], N)
    np.testing.assert_array_equal(whole[1 : N + 1], np.arange(N) + 1)
    check_compiled(kernel)


def one_of(array, kind):
    return array if kind == "numpy" else Tensor(array)


@pytest.fixture
def in_python(monkeypatch):
    """Launches in Python; machine code is there from the first launch on."""
    for name in ("FEW", "MANY"):
        monkeypatch.setattr(fast_launch, name, 0)
    found = []
    run = deuteron.JITFunction.run_noted
    monkeypatch.setattr(deuteron.JITFunction, "run_noted", lambda self, *args: found.append(self) or run(self, *args))
    return found


@pytest.mark.parametrize("kind", ["numpy", "another"])
def test_overlapping_launches_without_python(in_python, kind):
    """The first launch compiles both kernels, from then on neither those that overlap nor the others go through it."""
    own = deuteron.jit(copy.fn)
    whole, other = np.arange(3.0 * N, dtype=np.float32), np.zeros(N, np.float32)
    own[(1,)](one_of(whole[:N], kind), one_of(whole[1:], kind), N, BLOCK=N)
    assert len(in_python) == 1
    for shift in (1, 5, N - 1, -1, 0, N):
        whole[:] = np.arange(3 * N)
        begin = max(-shift, 0)
        x, out = whole[begin : begin + N], whole[begin + shift : begin + shift + N]
        expected = x + 1
        kernel = own[(1,)](one_of(x, kind), one_of(out, kind), N, BLOCK=N)
        np.testing.assert_array_equal(out, expected)
        assert kernel.metadata.options["may_alias"] == (shift not in (0, N))
        own[(1,)](one_of(whole[:N], kind), one_of(other, kind), N, BLOCK=N)
    assert len(in_python) <= 5 and len(own.cache[0]) == 5  # other alignments are other kernels
    before = len(in_python)
    for _ in range(5):
        own[(1,)](one_of(whole[:N], kind), one_of(whole[4 : N + 4], kind), N, BLOCK=N)
        own[(1,)](one_of(whole[:N], kind), one_of(whole[N:], kind), N, BLOCK=N)
    assert len(in_python) <= before + 1


@deuteron.jit
def nothing(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)


_axes = st.tuples(*[st.tuples(st.integers(-3, 3).filter(bool), st.integers(0, 5), st.integers(0, 4))] * 2)


def _part(whole, axes):
    steps, starts, extents = zip(*axes, strict=True)
    index = tuple(
        slice(start, start + step * extent, step) if step > 0 else slice(start + 12, start + 12 + step * extent, step)
        for step, start, extent in zip(steps, starts, extents, strict=True)
    )
    return whole[index]


@settings(max_examples=150, deadline=None)
@given(_axes, _axes, st.sampled_from(["numpy", "another"]))
def test_machine_code_says_what_the_definition_says(first, second, kind):
    whole = np.zeros((18, 18), np.float32)
    x, out = _part(whole, first), _part(whole, second)
    kernel = nothing[(1,)](one_of(x, kind), one_of(out, kind), 0, BLOCK=N)
    is_apart = x.ctypes.data == out.ctypes.data or are_apart(view_of(x), view_of(out))
    assert kernel.metadata.options["may_alias"] == (not is_apart)


def test_parts_of_an_array_are_apart():
    """Columns of one matrix need no kernel of their own; those that overlap do."""
    own = deuteron.jit(nothing.fn)
    whole = np.zeros((8, 3 * N), np.float32)
    for _ in range(3):
        own[(1,)](whole[:, :N], whole[:, N : 2 * N], N, BLOCK=N)
        own[(1,)](whole[:, 2 * N :], whole[:, :N], N, BLOCK=N)
    assert len(own.cache[0]) == 1
    own[(1,)](whole[:, :N], whole[:, N - 4 : 2 * N], N, BLOCK=N)
    assert len(own.cache[0]) == 2


@deuteron.jit
def scale_rows(x, out, x_stride, out_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for begin in range(0, n, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        tl.store(out + row * out_stride + i, tl.load(x + row * x_stride + i, i < n) * 2, i < n)


@pytest.mark.parametrize("kind", ["numpy", "another"])
def test_rows_in_place(in_python, kind):
    """Strides are numbers of their own: where they are equal the arrays may be one."""
    own = deuteron.jit(scale_rows.fn)
    whole = np.ones((4, 2 * N), np.float32)
    for times in range(1, 4):
        own[(4,)](one_of(whole, kind), one_of(whole, kind), 2 * N, 2 * N, N + 3, BLOCK=N)
        assert (whole[:, : N + 3] == 2**times).all() and (whole[:, N + 3 :] == 1).all()
    assert len(in_python) == 1 and len(own.cache[0]) == 1
    flat = np.arange(8.0 * N, dtype=np.float32)
    kernel = own[(1,)](one_of(flat, kind), one_of(flat, kind), 2 * N, 4 * N, N, BLOCK=N)
    assert kernel.metadata.options["may_alias"]


@pytest.mark.parametrize("target", ["cpu", "cuda:80", "cuda:90"])
def test_what_rows_rely_on(target):
    types = dict.fromkeys(("x", "out"), "*fp32") | dict.fromkeys(("x_stride", "out_stride", "n"), "i32")
    metadata = deuteron.compile(deuteron.ASTSource(scale_rows, types, {"BLOCK": N}), target).metadata
    (pair,) = metadata.apart
    assert (pair.first, pair.second, pair.or_equal) == ("x", "out", True) and set(pair.equal[0]) == {
        "out_stride",
        "x_stride",
    }
    assert metadata.apart == KernelMetadata.from_json(metadata.to_json()).apart


@deuteron.jit
def scale_tile(x, out, row_stride, stride, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Through two arguments, then in place through one; in steps that are only known at run time."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    places, mask = row * row_stride + column * stride, (row < n) & (column < 2 * n)
    tl.store(out + places, tl.load(x + places, mask) * 2, mask)
    tl.store(x + places, tl.load(x + places, mask) + 1, mask)


@pytest.mark.parametrize(
    ("row_stride", "stride"), [(32, 1), (100, 1), (1, 8), (1, 1), (0, 1), (31, 1), (1, 7), (1, 0), (70, 2), (33, 2)]
)
@pytest.mark.parametrize("in_place", [False, True])
def test_rows_that_may_overlap(executor, row_stride, stride, in_place):
    """Elements at one place are all loaded before any of them is stored."""
    places = np.arange(8)[:, None] * row_stride + np.arange(32) * stride
    x, out = np.arange(800.0, dtype=np.float32), np.zeros(800, np.float32)
    expected, expected_out = x.copy(), out.copy()
    target = expected if in_place else expected_out
    target[places] = expected[places] * 2
    expected[places] = expected[places] + 1
    scale_tile[(1,)](x, x if in_place else out, row_stride, stride, 16, ROWS=8, COLUMNS=32)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(out, expected_out)


@settings(max_examples=60, deadline=None)
@example(1, 1)
@example(33, -1)
@example(-33, -1)
@example(1 << 29, 1)
@example(1 << 28, 1)
@given(st.one_of(st.integers(-40, 40), st.just(1 << 29)), st.one_of(st.integers(-12, 12), st.just(1 << 40)))
def test_machine_code_knows_which_rows_overlap(row_stride, stride):
    """As the definition says, of strides that are specialised and others, negative and wide."""
    whole = np.zeros(8, np.float32)
    is_wide = row_stride == 1 and stride == 1 << 40  # all strides that are arguments are
    steps = [(8, row_stride), (32, stride), *([] if is_wide else [WRAP])]
    kernel = scale_tile[(1,)](whole, whole, row_stride, stride, 0, ROWS=8, COLUMNS=32)
    assert kernel.metadata.options["may_alias"] == (not are_injective(steps))


def test_why_rows_overlap():
    own = deuteron.jit(scale_tile.fn)
    x, out = np.zeros(800, np.float32), np.zeros(800, np.float32)
    kernel = own[(1,)](x, out, 64, 2, 8, ROWS=8, COLUMNS=32)
    assert kernel.metadata.apart == KernelMetadata.from_json(kernel.metadata.to_json()).apart
    own[(1,)](x, out, 31, 2, 8, ROWS=8, COLUMNS=32)
    last = deuteron.recompiles()[-1]
    assert last.reason == "elements of a tile that kernel 'scale_tile' stores through argument 'x' overlap"


def test_rows_in_place_on_a_gpu(monkeypatch):
    """Where strides differ rows are loaded when those before are stored."""
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:80")
    for stride, out_stride in ((40, 40), (20, 40)):
        flat = np.ones(160, np.float32)
        scale_rows[(1,)](flat, flat, stride, out_stride, 40, BLOCK=16, num_warps=1)
        assert (flat == np.where(np.arange(160) < 40, 2, 1)).all()
