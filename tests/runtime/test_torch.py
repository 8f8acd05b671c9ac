"""torch's tensors as arguments: types, views, devices, reinterpretation."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import DeuteronError, LaunchError
from deuteron.runtime.specialise import specialise

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TYPES = {
    torch.bool: "i1",
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.float8_e5m2: "fp8e5",
    torch.float8_e4m3fnuz: "fp8e4b8",
    torch.float8_e5m2fnuz: "fp8e5b16",
}


@pytest.mark.parametrize(("dtype", "name"), TYPES.items(), ids=str)
def test_types(dtype, name):
    tensor = torch.zeros(100).to(dtype)
    token, address = specialise(tensor)
    assert token.partition(":")[0] == f"*{name}" and address == tensor.data_ptr()
    assert specialise(deuteron.MockTensor.wrap_dtype(dtype))[0] == f"*{name}:16"


def test_a_view_starts_at_its_first_element():
    tensor = torch.zeros(6, 8)
    assert specialise(tensor[1:, 3:].T)[1] == tensor.data_ptr() + (8 + 3) * 4


def test_parameters_of_modules_are_arrays():
    assert specialise(torch.nn.Parameter(torch.zeros(3)))[0].startswith("*fp32")


def test_a_tensor_on_another_device():
    @deuteron.jit
    def kernel(x_ptr):
        pass

    with pytest.raises(LaunchError, match="argument 'x_ptr' of kernel 'kernel': it is on device 'meta'"):
        kernel[(1,)](torch.zeros(3, device="meta"))


@deuteron.jit
def increment(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)


class ByDLPack:
    """A tensor of a library of which nothing else is known."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize(("wrap", "too_many"), [(lambda tensor: tensor, 9), (ByDLPack, 6)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_interpreter_takes_tensors_and_checks_their_extent(monkeypatch, wrap, too_many, dtype):
    """That of the storage, where it is known."""
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    tensor = torch.zeros(10, dtype=dtype)
    increment[(1,)](wrap(tensor[2:7]), 5, BLOCK=16)
    assert tensor.tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]
    with pytest.raises(deuteron.errors.MemoryAccessError):
        increment[(1,)](wrap(tensor[2:7]), too_many, BLOCK=16)


def test_reinterpreted_tensors(monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", "1")
    bits = torch.zeros(8, dtype=torch.int16)
    increment[(1,)](deuteron.reinterpret(bits, tl.bfloat16), 8, BLOCK=8)
    assert bits.view(torch.bfloat16).tolist() == [1.0] * 8


def test_assert_close_takes_tensors():
    deuteron.testing.assert_close(torch.ones(3, dtype=torch.bfloat16), np.ones(3, np.float32))
    with pytest.raises(AssertionError):
        deuteron.testing.assert_close(torch.ones(3), torch.zeros(3))


def test_autotuned_tensors_are_reset_and_restored():
    from deuteron.runtime.autotuning.contents import copy_of, fill_with_zeros, write_back

    tensor = torch.arange(4)
    saved = copy_of(tensor)
    fill_with_zeros(tensor)
    assert tensor.tolist() == [0] * 4
    write_back(tensor, saved)
    assert tensor.tolist() == [0, 1, 2, 3]


def without_memory():
    """Tensors that have elements, and no memory for them."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    given_back = torch.zeros(4)
    given_back.untyped_storage().resize_(0)
    jagged = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(2)], layout=torch.jagged)
    return [FakeTensorMode().from_tensor(torch.zeros(4)), jagged, given_back, torch._efficientzerotensor((4,))]


@pytest.mark.parametrize("number", range(4))
def test_elements_without_memory_are_an_error_and_no_crash(number):
    tensor, x = without_memory()[number], torch.zeros(4)
    for _ in range(3):  # by machine code from the second on
        increment[(1,)](x, 4, BLOCK=4)
        with pytest.raises(LaunchError, match=r"argument 'x_ptr' .* the 4 elements of this \w+ have no memory"):
            increment[(1,)](tensor, 4, BLOCK=4)
    assert x.tolist() == [3.0] * 4


@deuteron.jit
def copy(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i))


def test_a_nested_tensor_is_its_rows_one_after_the_other():
    """Nobody knows where it ends: it may overlap any other array."""
    nested, out = torch.nested.nested_tensor([torch.ones(3), torch.full((5,), 2.0)]), torch.zeros(8)
    for _ in range(3):
        copy[(1,)](nested, out.zero_(), BLOCK=8)
        assert out.tolist() == [1.0] * 3 + [2.0] * 5


def test_a_storage_has_no_element_type():
    storage, out = torch.zeros(8).untyped_storage(), torch.zeros(8)
    for _ in range(3):
        copy[(1,)](torch.ones(8), out, BLOCK=8)
        with pytest.raises(LaunchError, match="argument 'x_ptr' .*no element type is known of this UntypedStorage"):
            copy[(1,)](storage, out, BLOCK=8)


def test_empty_tensors_need_no_memory():
    for _ in range(3):
        increment[(1,)](torch.zeros(0), 0, BLOCK=4)


def test_within_a_transform_the_way_out_is_an_operator():
    def launched(x):
        increment[(1,)](x, 4, BLOCK=4)
        return x

    with pytest.raises(LaunchError, match="argument 'x_ptr' .* it has no address .*: within vmap.* in an operator"):
        torch.vmap(launched)(torch.zeros(2, 4))


@deuteron.jit
def lengths_and_weights(ends_ptr, weights_ptr, out_ptr, stride, n):
    """Of a row, how long it is, and the weight of the row before the one that `weights_ptr` is."""
    row = tl.program_id(0)
    length = tl.load(ends_ptr + row + 1) - tl.load(ends_ptr + row)
    tl.store(out_ptr + row, length + tl.load(weights_ptr + (row - 1) * stride + n))


CHECKED = {
    "bounds": {"DEUTERON_CHECK": "bounds"},
    "interpreter": {"DEUTERON_INTERPRET": "1"},
    "emulator": {"DEUTERON_EMULATE": "1", "DEUTERON_TARGET": "cuda:80"},
}


@pytest.mark.parametrize("how", CHECKED)
def test_a_view_reaches_as_far_as_its_storage(how, monkeypatch):
    for name, text in CHECKED[how].items():
        monkeypatch.setenv(name, text)
    ends, weights = torch.tensor([0, 2, 3, 7]), torch.arange(15).reshape(3, 5)
    out = torch.zeros(4, dtype=torch.int64)
    lengths_and_weights[(3,)](ends[:-1], weights[1], out, 5, 2)
    assert out.tolist() == [2 + 2, 1 + 7, 4 + 12, 0]
    with pytest.raises(DeuteronError, match="(?i)out-of-bounds"):
        lengths_and_weights[(4,)](ends[:-1], weights[1], out, 5, 2)
    with pytest.raises(DeuteronError, match="(?i)out-of-bounds"):
        lengths_and_weights[(3,)](ends[:-1], weights[0], out, 5, 2)
