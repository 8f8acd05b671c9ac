"""`triton.tools.mxfp`: numbers in the microscaling formats e2m1 and e8m0, as torch tensors of their codes.

    x = MXFP4Tensor(data=torch.randn(64, 128))      .data       uint8 [64, 128], a code of four bits each
                                                    .to(torch.float32)
    x.to_packed_tensor(dim=1)                       uint8 [64, 64], two codes in a byte, the first in the lower half
    s = MXScaleTensor(data=amax / 6)                .data       uint8: 2 ** (code - 127), 255 is NaN

What `tl.dot_scaled` takes. torch is imported when one is made.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# The magnitudes of the eight codes of e2m1 without a sign.
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_SIGN = 8
_BIAS, _NAN = 127, 255


class _Codes:
    """A tensor of codes, made of numbers (`data`), or drawn by `random()` for a `size`; `device` is torch's."""

    def __init__(self, data: torch.Tensor | None = None, size: Any = None, device: Any = None):
        if data is None and size is None:
            raise ValueError("give the numbers as data=, or a size= to draw them by random()")
        if data is None:
            self.size, self.device = size if isinstance(size, tuple) else (size,), device
            return
        if not hasattr(data, "device"):
            raise TypeError(f"data is a torch tensor of numbers, got {type(data).__name__}")
        self.device = data.device
        self.data = self._from_float(data)

    @staticmethod
    def _check_float32(dtype: Any) -> None:
        import torch

        if dtype != torch.float32:
            raise TypeError(f"the codes convert to torch.float32, not to {dtype}: convert that further")


class MXFP4Tensor(_Codes):
    """Numbers of four bits, e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6, with both signs."""

    def random(self) -> MXFP4Tensor:
        """Every code is as likely as every other."""
        import torch

        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers as torch.float32; zeros keep their sign."""
        import torch

        self._check_float32(dtype)
        values = torch.tensor([*E2M1, *(-value for value in E2M1)], dtype=dtype, device=self.data.device)
        return values[self.data.long()]

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        """The nearest, ties to the even code; what is too large, infinite or NaN becomes the largest."""
        import torch

        magnitude = values.detach().float().abs().nan_to_num(nan=E2M1[-1], posinf=E2M1[-1])
        code = torch.zeros(values.shape, dtype=torch.uint8, device=values.device)
        for lower, (low, high) in enumerate(zip(E2M1, E2M1[1:], strict=False)):
            middle = (low + high) / 2
            code += magnitude >= middle if lower % 2 else magnitude > middle
        return code | torch.signbit(values).to(torch.uint8) * _SIGN

    def to_packed_tensor(self, dim: int) -> torch.Tensor:
        """Two neighbours along `dim` in a byte; an odd one is the neighbour of a zero."""
        import torch

        if not 0 <= dim < self.data.ndim:
            raise ValueError(f"dim is 0 to {self.data.ndim - 1} for {self.data.ndim} dimensions, got {dim}")
        codes = torch.movedim(self.data, dim, -1)
        if codes.shape[-1] % 2:
            codes = torch.nn.functional.pad(codes, (0, 1))
        return torch.movedim(codes[..., ::2] | codes[..., 1::2] << 4, -1, dim).contiguous()

    def unpack_packed_tensor(self, packed_tensor: torch.Tensor, dim: int, original_shape: Any) -> torch.Tensor:
        """The codes that `to_packed_tensor` put together, one in a byte, of a tensor of `original_shape`."""
        import torch

        packed = torch.movedim(packed_tensor, dim, -1)
        codes = torch.stack([packed & 15, packed >> 4 & 15], -1).flatten(-2)[..., : original_shape[dim]]
        return torch.movedim(codes, -1, dim).contiguous()


class MXScaleTensor(_Codes):
    """Scales of eight bits, e8m0: powers of two from 2**-127 to 2**127."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Powers of two from `low` to `high`; none is NaN."""
        import torch

        first = 0 if low is None else max(0, int(math.log2(low)) + _BIAS)
        last = _NAN - 1 if high is None else min(_NAN - 1, max(0, int(math.log2(high)) + _BIAS))
        if first > last:
            raise ValueError(f"low is {low} and high is {high}: there is no scale between them")
        self.data = torch.randint(first, last + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The scales as torch.float32."""
        import torch

        self._check_float32(dtype)
        scales = torch.ldexp(torch.ones((), dtype=torch.float64), self.data.double().cpu() - _BIAS).to(dtype)
        return scales.to(self.data.device).masked_fill(self.data == _NAN, math.nan)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        """The largest power of two that is not above; NaN for what is not a positive finite number."""
        import torch

        wide = values.detach().double()
        codes = (torch.frexp(wide).exponent - 1 + _BIAS).clamp(0, _NAN - 1)
        return torch.where((wide > 0) & torch.isfinite(wide), codes, _NAN).to(torch.uint8)
