"""The functions of a library for Python, by ctypes: a module that needs nothing but the shared library beside it.

    library_python("norms", functions)        the text of norms.py

    def rms_norm_fp32(X, Y, n, n_rows, *, algo_id=None, stream=CPU): ...
    rms_norm_fp32(x, y, n, n_rows, algo_id=rms_norm_fp32_select(BLOCK=1024))

A function is found by its symbol, which has a digest of what the functions of the library are: a module and a library
that do not belong together are an error when they are loaded.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence

from deuteron.aot.c_types import c_type, is_read
from deuteron.aot.checked_code import is_checked
from deuteron.aot.checked_params import pointers
from deuteron.aot.dispatch import Algos, Functions, algo_constants, records_of
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.queries import values_of
from deuteron.aot.symbols import symbol
from deuteron.aot.templates import defined_names, render
from deuteron.dtypes import FLOATS, INTEGERS
from deuteron.library.c_code import library_digest

_VALUE_CTYPES = {"int64_t ": "ctypes.c_int64", "double ": "ctypes.c_double", "const char *": "ctypes.c_char_p"}
_WANTED = {"int64_t ": "_wanted_whole", "double ": "_wanted_real", "const char *": "_wanted_text"}
_WHOLE = {type.signature for type in INTEGERS if type.bits > 1}
_TEMPLATE = "library.py.txt"
_RESERVED = defined_names(_TEMPLATE).union(keyword.kwlist, ("stream", "algo_id", "arguments"))
_CTYPES = {"bool": "c_bool", "float": "c_float", "double": "c_double"}


def library_python(name: str, functions: Functions) -> str:
    digest = library_digest(name, functions)
    return render(
        _TEMPLATE,
        name=name,
        example=next(iter(functions)),
        functions="".join(_function(function, algos, digest) for function, algos in functions.items()),
    )


def _function(name: str, algos: Algos, digest: str) -> str:
    records = records_of(algos)
    params = records[0].c_params
    has_cpu = any(record.backend == "cpu" for record in records)
    names = [_python_name(param.c_name) for param in params]
    values = [_value(param, name, records) for param, name in zip(params, names, strict=True)]
    head = ", ".join([*names, "*", "algo_id=None", f"stream={'CPU' if has_cpu else 'None'}"])
    return render(
        "library_function.py.txt",
        name=name,
        function=_python_name(name),
        checked=_checked(name, algos, digest, head, values) if is_checked(records) else "",
        **{verb: symbol(digest, f"{name}{verb}") for verb in ("_default", "_select", "_supports")},
        own=symbol(digest, name),
        types=", ".join(["ctypes.c_void_p", *map(_ctype, params)]),
        constants="".join(_constants(name, algos)),
        head=head,
        asked=", ".join([*names, "algo_id=algo_id or 0", "stream=stream"]),
        arguments=", ".join(["_stream(stream)", *values]),
        **_select(algos),
    )


def _checked(name: str, algos: Algos, digest: str, head: str, values: Sequence[str]) -> str:
    """The function that checks what kernels access."""
    params = records_of(algos)[0].c_params
    arrays = [_python_name(param.c_name) for param in pointers(params)]
    types = ["c_void_p", *(_ctype(param).removeprefix("ctypes.") for param in params), *["c_uint64"] * len(arrays)]
    return render(
        "library_checked.py.txt",
        name=name,
        symbol=symbol(digest, f"{name}_checked"),
        types=", ".join(f"ctypes.{type}" for type in (*types, "c_int", "c_char_p", "c_uint64")),
        head=head,
        arguments=", ".join(["_stream(stream)", *values, *(f"_size({array})" for array in arrays)]),
    )


def _select(algos: Algos) -> dict[str, str]:
    """What the function that finds an algorithm takes, in Python and for C."""
    values = values_of(algos)
    names = [_python_name(value.c_name) for value in values]
    passed = (f"{_WANTED[value.c_type]}({name}, {name!r})" for value, name in zip(values, names, strict=True))
    return {
        "select_types": ", ".join(_VALUE_CTYPES[value.c_type] for value in values),
        "select_head": ", ".join(["*", *(f"{name}=None" for name in names)]),
        "select_arguments": ", ".join(passed),
    }


def _constants(name: str, algos: Algos) -> Iterator[str]:
    return (f"{constant} = {i}\n" for i, constant in enumerate(algo_constants(name, algos)))


def _ctype(param: ParamRecord) -> str:
    if param.type.startswith("*"):
        return "ctypes.c_void_p"
    in_c = c_type(param.type)
    return f"ctypes.{_CTYPES[in_c] if in_c in _CTYPES else 'c_' + in_c.removesuffix('_t')}"


def _value(param: ParamRecord, name: str, records: Sequence[KernelRecord]) -> str:
    """What is passed on of an argument, once it has been looked at."""
    if param.type.startswith("*"):
        types = _array_names(param.type[1:])
        return f"_address({name}, {name!r}, {types!r}, {not is_read(param, records)}, stream)"
    if param.type in _WHOLE:
        return f"_whole({name}, {name!r}, {param.type!r})"
    return name if param.type == "i1" else f"_real({name}, {name!r})"


def _array_names(type: str) -> tuple[str, ...]:
    """What the elements of an array may be called in NumPy and torch, first what they are: whole numbers with a sign or
    without, since torch has few without, and what has no type everywhere by its bits."""
    declared = next(one for one in (*INTEGERS, *FLOATS) if one.signature == type)
    bits = max(declared.bits, 8)
    by_bits = () if declared in FLOATS and bits >= 32 else (f"uint{bits}", f"int{bits}")
    return tuple(dict.fromkeys((declared.array_name, *by_bits)))


def _python_name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name
