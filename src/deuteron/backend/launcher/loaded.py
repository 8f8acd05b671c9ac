"""The launcher of this process: its machine code, what it shares with Python, and the objects that it makes.

    launcher = load_launcher(numbers)                 None where this interpreter is not laid out as the code expects
    at = launcher.subscript(kernel)                   at(grid)(*args, **keywords) launches
    launcher.learn(array, "*fp32:16")                 from now on the code itself reads arrays of this kind

`kernel` is a tuple that begins with a KERNEL record; the other items keep alive what the record has addresses of.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from deuteron.backend.arrays import is_array_token, tokens_of_one_array
from deuteron.backend.launcher import numpy_arrays, torch_tensors
from deuteron.backend.launcher.object_layout import LAYOUT, check_layout
from deuteron.backend.launcher.python_function import METH_FASTCALL, METH_KEYWORDS, METH_O, Definition, new_function
from deuteron.backend.launcher.records import (
    EXPORTED,
    NUMPY_DTYPES,
    NUMPY_TABLE,
    SHARED,
    SHARED_WORDS,
    TORCH_DTYPES,
    TORCH_TABLE,
)
from deuteron.backend.launcher.tokens import Numbers
from deuteron.backend.llvm.loader import LoadedObject, load_kept


class Launcher:
    """The launcher's code and what it shares; there is one, which lives as long as the process."""

    def __init__(self, loaded: LoadedObject, numbers: Numbers):
        self.numbers = numbers
        self._loaded = loaded
        doc = b"Launch the kernel with these arguments."
        self._launch = self._definition_of("launch", METH_FASTCALL | METH_KEYWORDS, doc)
        self._launch_chosen = self._definition_of("launch_chosen", METH_FASTCALL | METH_KEYWORDS, doc)
        self._launch_prepared = self._definition_of("launch_prepared", METH_FASTCALL | METH_KEYWORDS, doc)
        self._with_grid = self._definition_of("with_grid", METH_O, b"The kernel with its grid.")
        hash_type = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)
        self._hash_words = hash_type(self._loaded.address("hash_words"))
        self._shared = (ctypes.c_uint64 * SHARED_WORDS)()
        self._kept: list[Any] = []
        self._dtypes: set[int] = set()
        self._write_shared()

    def _definition_of(self, function: str, flags: int, doc: bytes) -> Definition:
        return Definition(b"launch", self._loaded.address(function), flags, doc)

    def _write_shared(self) -> None:
        numbers = self.numbers
        objects = {
            "int": int,
            "float": float,
            "str": str,
            "tuple": tuple,
            "bytes": bytes,
            "none": None,
            "true": True,
            "false": False,
        }
        tables = {"tokens": numbers.tokens, "strings": numbers.strings, "identities": numbers.identities}
        objects |= {"exception": Exception, "constant": numbers.constant_token, **tables}
        objects |= {"may_alias": sys.intern("may_alias")}  # by which name Python adds the option
        self._kept.append(objects)
        self.set(**{name: id(value) for name, value in objects.items()})

    @property
    def shared(self) -> int:
        """The address of what the code shares with Python."""
        return ctypes.addressof(self._shared)

    def definition(self, is_choice: bool) -> int:
        """What `kernel[grid]` is made of, or `tuner[grid]`."""
        return ctypes.addressof(self._launch_chosen if is_choice else self._launch)

    def set(self, **values: int) -> None:
        """Write words of SHARED."""
        for name, value in values.items():
            self._shared[SHARED.index(name)] = value

    def subscript(self, kernel: tuple) -> Any:
        """The function that makes a callable of a grid."""
        return new_function(self._with_grid, kernel)

    def prepared(self, kernel: tuple, entry: tuple, grid: tuple[int, int, int]) -> Any:
        """The function that launches an entry."""
        return new_function(self._launch_prepared, (kernel, entry, grid))

    def hash(self, words: Sequence[int]) -> int:
        """What an entry of this key is found by."""
        array = (ctypes.c_uint64 * len(words))(*[word & (1 << 64) - 1 for word in words])
        return self._hash_words(ctypes.addressof(array), len(words))

    def learn(self, array: Any, token: Any) -> None:
        """Let the code read arrays of this class, dtype and device itself, if it is one and the code knows how."""
        if not is_array_token(token):
            return
        first = self.numbers.of(tokens_of_one_array(token)[0])
        if numpy_arrays.is_array(array):
            self._learn_dtype(array.dtype, first)
        elif torch_tensors.is_tensor(array):
            self._learn_tensor(array, first)

    def _learn_dtype(self, dtype: Any, first: int) -> None:
        if id(dtype) in self._dtypes or len(self._dtypes) >= NUMPY_DTYPES // 2:
            return
        self._kept.append(dtype)
        self._dtypes.add(id(dtype))
        place = id(dtype) >> 4
        while self._shared[NUMPY_TABLE + 2 * (place % NUMPY_DTYPES)]:
            place += 1
        word = NUMPY_TABLE + 2 * (place % NUMPY_DTYPES)
        self._shared[word + 1] = first
        self._shared[word] = id(dtype)
        if not self._shared[SHARED.index("ndarray")]:
            self.set(ndarray=numpy_arrays.class_address())

    def _learn_tensor(self, tensor: Any, first: int) -> None:
        functions = torch_tensors.functions()
        if functions is None:
            return
        place = functions.place(tensor)
        if place is None:
            return
        device, dtype = place
        self._shared[TORCH_TABLE + TORCH_DTYPES * device + dtype] = first
        if not self._shared[SHARED.index("tensor")]:
            self.set(**functions.addresses)


def load_launcher(numbers: Numbers) -> Launcher | None:
    """Load the code."""
    return Launcher(load_kept(f"launcher for {LAYOUT}", _text, EXPORTED), numbers) if check_layout() else None


def _text() -> str:
    from deuteron.backend.launcher.call import launcher_module  # deferred: the code is kept on disk

    return launcher_module().text()
