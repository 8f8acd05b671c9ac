"""The functions of a library for Rust: a file that a crate includes, over those of C.

    library_rust("norms", functions)        the text of norms.rs

    pub unsafe fn rms_norm_fp32(stream: Stream, X: *const f32, ..., algo_id: i32) -> Result<(), Error>
    pub unsafe fn rms_norm_fp32_default(stream: Stream, X: *const f32, ...) -> Result<(), Error>

A function is linked by its symbol, which has a digest of what the functions of the library are: a file and a library
that do not belong together do not link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deuteron.aot.c_types import c_type, is_read
from deuteron.aot.dispatch import Algos, Functions, algo_constants, records_of
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.symbols import symbol
from deuteron.aot.templates import defined_names, render
from deuteron.dtypes import FLOATS, INTEGERS
from deuteron.library.c_code import library_digest

_SCALARS = {"bool": "bool", "float": "f32", "double": "f64"}
_POINTEES = {
    **{type.signature: c_type(type.signature) for type in INTEGERS},
    **{type.signature: c_type(type.signature) for type in FLOATS if type.bits >= 32},
    **{type.signature: "uint16_t" for type in FLOATS if type.bits == 16},
    **{type.signature: "uint8_t" for type in FLOATS if type.bits == 8},
}
_KEYWORDS = """
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if
    impl in let loop macro match mod move mut override priv pub ref return self Self static struct super trait true
    try type typeof unsafe unsized use virtual where while yield
"""
_TEMPLATE = "library.rs.txt"
_RESERVED = defined_names(_TEMPLATE).union(_KEYWORDS.split(), ("Ok", "Err", "Some", "stream", "algo_id"))


def library_rust(name: str, functions: Functions) -> str:
    digest = library_digest(name, functions)
    return render(
        _TEMPLATE,
        name=name,
        example=next(iter(functions)),
        functions="\n".join(_function(function, algos, digest) for function, algos in functions.items()),
    )


def _function(name: str, algos: Algos, digest: str) -> str:
    records = records_of(algos)
    params = {_name(param.c_name): _type(param, records) for param in records[0].c_params}
    launches = (
        _launch(name, {**params, "algo_id": "i32"}, digest),
        _launch(f"{name}_default", params, digest),
        *(_maintenance(verb, name, digest) for verb in ("load", "unload")),
    )
    constants = (f"pub const {constant}: i32 = {i};\n" for i, constant in enumerate(algo_constants(name, algos)))
    return "\n".join(launches) + "\n" + "".join(constants)


def _launch(name: str, params: Mapping[str, str], digest: str) -> str:
    """A function that launches a kernel, with the types of what it takes after the stream."""
    taken = ", ".join(["stream: Stream", *(f"{param}: {type}" for param, type in params.items())])
    return (
        f"/// # Safety\n/// Pointers have what the kernel reads and writes, on the device of the stream.\n"
        f"pub unsafe fn {_name(name)}({taken}) -> Result<(), Error> {{\n"
        f'    unsafe extern "C" {{\n        #[link_name = "{symbol(digest, name)}"]\n'
        f"        fn deuteron_launch({taken}) -> i32;\n    }}\n"
        f"    status_of(unsafe {{ deuteron_launch({', '.join(['stream', *params])}) }})\n}}\n"
    )


def _maintenance(verb: str, name: str, digest: str) -> str:
    function = f"{verb}_{name}"
    return (
        f"pub fn {function}(stream: Stream) -> Result<(), Error> {{\n"
        f'    unsafe extern "C" {{\n        #[link_name = "{symbol(digest, function)}"]\n'
        f"        fn call(stream: Stream) -> i32;\n    }}\n"
        f"    status_of(unsafe {{ call(stream) }})\n}}\n"
    )


def _name(c_name: str) -> str:
    return f"{c_name}_" if c_name in _RESERVED else c_name


def _type(param: ParamRecord, records: Sequence[KernelRecord]) -> str:
    if param.type.startswith("*"):
        return f"*{'const' if is_read(param, records) else 'mut'} {_in_rust(_POINTEES[param.type[1:]])}"
    return _in_rust(c_type(param.type))


def _in_rust(in_c: str) -> str:
    """`i32` for `int32_t`."""
    return _SCALARS.get(in_c) or in_c.removesuffix("_t").replace("uint", "u").replace("int", "i")
