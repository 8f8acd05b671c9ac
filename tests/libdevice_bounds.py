"""The largest errors that are promised, in ulp of float and double: those of CUDA's table of mathematical functions.

What is not listed is exact or correctly rounded.
"""

BOUNDS: dict[str, tuple[float, float]] = {
    "sqrt": (1, 0.5),  # of float on a GPU, as `tl.sqrt`
    "rsqrt": (2, 1),
    "rsqrt_rn": (0.5, 0.5),
    "cbrt": (1, 1),
    "rcbrt": (1, 1),
    "hypot": (3, 2),
    "rhypot": (2, 1),
    "norm3d": (3, 2),
    "rnorm3d": (2, 1),
    "norm4d": (3, 2),
    "rnorm4d": (2, 1),
    "exp": (2, 1),
    "exp2": (2, 1),
    "exp10": (2, 1),
    "expm1": (1, 1),
    "log": (1, 1),
    "log2": (1, 1),
    "log10": (2, 1),
    "log1p": (1, 1),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (4, 2),
    "sinpi": (1, 2),
    "cospi": (1, 2),
    "asin": (2, 2),
    "acos": (2, 2),
    "atan": (2, 2),
    "atan2": (3, 2),
    "sinh": (3, 2),
    "cosh": (2, 1),
    "tanh": (2, 1),
    "asinh": (3, 3),
    "acosh": (4, 3),
    "atanh": (3, 2),
    "pow": (4, 2),
    "erf": (2, 2),
    "erfc": (4, 5),
    "erfcx": (4, 4),
    "erfinv": (2, 5),
    "erfcinv": (4, 6),
    "normcdf": (5, 5),
    "normcdfinv": (5, 8),
    "lgamma": (6, 4),
    "tgamma": (5, 10),
    "j0": (9, 7),
    "j1": (9, 7),
    "jn": (9, 7),
    "y0": (9, 7),
    "y1": (9, 7),
    "yn": (9, 7),
    "cyl_bessel_i0": (6, 6),
    "cyl_bessel_i1": (6, 6),
}

# Of an order n: 2 + 2.5 |n| where |x| < |n|, of Bessel functions of the second kind.
BY_ORDER = ("yn",)

# Beside the ulp, an absolute error, in float and double: near their zeros, and of Bessel functions from 8 on.
ABSOLUTE: dict[str, tuple[float, float]] = {
    "lgamma": (1e-6, 1e-14),
    **dict.fromkeys(("j0", "j1", "jn", "y0", "y1", "yn"), (2.2e-6, 5e-12)),
}

# Relative errors of the fast functions on a GPU; results below 2**-126 may be 0, quotients by more than 2**126 are.
FAST = 2.0**-13
