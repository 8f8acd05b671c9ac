"""Element types: what is declared in one place is known everywhere, types included that nobody has thought of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import deuteron.language as tl
from deuteron.dtypes import BF16, FLOATS, FP16, INTEGERS, FloatType
from deuteron.ir.arith import constant, constant_value, has_constants
from deuteron.ir.text import parse_module, print_module
from deuteron.ir.tt.function import FuncOp, ReturnOp
from deuteron.ir.types import FLOAT_TYPES, tile
from tests.float_codes import values

PROGRAM = Path(__file__).parent / "made_up_types.py"


@pytest.mark.parametrize("executor", ["interpreter", "cpu", "cuda:80", "cuda:90"])
def test_a_made_up_type_needs_no_more_than_its_declaration(executor: str, tmp_path: Path):
    environment = {
        "DEUTERON_INTERPRET": str(int(executor == "interpreter")),
        "DEUTERON_EMULATE": str(int(executor.startswith("cuda"))),
        "DEUTERON_TARGET": executor if executor.startswith("cuda") else "cpu",
        "DEUTERON_CACHE_DIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    assert "1.062500" in done.stdout and "-3.500000" in done.stdout, done.stdout


@pytest.mark.parametrize("declared", [*INTEGERS, *FLOATS], ids=lambda declared: declared.signature)
def test_the_language_names_every_type(declared):
    assert getattr(tl, declared.name) == tl.dtype(declared.dtype_name)


@pytest.mark.parametrize("declared", FLOATS, ids=lambda declared: declared.signature)
def test_limits_are_those_of_ml_dtypes(declared: FloatType):
    if not declared.has_nan:
        pytest.skip("it knows no such type")
    known = ml_dtypes.finfo(getattr(ml_dtypes, declared.array_name, None) or np.dtype(declared.array_name))
    assert (declared.bits, declared.exponent_bits, declared.mantissa_bits) == (known.bits, known.nexp, known.nmant)
    assert (declared.max_value, declared.min_exponent) == (float(known.max), known.minexp)


@pytest.mark.parametrize("declared", [type for type in FLOATS if type.bits == 8], ids=lambda declared: declared.name)
def test_constants_of_every_number(declared: FloatType):
    """xDSL, which has semantics of its own, keeps them in the bytes and in the text of a constant; if it has none."""
    type = next(attribute for attribute, known in FLOAT_TYPES.items() if known is declared)
    assert has_constants(type) == (declared.name != "float8e4b15")
    if not has_constants(type):
        return
    numbers = values(declared)[np.isfinite(values(declared))]
    func = FuncOp("k", [])
    func.body.block.add_ops([*(constant(float(number), tile(type, (2,))) for number in numbers), ReturnOp()])
    (parsed,) = parse_module(print_module(ModuleOp([func]))).body.block.ops
    for one in (func, parsed):
        *constants, _ = one.body.block.ops
        assert [constant_value(op.result) for op in constants] == numbers.tolist()


@pytest.mark.parametrize("declared", [type for type in FLOATS if type.bits == 8], ids=lambda declared: declared.name)
def test_conversions_keep_numbers_of_the_type(declared: FloatType):
    """All that they give but subnormal ones, and no number between two of them, or beyond."""
    numbers = [float(number) for number in values(declared) if np.isfinite(number)]
    normal = [x for x in numbers if x == 0 or 2.0**declared.min_exponent <= abs(x) <= declared.max_value]
    assert all(declared.keeps(x) for x in normal)
    assert not any(declared.keeps(x * (1 + 2.0 ** -(declared.mantissa_bits + 2))) for x in normal if x)
    assert not any(map(declared.keeps, (np.nan, np.inf, -np.inf)))


@pytest.mark.parametrize("declared", [FP16, BF16], ids=lambda declared: declared.name)
def test_conversions_keep_infinity(declared: FloatType):
    assert all(map(declared.keeps, (np.inf, -np.inf, 0.0, -0.0, 1.5, declared.max_value, -declared.max_value)))
    assert not any(map(declared.keeps, (np.nan, 2 * declared.max_value, 1 + 2.0**-20)))
