"""Mathematics that every target may share, expanded into LLVM IR: floats, integers and their bits.

    exp(b, x)                         on a scalar or, on a CPU, a vector
    narrow(b, x, FP8E5)               a format that no instruction knows

polynomial.py                         constants, fused polynomials, the bits of floats
exponentials.py logarithms.py error_function.py trigonometry.py quadrant.py    in float and double
float_trigonometry.py                 sin and cos of float without double, for GPUs
functions.py                          all of them, with division and square root, by name
remainder.py conversions.py           fmod; element types
"""
