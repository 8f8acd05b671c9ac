"""What NumPy lacks: formats of narrow floats, and functions of floats that are rounded once. Knows nothing of ops.

formats.py              bf16, fp8: rounding to them, and their bit patterns
fused.py rounding.py    a * b + c with one rounding; arithmetic in each rounding, exactly
special_functions.py gamma_and_error.py norms.py
"""
