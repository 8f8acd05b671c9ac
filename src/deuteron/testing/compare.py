"""`assert_close`: two arrays are equal within a tolerance, or it says where they are not."""

from __future__ import annotations

from typing import Any

# Relative and absolute tolerance by the dtype with the fewest bits.
DEFAULT_TOLERANCE = {"float16": 1e-2, "bfloat16": 1e-2}


def assert_close(x: Any, y: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raise AssertionError unless `|x - y| <= atol + rtol * |y|` everywhere; NaN equals NaN.

    Args:
        x, y: arrays (NumPy, torch, ...) or numbers of one shape, or one of them a scalar.
        atol, rtol: a number, or a function of the dtype that returns one. Default: 1e-2 for 16-bit floats, else 0.
        err_msg: put before the message.
    """
    import numpy as np  # deferred: start-up time

    left, right = _as_numpy(x), _as_numpy(y)
    absolute, relative = _tolerance(atol, left.dtype), _tolerance(rtol, left.dtype)
    if left.shape != right.shape and (left.size > 1 or right.size > 1):
        lead = f"{err_msg}\n" if err_msg else ""
        raise AssertionError(f"{lead}arrays of different shapes: {left.shape} and {right.shape}")
    np.testing.assert_allclose(
        left.astype(_widened(left.dtype)),
        right.astype(_widened(right.dtype)),
        rtol=relative,
        atol=absolute,
        equal_nan=True,
        err_msg=err_msg,
    )


def allclose(x: Any, y: Any, tol: float = 1e-2) -> bool:
    """Whether no element differs by more than `tol` of the greatest; what Triton 2.0 compared with."""
    import numpy as np  # deferred: start-up time

    left, right = (_as_numpy(array).astype(np.float64) for array in (x, y))
    if left.shape != right.shape:
        raise ValueError(f"arrays of different shapes: {left.shape} and {right.shape}")
    if not left.size:
        return True
    return bool(np.max(np.abs(left - right)) <= tol * max(np.max(np.abs(right)), np.max(np.abs(left)), 1e-300))


def assert_almost_equal(x: Any, y: Any, decimal: int = 2, err_msg: str = "") -> None:
    """Raise AssertionError where elements differ by more than 1.5 * 10^-decimal; what Triton 2.0 compared with."""
    assert_close(x, y, atol=1.5 * 10.0**-decimal, rtol=0.0, err_msg=err_msg)


def _as_numpy(x: Any) -> Any:
    import numpy as np  # deferred: start-up time

    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x
        x = x.numpy()
    return np.asarray(x)


def _tolerance(given: Any, dtype: Any) -> float:
    if given is None:
        return DEFAULT_TOLERANCE.get(dtype.name, 0.0)
    return given(dtype) if callable(given) else given


def _widened(dtype: Any) -> Any:
    """What is compared: narrow floats, which NumPy's comparison does not know, as float64."""
    return "float64" if dtype.name in DEFAULT_TOLERANCE or "float8" in dtype.name else dtype
