"""Triton's names for NVIDIA's GPUs, on every target: `tl.extra.cuda.libdevice.tanh(x)` is `tl.extra.libdevice.tanh(x)`.

warps = tl.extra.cuda.num_warps()            an int, known when the kernel is compiled
tl.extra.cuda.gdc_wait()                     nothing, but on a GPU from compute capability 9.0 on
"""

from deuteron.language.constant import constexpr
from deuteron.language.convert import to_tensor
from deuteron.language.extra import libdevice as libdevice
from deuteron.language.functions.function import Function
from deuteron.language.inline_asm import inline_asm_elementwise
from deuteron.language.program import globaltimer as globaltimer
from deuteron.language.program import num_threads as num_threads
from deuteron.language.program import num_warps as num_warps
from deuteron.language.target_info import cuda_capability_geq, is_cuda
from deuteron.language.types import int32

WAITS_FOR_GRIDS = constexpr(9)  # the compute capability that has griddepcontrol


@Function
def smid():
    """The number of the multiprocessor that runs the program, an int32 scalar; 0 where it is no GPU."""
    if is_cuda():
        result = inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=int32, is_pure=True, pack=1)
    else:
        result = to_tensor(0)
    return result


@Function
def gdc_wait():
    """Wait until the kernels before this one in the stream have ended, and see what they have written.

    A launch by Deuteron begins after them in any case, as do all without programmatic dependent launch.
    """
    if cuda_capability_geq(WAITS_FOR_GRIDS):
        inline_asm_elementwise("griddepcontrol.wait; mov.u32 $0, 0;", "=r", [], dtype=int32, is_pure=False, pack=1)


@Function
def gdc_launch_dependents():
    """Let the next kernel in the stream begin once all programs have come here, or ended: it is to wait by `gdc_wait`.

    A hint, for launches with programmatic dependent launch; those by Deuteron follow one another.
    """
    if cuda_capability_geq(WAITS_FOR_GRIDS):
        inline_asm_elementwise(
            "griddepcontrol.launch_dependents; mov.u32 $0, 0;", "=r", [], dtype=int32, is_pure=False, pack=1
        )


@Function
def convert_custom_float8_sm80(arg, dst_ty, fp_downcast_rounding=None):
    """`arg.to(dst_ty)`, to float8e4b15 or from it; Triton has it for GPUs without the type. Rounds as `.to` does."""
    return arg.to(dst_ty, fp_downcast_rounding)


@Function
def convert_custom_float8_sm70(arg, dst_ty, fp_downcast_rounding=None):
    """The same as `convert_custom_float8_sm80`."""
    return arg.to(dst_ty, fp_downcast_rounding)
