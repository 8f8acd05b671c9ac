"""tanh of floats on vectors of AVX-512, by pieces as in `erf_pieces.py`: four to an octave, one of all that is small.

    a = |x|, at most 15.9;  n = the low three bits of the exponent of a, and two bits after them;  t = a - centre[n]
    |tanh x| = c[0] + (t + t (c[1] + t (c[2] + t (c[3] + t (c[4] + t c[5])))))

Worst error found: 1.2 ulp. A vector takes 19 operations, eight of them look-ups; by exp and a division it
takes more than 40.
"""

from __future__ import annotations

from deuteron.backend.cpu.math.pieces import by_registers, evaluate_piece, has_pieces, looked_up
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const
from deuteron.backend.math import exponentials
from deuteron.backend.math.polynomial import at_least, at_most, bits_of
from deuteron.machine.cpu import CPU

_SMALLEST, _LARGEST = 0.11, 15.9  # of the first piece, whose centre is 0, and of the last one
_DROPPED_BITS = 21

# the centre c, tanh c, then the coefficients of t to t**5, of the first less 1, fits by `scripts/fit_pieces.py`
_PIECES = (
    (2.25, 0.9780261, -0.9565351, -0.04250587, 0.027088704, -0.012430282, 0.0039662286),
    (2.75, 0.99185973, -0.9837857, -0.016082289, 0.010545359, -0.0051341266, 0.0019238667),
    (3.25, 0.99699765, -0.9940043, -0.0059794695, 0.003962132, -0.0019443341, 0.00075871515),
    (3.75, 0.99889445, -0.9977901, -0.0022084818, 0.0014678899, -0.0007206708, 0.00029679062),
    (4.5, 0.99975324, -0.9995065, -0.00049337116, 0.00032840957, -0.0001698713, 6.841191e-05),
    (5.5, 0.9999666, -0.9999332, -6.742472e-05, 4.436306e-05, -2.0572234e-05, 9.597217e-06),
    (6.5, 0.99999547, -0.99999094, -8.7429535e-06, 5.797453e-06, -4.300215e-06, 1.8567639e-06),
    (7.5, 0.9999994, -0.99999875, -1.7035525e-06, 4.7979165e-07, 1.4811936e-06, 1.0620228e-06),
    (9.0, 0.99999994, -0.99999994, 1.5708237e-07, 4.410093e-08, -2.3774717e-07, 6.7662613e-09),
    (11.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0),
    (13.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0),
    (15.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, -6.243023e-09, 0.0, -0.3333261, 0.0, 0.13208245),
    (0.140625, 0.1397053, -0.019517573, -0.13690509, -0.30751926, -0.19820765, -1.1665306),
    (0.171875, 0.17020231, -0.028968826, -0.16546786, -0.2955456, 0.89574575, 0.09720806),
    (0.203125, 0.20037672, -0.04015083, -0.1923532, -0.28141907, 0.20824844, 0.11294748),
    (0.234375, 0.2301757, -0.05298086, -0.21775971, -0.26548842, -0.7572885, 0.04954055),
    (0.28125, 0.2740616, -0.07510976, -0.2534868, -0.23887065, 0.1595137, 0.11621865),
    (0.34375, 0.33082113, -0.109442614, -0.29468516, -0.19938073, 0.23458761, 0.027319752),
    (0.40625, 0.38528398, -0.14844373, -0.32817098, -0.15746208, 0.25057557, 0.018269017),
    (0.46875, 0.43718877, -0.19113404, -0.353545, -0.11501492, 0.085365705, -0.020743977),
    (0.5625, 0.50983, -0.25992617, -0.37735265, -0.054819886, 0.16343057, 0.060858086),
    (0.6875, 0.59637356, -0.35566142, -0.3842713, 0.01438992, 0.12067394, -0.062148716),
    (0.8125, 0.6709671, -0.4501968, -0.36895284, 0.064242624, 0.09323662, -0.06112693),
    (0.9375, 0.7340715, -0.538861, -0.33845884, 0.09476219, 0.030691665, -0.050589506),
    (1.125, 0.8093011, -0.6549682, -0.27924043, 0.110969804, 0.0039258148, -0.03180517),
    (1.375, 0.8798267, -0.774095, -0.19877039, 0.09956636, -0.020350916, -0.0093011735),
    (1.625, 0.9253462, -0.85626566, -0.13299048, 0.075168855, -0.026007608, 0.0011883132),
    (1.875, 0.95404524, -0.9102024, -0.085659645, 0.051806465, -0.02156993, 0.004400196),
)


def tanh(b: Builder, x: Value, target: CPU) -> Value:
    if not has_pieces(x.type, target):
        return exponentials.tanh(b, x)
    return by_registers(b, x, _tanh)


def _tanh(b: Builder, x: Value) -> Value:
    a = at_most(b, b.fabs(x), _LARGEST)
    bits = bits_of(b, at_least(b, a, _SMALLEST))
    places = b.lshr(bits, const(bits.type, _DROPPED_BITS))
    centre, *columns = zip(*_PIECES, strict=True)
    t = b.fsub(a, looked_up(b, places, centre), flags="")
    return b.copysign(evaluate_piece(b, places, t, columns), x)
