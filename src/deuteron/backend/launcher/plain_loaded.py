"""The machine code of `plain_call.py` in this process, and the functions that are made of it.

plain = load_plain_launcher()               None where this interpreter is not laid out as the code expects
run = plain.function(metadata, native, run_in_python)
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence

from deuteron.backend.launcher import torch_tensors
from deuteron.backend.launcher.object_layout import LAYOUT, check_layout
from deuteron.backend.launcher.python_function import METH_FASTCALL, Definition, new_function
from deuteron.backend.launcher.records import (
    AS_ADDRESS,
    AS_BOOL,
    AS_DOUBLE,
    AS_FLOAT,
    AS_INTEGER,
    FIRST,
    MOST_SLOTS,
    PLAIN_SLOT,
    RUNNER,
    SHARED,
    apart_words,
    to_bytes,
)
from deuteron.backend.llvm.loader import LoadedObject, load_kept
from deuteron.backend.metadata import KernelMetadata, Param
from deuteron.backend.native_launch import NativeLaunch

_FORMATS = {"i1": AS_BOOL, "fp16": AS_FLOAT, "bf16": AS_FLOAT, "fp32": AS_FLOAT, "fp64": AS_DOUBLE}
_BITS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32)}


class PlainLauncher:
    """The code and what it shares; there is one, which lives as long as the process."""

    def __init__(self, loaded: LoadedObject):
        self._loaded = loaded
        doc = b"Launch the kernel with the numbers and all arguments of a launch."
        self._run = Definition(b"run", self._loaded.address("run_plain"), METH_FASTCALL, doc)
        objects = {"int": int, "float": float, "none": None, "exception": Exception}
        self._shared = (ctypes.c_uint64 * len(SHARED))(*SHARED.pack(**{n: id(value) for n, value in objects.items()}))
        self._knows_tensors = False

    def function(
        self,
        metadata: KernelMetadata,
        native: NativeLaunch,
        run_in_python: Callable[..., None],
        overlapping: ctypes.py_object,
    ) -> Callable[..., None] | None:
        """The function that launches a kernel; None where it has too many arguments.

        `overlapping` holds what is called for arrays that overlap, from when it is known.
        """
        params = metadata.params
        slots = runner_slots(params)
        if len(slots) > MOST_SLOTS:
            return None
        self._learn_tensors()
        objects = {"in_python": run_in_python, "fail": native.fail}
        kept = objects, overlapping
        fields = {
            "shared": ctypes.addressof(self._shared),
            "num_args": FIRST + len(params),
            "num_slots": len(slots),
            "fire": native.function,
            "target": len(RUNNER) + len(slots) * len(PLAIN_SLOT),
            "apart": len(RUNNER) + len(slots) * len(PLAIN_SLOT) + len(native.target),
            "overlapping": ctypes.addressof(overlapping),
            **{name: id(value) for name, value in objects.items()},
        }
        objects_of = [FIRST + index for index, param in enumerate(params) if param.kind != "constexpr"]
        apart = apart_words(metadata, objects_of, [0] * len(objects_of))
        words = [*RUNNER.pack(**fields), *(word for slot in slots for word in slot), *native.target, *apart]
        return new_function(self._run, (to_bytes(words), kept, self))

    def _learn_tensors(self) -> None:
        """Let the code read torch's tensors, once the program has them."""
        if self._knows_tensors or not hasattr(sys.modules.get("torch"), "nn"):
            return
        self._knows_tensors = True
        functions = torch_tensors.functions()
        if functions is not None:
            for name, value in functions.addresses.items():
                self._shared[SHARED.index(name)] = value


def load_plain_launcher() -> PlainLauncher | None:
    """Load the code."""
    return PlainLauncher(load_kept(f"plain launcher for {LAYOUT}", _text, ["run_plain"])) if check_layout() else None


def _text() -> str:
    from deuteron.backend.launcher.plain_call import plain_module  # deferred: the code is kept on disk

    return plain_module().text()


def runner_slots(params: Sequence[Param]) -> list[list[int]]:
    """Where the slots of a kernel come from, of all its parameters."""
    slots = []
    for index, param in enumerate(params):
        if param.kind == "constexpr":
            continue
        form = AS_ADDRESS if param.kind == "pointer" else _FORMATS.get(param.type, AS_INTEGER)
        mask = (1 << _BITS.get(param.type, 64)) - 1
        slots.append(PLAIN_SLOT.pack(argument=FIRST + index, format=form, mask=mask))
    return slots
