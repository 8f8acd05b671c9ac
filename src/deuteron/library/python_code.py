"""The functions of a library for Python, by ctypes: a module that needs nothing but the shared library beside it.

    library_python("norms", functions)        the text of norms.py

    def rms_norm_fp32(X, Y, n, n_rows, *, algo_id=0, stream=CPU):
        _check(_rms_norm_fp32(stream, _address(X), _address(Y), n, n_rows, algo_id))

A function is found by its symbol, which has a digest of what the functions of the library are: a module and a library
that do not belong together are an error when they are loaded.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from deuteron.aot.c_types import c_type
from deuteron.aot.dispatch import Algos, Functions, algo_constants, records_of
from deuteron.aot.metadata import ParamRecord
from deuteron.aot.symbols import symbol
from deuteron.aot.templates import render
from deuteron.library.c_code import library_digest

_CTYPES = {"bool": "c_bool", "float": "c_float", "double": "c_double"}


def library_python(name: str, functions: Functions) -> str:
    digest = library_digest(name, functions)
    return render(
        "library.py.txt",
        name=name,
        example=next(iter(functions)),
        functions="".join(_function(function, algos, digest) for function, algos in functions.items()),
    )


def _function(name: str, algos: Algos, digest: str) -> str:
    records = records_of(algos)
    params = records[0].c_params
    has_cpu = any(record.backend == "cpu" for record in records)
    names = [_python_name(param.c_name) for param in params]
    values = [f"_address({n})" if p.type.startswith("*") else n for n, p in zip(names, params, strict=True)]
    types = ", ".join(["ctypes.c_void_p", *map(_ctype, params), "ctypes.c_int"])
    head = ", ".join([*names, "*", "algo_id=0", f"stream={'CPU' if has_cpu else 'None'}"])
    arguments = ", ".join(["stream", *values, "algo_id"])
    return (
        f'\n\n_{name} = _function("{symbol(digest, name)}", {types})\n'
        f"{''.join(_constants(name, algos))}\n\n"
        f"def {name}({head}):\n"
        f"    _check(_{name}({arguments}))\n"
    )


def _constants(name: str, algos: Algos) -> Iterator[str]:
    return (f"{constant} = {i}\n" for i, constant in enumerate(algo_constants(name, algos)))


def _ctype(param: ParamRecord) -> str:
    if param.type.startswith("*"):
        return "ctypes.c_void_p"
    in_c = c_type(param.type)
    return f"ctypes.{_CTYPES[in_c] if in_c in _CTYPES else 'c_' + in_c.removesuffix('_t')}"


def _python_name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or name in ("stream", "algo_id") else name
