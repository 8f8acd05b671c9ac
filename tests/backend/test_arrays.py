"""Arrays of several libraries: types, addresses, devices."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.arrays import ForeignDevice, element_type, split_token
from deuteron.backend.devices import CPU, Device
from deuteron.backend.dlpack import dlpack_tensor
from deuteron.errors import LaunchError
from deuteron.runtime.specialise import specialise

NUMPY_TYPES = {
    np.bool_: "i1",
    np.int8: "i8",
    np.int16: "i16",
    np.int32: "i32",
    np.int64: "i64",
    np.uint8: "u8",
    np.uint16: "u16",
    np.uint32: "u32",
    np.uint64: "u64",
    np.float16: "fp16",
    np.float32: "fp32",
    np.float64: "fp64",
    ml_dtypes.bfloat16: "bf16",
    ml_dtypes.float8_e4m3fn: "fp8e4nv",
    ml_dtypes.float8_e5m2: "fp8e5",
    ml_dtypes.float8_e4m3fnuz: "fp8e4b8",
    ml_dtypes.float8_e5m2fnuz: "fp8e5b16",
}


@pytest.mark.parametrize(("dtype", "name"), NUMPY_TYPES.items(), ids=NUMPY_TYPES.values())
def test_numpy_types(dtype, name):
    array = np.zeros(100, dtype)
    token, address = specialise(array)
    assert token.partition(":")[0] == f"*{name}"
    assert address == array.ctypes.data


def test_alignment_is_a_hint_and_an_offset_takes_it_away():
    array = np.zeros(64, np.float32)
    aligned = array[(-array.ctypes.data % 16) // 4 :]
    assert specialise(aligned)[0] == "*fp32:16"
    assert specialise(aligned[1:]) == ("*fp32", aligned.ctypes.data + 4)


def views():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    read_only = array.copy()
    read_only.flags.writeable = False
    return {
        "transposed": array.T,
        "strided": array[:, ::2],
        "reversed": array[::-1],
        "read-only": read_only,
        "empty": array[:0],
        "broadcast": np.broadcast_to(array[0], (3, 6)),
        "scalar": np.array(1, np.float32),
        "subclass": array.view(np.matrix),
    }


@pytest.mark.parametrize("kind", views())
def test_the_address_is_that_of_the_first_element(kind):
    array = views()[kind]
    token, address = specialise(array)
    assert token.removeprefix("!").startswith("*fp32") and address == array.ctypes.data
    assert token.startswith("!") == (not array.flags.writeable)


@pytest.mark.parametrize("dtype", [np.complex64, object, "S4", ">f4", [("a", "f4")]])
def test_element_types_that_kernels_do_not_have(dtype):
    with pytest.raises(LaunchError, match="cannot be given to a kernel: the types are bool, int8"):
        specialise(np.zeros(3, dtype))


@pytest.mark.parametrize("dtype", [np.dtype("float32"), tl.float32])
def test_dtype_objects_of_several_libraries(dtype):
    assert element_type(dtype) == "fp32"


class WithInterface:
    """An array of another library, with `__array_interface__`."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


class WithDLPack:
    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


class WithDataPointer:
    """What torch's tensors have."""

    def __init__(self, dtype, address, device="cpu"):
        self.dtype, self.address = dtype, address
        self.device = type("device", (), {"type": device})

    def data_ptr(self):
        return self.address


def test_array_interface():
    array = np.zeros(5, np.int16)
    token, address = specialise(WithInterface(array))
    assert token.startswith("*i16") and address == array.ctypes.data


@pytest.mark.parametrize(
    "interface",
    [
        None,
        {"typestr": "<f4"},
        {"typestr": "<f4", "data": None},
        {"typestr": "<f4", "data": bytearray(8)},
        {"typestr": "<f4", "data": (1.5, False)},
        {"typestr": "odd", "data": (64, False)},
        {"data": (64, False)},
    ],
)
def test_an_interface_that_cannot_be_read(interface):
    class Array:
        __array_interface__ = interface

    with pytest.raises(LaunchError, match="its array interface has no address and type that can be read"):
        specialise(Array())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint64", "bool"])
def test_dlpack(dtype):
    array = np.zeros((4, 6), dtype)[1:, ::2]
    token, address = specialise(WithDLPack(array))
    assert token.partition(":")[0] == f"*{NUMPY_TYPES[np.dtype(dtype).type]}"
    assert address == array.ctypes.data


def test_dlpack_shape_and_strides():
    found = dlpack_tensor(np.zeros((4, 6), np.int16)[:, ::3])
    assert (found.device, found.shape, found.strides, found.element_size) == ("cpu", (4, 2), (6, 3), 2)


def test_a_cuda_interface_that_only_gpu_arrays_have():
    class Array(WithDLPack):
        """As JAX's."""

        @property
        def __cuda_array_interface__(self):
            raise AttributeError("not on a GPU")

    array = np.zeros(5, np.float32)
    assert specialise(Array(array))[1] == array.ctypes.data


def test_data_pointer():
    assert specialise(WithDataPointer("torch.bfloat16", 4096)) == ("*bf16:16", 4096)
    assert specialise(WithDataPointer("torch.float8_e4m3fn", 4097)) == ("*fp8e4nv", 4097)


@pytest.mark.parametrize(
    "array",
    [WithDataPointer("torch.float32", 4096, "xpu"), WithDLPack(np.zeros(3), (10, 0))],
    ids=["data_ptr", "dlpack-rocm"],
)
def test_arrays_of_a_device_that_no_kernel_runs_on(array):
    with pytest.raises(ForeignDevice, match="device"):
        specialise(array)


class WithCudaInterface:
    """What CuPy's arrays have."""

    def __init__(self, address, index=None):
        self.address = address
        if index is not None:
            self.__dlpack_device__ = lambda: (2, index)

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.address, False), "typestr": "<i4"}


def test_a_tensor_on_a_gpu():
    tensor = WithDataPointer("torch.float32", 4096, "cuda")
    tensor.device = tensor.device()
    tensor.device.index = 1
    token, address = specialise(tensor)
    assert (split_token(token), address) == (("*fp32", "16", Device("cuda", 1)), 4096)
    tensor.address = 4100
    assert split_token(specialise(tensor)[0]) == ("*fp32", "", Device("cuda", 1))


@pytest.mark.parametrize("index", [None, 0, 3])
def test_the_cuda_interface(index):
    token, address = specialise(WithCudaInterface(4096, index))
    assert (split_token(token), address) == (("*i32", "16", Device("cuda", index)), 4096)


def test_dlpack_on_a_gpu():
    array = np.zeros(4, np.float16)
    token, address = specialise(WithDLPack(array, (2, 5)))
    assert split_token(token)[::2] == ("*fp16", Device("cuda", 5))
    assert address == array.ctypes.data


@pytest.mark.parametrize("token", ["i32", "i32:1", "fp32", "*fp32", "*fp32:16"])
def test_tokens_of_the_cpu(token):
    type, _, hint = token.partition(":")
    assert split_token(token) == (type, hint, CPU if type.startswith("*") else None)


def test_a_ctypes_buffer_is_no_array():
    with pytest.raises(LaunchError, match="expected an array or a number, got an object of type"):
        specialise((ctypes.c_float * 4)())
