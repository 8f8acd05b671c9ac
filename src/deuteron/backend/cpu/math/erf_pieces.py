"""erf of floats on vectors of AVX-512, by pieces: 32 polynomials, whose coefficients registers hold as tables.

    a = |x|, at most 3.99;  n = round(a / s), where s is 65/512;  t = a - n s;  c = _PIECES[n]
    |erf x| = c[0] + (t + t (c[1] + t (c[2] + t (c[3] + t (c[4] + t c[5])))))

A table of 32 floats is two registers, from which one instruction takes an element for each lane (VPERMI2PS), so that
a vector takes 18 operations in the place of 33. Worst error found: 1.1 ulp. Of the last piece erf is 1.
Doubles, and processors with narrower registers: `math/error_function.py`.
"""

from __future__ import annotations

from deuteron.backend.cpu.math.pieces import by_registers, evaluate_piece, has_pieces
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math import error_function
from deuteron.backend.math.polynomial import FLOAT, at_most, bits_of, fused, number
from deuteron.machine.cpu import CPU

_STEP = 65 / 512  # of which all multiples are floats
_LARGEST = 3.99  # within the last piece

# erf(n s), then the coefficients of t to t**5, of the first less 1, fits by `scripts/fit_pieces.py`
_PIECES = (
    (0.0, 0.12837917, 0.0, -0.3761242, 0.0, 0.11216716),
    (0.14248537, 0.1103387, -0.14095274, -0.35812303, 0.06767539, 0.09031271),
    (0.280463, 0.05792967, -0.26861736, -0.30718595, 0.12893233, 0.08214223),
    (0.40984848, -0.023979438, -0.37169996, -0.23095661, 0.16117732, 0.043707505),
    (0.5273385, -0.12810938, -0.44279695, -0.14088757, 0.19252019, 0.047617372),
    (0.63065135, -0.2458358, -0.47868142, -0.048807885, 0.16607524, -0.029394113),
    (0.7186238, -0.36835846, -0.48114935, 0.0337863, 0.15135485, -0.056308035),
    (0.79116374, -0.48775664, -0.4552464, 0.09894023, 0.11510356, -0.06726365),
    (0.84908605, -0.5977622, -0.4085439, 0.14252077, 0.069002226, -0.067963384),
    (0.89387316, -0.69416285, -0.34947214, 0.1642223, 0.029890006, -0.05807904),
    (0.92740816, -0.77483624, -0.28587535, 0.16687311, -0.0049496633, -0.043872282),
    (0.9517236, -0.83948797, -0.22413826, 0.15518124, -0.037038803, -0.028033044),
    (0.9687964, -0.88920563, -0.16882572, 0.13447626, -0.036950048, -0.00928863),
    (0.98040456, -0.92594945, -0.12226118, 0.10980335, -0.03786765, -0.0035804734),
    (0.9880475, -0.95207745, -0.08513695, 0.084967256, -0.056344476, 0.0050006565),
    (0.9929205, -0.96997017, -0.05717358, 0.06258021, -0.04348153, 0.013535047),
    (0.9959292, -0.9817793, -0.037009433, 0.04406468, -0.03276387, 0.009868653),
    (0.997728, -0.9892951, -0.023100808, 0.029653044, -0.024929194, 0.015343578),
    (0.99876946, -0.9939103, -0.013968708, 0.019177698, -0.0043700146, 0.008781706),
    (0.9993533, -0.9966456, -0.00804686, 0.011897262, -0.022479592, 0.006967666),
    (0.9996703, -0.9982109, -0.004581371, 0.0070801596, 0.0019832086, 0.007577549),
    (0.999837, -0.99907607, -0.0025054212, 0.004080572, 0.005695758, 0.0019643675),
    (0.9999218, -0.999538, -0.0012856335, 0.0022702827, -0.0038924818, -0.001199573),
    (0.99996364, -0.9997763, -0.00067813805, 0.0012068748, 0.0045592966, -0.0001964973),
    (0.9999836, -0.9998951, -0.0003441919, 0.000598558, 0.0051893853, 0.0033938251),
    (0.99999285, -0.9999524, -0.00019039235, 0.00029575423, 0.0091683995, 0.001793626),
    (0.99999696, -0.9999791, -7.1853814e-05, 0.00015077162, 0.0004612803, -0.000700463),
    (0.99999875, -0.9999911, -2.7201226e-05, 8.665152e-05, -0.0009260216, -0.003154032),
    (0.9999995, -0.9999963, -5.248601e-05, 1.1726064e-05, 0.009592659, 0.0030171701),
    (0.9999998, -0.9999985, -3.0561587e-05, -5.802225e-06, 0.0061319396, 0.0030801753),
    (0.99999994, -0.99999946, -2.5247184e-05, 2.7096628e-05, 0.0056371563, -0.0035757425),
    (1.0, -1.0, 0.0, 0.0, 0.0, 0.0),
)


def erf(b: Builder, x: Value, target: CPU) -> Value:
    if not has_pieces(x.type, target):
        return error_function.erf(b, x)
    return by_registers(b, x, _erf)


def _erf(b: Builder, x: Value) -> Value:
    a = at_most(b, b.fabs(x), _LARGEST)
    rounder = number(x, FLOAT.rounder)
    shifted = fused(b, a, number(x, 1 / _STEP), rounder)
    t = fused(b, b.fsub(shifted, rounder, flags=""), number(x, -_STEP), a)
    return b.copysign(evaluate_piece(b, bits_of(b, shifted), t, tuple(zip(*_PIECES, strict=True))), x)
