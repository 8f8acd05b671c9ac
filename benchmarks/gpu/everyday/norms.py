"""Layer norm and RMS norm over rows of bf16, forward and backward, beside torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.case import Case, Config, Output, Problem, Vendor, cdiv
from benchmarks.gpu.everyday.declare import case, config, empty, random

EPS = 1e-5
# Two for each multiprocessor of an H200.
NUM_PROGRAMS = 264


def cases(is_small: bool = False) -> Iterator[Case]:
    rows, columns = (37, 200) if is_small else (16384, 4096)
    block = 256 if is_small else 4096
    yield _layer_norm(rows, columns, block)
    yield _layer_norm_backward(rows, columns, block)
    yield _rms_norm(rows, columns, block)
    yield _add_rms_norm(rows, columns, block)
    yield _rms_norm_two_passes(*(5, 700, 256) if is_small else (4096, 16384, 4096))
    yield _rms_norm_backward(rows, columns, block)


def _row_case(
    name: str,
    kernel: str,
    parameters: tuple[Any, ...],
    block: int,
    num_programs: int,
    make: Callable[[], Problem],
    num_bytes: float,
    warps: tuple[int, ...] = (8, 4),
) -> Case:
    configs: tuple[Config, ...] = tuple(config(count, BLOCK=block) for count in warps)
    return case(
        "norms",
        name,
        "everyday/norm_kernels",
        kernel,
        parameters,
        configs,
        lambda meta: (num_programs,),
        make,
        num_bytes=num_bytes,
    )


def _layer_norm(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        from torch.nn.functional import layer_norm  # deferred: --precompile needs none

        x, weight, bias = random(rows, columns), random(columns), random(columns)
        out, mean, rstd = empty(rows, columns), empty(rows, dtype="float32"), empty(rows, dtype="float32")
        wide = x.double()
        expected = layer_norm(wide, (columns,), weight.double(), bias.double(), EPS)
        outputs = (
            Output(out, expected),
            Output(mean, wide.mean(1), 1e-5),
            Output(rstd, (wide.var(1, correction=0) + EPS).rsqrt(), 1e-5),
        )
        vendor = Vendor("torch", lambda: layer_norm(x, (columns,), weight, bias, EPS))
        return Problem((x, weight, bias, out, mean, rstd), outputs, vendor)

    parameters = ("*bf16",) * 4 + ("*fp32", "*fp32", columns, columns, EPS)
    name = f"layer norm {rows}x{columns}"
    return _row_case(name, "layer_norm", parameters, block, rows, make, 4 * rows * columns)


def _layer_norm_backward(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        import torch  # deferred: as above

        dout, x, weight, bias = random(rows, columns), random(rows, columns), random(columns), random(columns)
        wide = [tensor.double().requires_grad_() for tensor in (x, weight, bias)]
        torch.nn.functional.layer_norm(wide[0], (columns,), wide[1], wide[2], EPS).backward(dout.double())
        mean = x.double().mean(1).float()
        rstd = (x.double().var(1, correction=0) + EPS).rsqrt().float()
        dx, dweight, dbias = empty(rows, columns), empty(columns, dtype="float32"), empty(columns, dtype="float32")
        outputs = (
            Output(dx, wide[0].grad),
            Output(dweight, wide[1].grad, 1e-5),
            Output(dbias, wide[2].grad, 1e-5),
        )

        def library() -> Any:
            of_rows = mean[:, None], rstd[:, None]
            return torch.ops.aten.native_layer_norm_backward(dout, x, (columns,), *of_rows, weight, bias, [True] * 3)

        arrays = (dout, x, weight, mean, rstd, dx, dweight, dbias)
        return Problem(arrays, outputs, Vendor("torch", library), zeroed=(dweight, dbias))

    num_programs = min(rows, NUM_PROGRAMS)
    parameters = ("*bf16",) * 3 + ("*fp32", "*fp32", "*bf16", "*fp32", "*fp32", columns, rows, columns)
    return _row_case(
        f"layer norm backward {rows}x{columns}",
        "layer_norm_backward",
        (*parameters, cdiv(rows, num_programs)),
        block,
        num_programs,
        make,
        6 * rows * columns,
    )


def _rms(x: Any, weight: Any) -> Any:
    """In float64."""
    wide = x.double()
    return wide * (wide.square().mean(1, keepdim=True) + EPS).rsqrt() * weight.double()


def _torch_rms_norm(x: Any, weight: Any) -> Vendor:
    from torch.nn.functional import rms_norm  # deferred: as above

    return Vendor("torch", lambda: rms_norm(x, x.shape[1:], weight, EPS))


def _rms_norm(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        x, weight = random(rows, columns), random(columns)
        out, rstd = empty(rows, columns), empty(rows, dtype="float32")
        expected_rstd = (x.double().square().mean(1) + EPS).rsqrt()
        outputs = (Output(out, _rms(x, weight)), Output(rstd, expected_rstd, 1e-5))
        return Problem((x, weight, out, rstd), outputs, _torch_rms_norm(x, weight))

    parameters = ("*bf16",) * 3 + ("*fp32", columns, columns, EPS)
    return _row_case(f"rms norm {rows}x{columns}", "rms_norm", parameters, block, rows, make, 4 * rows * columns)


def _add_rms_norm(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        x, residual, weight = random(rows, columns), random(rows, columns), random(columns)
        total, out = empty(rows, columns), empty(rows, columns)
        expected = x + residual
        return Problem(
            (x, residual, weight, total, out), (Output(total, expected), Output(out, _rms(expected, weight)))
        )

    parameters = ("*bf16",) * 5 + (columns, columns, EPS)
    return _row_case(
        f"add rms norm {rows}x{columns}", "add_rms_norm", parameters, block, rows, make, 8 * rows * columns
    )


def _rms_norm_two_passes(rows: int, columns: int, block: int) -> Case:
    def make() -> Problem:
        x, weight, out = random(rows, columns), random(columns), empty(rows, columns)
        return Problem((x, weight, out), (Output(out, _rms(x, weight)),), _torch_rms_norm(x, weight))

    parameters = ("*bf16",) * 3 + (columns, columns, EPS)
    name = f"rms norm two passes {rows}x{columns}"
    return _row_case(name, "rms_norm_two_passes", parameters, block, rows, make, 4 * rows * columns)


def _rms_norm_backward(rows: int, columns: int, block: int) -> Case:
    num_programs = min(rows, NUM_PROGRAMS)

    def make() -> Problem:
        dout, x, weight = random(rows, columns), random(rows, columns), random(columns)
        wide_x, wide_weight = (tensor.double().requires_grad_() for tensor in (x, weight))
        _rms(wide_x, wide_weight).backward(dout.double())
        wide = x.double()
        exact_rstd = (wide.square().mean(1) + EPS).rsqrt()
        products = dout.double() * wide * exact_rstd[:, None]
        partial = products.new_zeros(num_programs, columns)
        for program in range(num_programs):
            partial[program] = products[program::num_programs].sum(0)
        dx, dweight = empty(rows, columns), empty(num_programs, columns, dtype="float32")
        outputs = (Output(dx, wide_x.grad), Output(dweight, partial, 1e-5))
        return Problem((dout, x, weight, exact_rstd.float(), dx, dweight), outputs)

    parameters = ("*bf16",) * 3 + ("*fp32", "*bf16", "*fp32", columns, rows, columns)
    name = f"rms norm backward {rows}x{columns}"
    return _row_case(name, "rms_norm_backward", parameters, block, num_programs, make, 6 * rows * columns)
