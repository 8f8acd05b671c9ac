"""Targets, and compile options: one frozen dataclass per backend."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from deuteron.errors import UsageError, suggest
from deuteron.settings import BOUNDS, settings


@dataclass(frozen=True)
class Target:
    """What code is generated for: `cpu` (arch: an LLVM CPU name, or `native`) or `cuda` (arch: 80, 90, ...).

    A text becomes one by `backend.parse_target`. An arch of 0 or "" is none.
    """

    backend: str
    arch: str | int
    warp_size: int = 32

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}" if self.arch else self.backend


MAX_THREADS = 1024  # of a program on any GPU
# How fp32 operands of a product that says nothing may enter it: what `tl.dot` knows.
DOT_INPUT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
# Options of a launch, which the compiled code knows nothing of, as Triton calls them.
LAUNCH_ATTRIBUTES = ("launch_cooperative_grid", "launch_pdl")


@dataclass(frozen=True)
class CPUOptions:
    """How a kernel is compiled for the CPU. Scripts for GPUs pass `num_warps`, `num_stages`, `num_ctas`: accepted, and
    so are `launch_pdl` and `launch_cooperative_grid`: launches follow one another, and programs may wait for others.

    A warp is one lane here, so that a program which wants so many lanes asks for as many warps. With `check="bounds"`
    every access is checked against the arrays of the launch; None: as `debug` says, where a kernel is launched from
    Python; "": not. `line_info` is for debuggers and profilers; kernels with `debug` have it. `may_alias`: arguments
    may be views of one array, in any way; else a launch checks that those which the code takes to be apart are.
    `enable_reflect_ftz` and `default_dot_input_precision` are for GPUs: no function flushes, all products are exact.
    `interruptible`: loops look now and then whether the launch is to end; None: where a kernel is launched from Python.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    enable_reflect_ftz: bool = True
    default_dot_input_precision: str = "tf32"
    opt_level: int = 3
    debug: bool = False
    sanitize_overflow: bool = True
    check: str | None = None
    line_info: bool = False
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    may_alias: bool = False
    many_programs: bool = False
    plain_loads: bool = False
    interruptible: bool | None = None

    of_code: ClassVar[tuple[str, ...]] = ("check",)  # with which a kernel has to be launched as it was compiled
    # Of no effect on the code for this target, but that a kernel may ask for `num_warps`.
    unread: ClassVar[tuple[str, ...]] = (
        *("num_warps", "num_stages", "num_ctas", "maxnreg"),
        *("enable_reflect_ftz", "launch_pdl", "launch_cooperative_grid", "plain_loads"),
    )

    @property
    def has_lines(self) -> bool:
        """Whether the code has line tables."""
        return bool(self.line_info or self.debug)

    def for_launch(self) -> CPUOptions:
        """As they are where the kernel is launched with the arrays at hand."""
        check = next(found for found in (self.check, settings.check, BOUNDS if self.debug else "") if found is not None)
        line_info, is_asked = bool(self.line_info) or settings.line_info, self.interruptible is None
        return replace(self, check=check, line_info=line_info, interruptible=is_asked or self.interruptible)

    def __post_init__(self) -> None:
        check_launch_options(self.num_warps, self.num_stages, self.num_ctas, MAX_THREADS)
        if self.check not in (None, "", BOUNDS):
            raise UsageError(f'check is None, "" or "{BOUNDS}", got {self.check!r}')
        _check_flags(self)
        if self.interruptible not in (None, True, False):
            raise UsageError(f"interruptible is None, True or False, got {self.interruptible!r}")
        _check_maxnreg(self.maxnreg)
        _check_precision(self.default_dot_input_precision)
        if not isinstance(self.opt_level, int) or self.opt_level not in range(4):
            raise UsageError(f"opt_level must be a whole number from 0 to 3, got {self.opt_level!r}")


@dataclass(frozen=True)
class CUDAOptions:
    """How a kernel is compiled for a GPU. `maxnreg` limits registers a thread, up to what a GPU has.

    `debug` compiles `tl.device_assert`, and with `sanitize_overflow` asserts that integers of less than 64 bits do not
    overflow in `+`, `-` and `*`.

    A program is a cluster of `num_ctas` blocks of `num_warps` warps each. `plain_arguments` is for launchers that pass
    the arguments of the signature and nothing else: such a kernel takes no tensor maps, and so does not copy by TMA.

    With `launch_pdl` a launch may begin before the one before it in the stream has ended, for which the kernel calls
    `gdc_wait`, from compute capability 9.0 on. With `launch_cooperative_grid` all programs of a launch run at once.
    `may_alias`: arguments may be views of one array, in any way. `many_programs`: a grid may be as large as GPUs take;
    else a launch checks that it is one in which no number overflows that the code takes not to. `plain_loads`:
    TMA copies nothing that is loaded through pointers; else a launch checks that it can (rows that go forwards). With
    `enable_reflect_ftz=False` what exponentials of fp32 give below 2**-126 is not zero, at four instructions for one.
    `default_dot_input_precision` is that of products of fp32 that say none.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    enable_reflect_ftz: bool = True
    default_dot_input_precision: str = "tf32"
    debug: bool = False
    plain_arguments: bool = False
    sanitize_overflow: bool = True
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    may_alias: bool = False
    many_programs: bool = False
    plain_loads: bool = False

    of_code: ClassVar[tuple[str, ...]] = ("num_warps", "num_ctas", "plain_arguments")
    unread: ClassVar[tuple[str, ...]] = ()

    def for_launch(self) -> CUDAOptions:
        """As they are where the kernel is launched with the arrays at hand."""
        return self

    def __post_init__(self) -> None:
        check_launch_options(self.num_warps, self.num_stages, self.num_ctas)
        _check_flags(self)
        _check_maxnreg(self.maxnreg)
        _check_precision(self.default_dot_input_precision)


def _check_maxnreg(value: Any) -> None:
    if value is not None and not (isinstance(value, int) and value >= 16):
        raise UsageError(f"maxnreg must be a whole number from 16 on, got {value!r}")


def _check_precision(value: Any) -> None:
    if value not in DOT_INPUT_PRECISIONS:
        known = ", ".join(DOT_INPUT_PRECISIONS)
        raise UsageError(f"default_dot_input_precision (TRITON_F32_DEFAULT) is one of {known}, got {value!r}")


def _check_flags(options: Any) -> None:
    """Raise UsageError where what is declared to be a truth is none: a text, "no", would be true."""
    for field in fields(options):
        value = getattr(options, field.name)
        if field.type == "bool" and not isinstance(value, int | None):
            raise UsageError(f"{field.name} is True or False, got {value!r}")


def check_launch_options(num_warps: int, num_stages: int, num_ctas: int, max_warps: int = 32) -> None:
    """Raise UsageError unless these can be launched on some target; clusters of more than 8 are not portable."""
    if not isinstance(num_warps, int) or not 1 <= num_warps <= max_warps or num_warps & (num_warps - 1):
        raise UsageError(f"num_warps must be a power of two from 1 to {max_warps}, got {num_warps!r}")
    if not isinstance(num_stages, int) or num_stages < 0:
        raise UsageError(f"num_stages must be a whole number, 0 or more, got {num_stages!r}")
    if not isinstance(num_ctas, int) or num_ctas not in (1, 2, 4, 8):
        raise UsageError(f"num_ctas must be a power of two from 1 to 8, got {num_ctas!r}")


_OF_ASCEND = (
    *("multibuffer", "set_workspace_multibuffer", "limit_auto_multi_buffer_only_for_local_buffer"),
    *("limit_auto_multi_buffer_of_local_buffer", "enable_hivm_auto_cv_balance", "enable_mixed_cv", "mix_mode"),
    *("tile_mix_vector_loop", "tile_mix_cube_loop", "enable_ubuf_saving", "unit_flag", "sync_solver"),
    *("inject_barrier_all", "inject_block_all", "disable_auto_inject_block_sync", "enable_sync_block_lock"),
    *("enable_auto_bind_sub_block", "auto_tile_and_bind_subblock", "auto_blockify_size", "optimize_dynamic_offset"),
    *("enable_drop_unit_dims", "enable_flatten", "enable_auto_vectorize_v2", "auto_vectorize_v2_max_fused_ops_num"),
    *("prevec_max_fused_ops_num", "enable_vf_fusion", "vf_merge_level", "enable_nd2nz_on_vector"),
    *("enable_cce_vf_auto_sync", "enable_cce_vf_remove_membar", "enable_select_analysis", "bisheng_options"),
    *("enable_mask_fallback_conversion", "add_auto_scheduling", "hfusion_enable_multiple_consumer_fusion"),
    *("disable_size_align_for_cast", "disable_tightly_coupled_buffer_reuse", "compile_on_910_95"),
    *("parallel_mode", "compile_mode", "force_simt_only", "force_simt_template", "simt_stack_limit"),
    *("enable_bishengir_simt_optimization", "shared_mem_dynamic_size", "use_bytecode"),
)
# Options of other targets and of other versions of Triton, and why a kernel can do without them here.
IGNORED_OPTIONS = {
    **dict.fromkeys(("waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint"), "for AMD's GPUs"),
    **dict.fromkeys(("instruction_sched_variant", "instruction_sched_hint", "use_block_pingpong"), "for AMD's GPUs"),
    **dict.fromkeys(("grf_mode", "threads_per_warp", "one_matrix_per_load_for_bt"), "for Intel's GPUs"),
    **dict.fromkeys(_OF_ASCEND, "for Ascend's processors"),
    **dict.fromkeys(("num_consumer_groups", "num_buffers_warp_spec"), "Deuteron chooses its own warp specialisation"),
    **dict.fromkeys(("reg_dec_producer", "reg_inc_consumer"), "Deuteron chooses its own warp specialisation"),
    **dict.fromkeys(("minRegAutoWS", "maxRegAutoWS", "pingpongAutoWS"), "Deuteron chooses its own warp specialisation"),
    **dict.fromkeys(
        ("enable_warp_specialization", "enable_persistent", "clc", "sched4reg", "generate_subtiled_region"),
        "Deuteron chooses its own schedule",
    ),
    **dict.fromkeys(
        ("early_tma_store_lowering", "tma_store_pipelining", "auto_tma", "auto_tma_device", "multicast"),
        "Deuteron chooses what is copied by TMA",
    ),
    **dict.fromkeys(
        ("warp_size", "ptx_version", "backend_name", "supported_fp8_dtypes", "min_shared_mem", "wgp_cu_mode"),
        "it is what the target has, or the kernel needs",
    ),
    **dict.fromkeys(
        ("allowed_dot_input_precisions", "deprecated_fp8_dtypes", "deprecated_fp8_dot_operand_dtypes"),
        "tl.dot takes every type and precision on every target",
    ),
    **dict.fromkeys(("llvm_fn_attrs", "allow_flush_denorm"), "for AMD's GPUs"),
    **dict.fromkeys(("device", "device_type"), "a kernel runs where its arrays are"),
    **dict.fromkeys(("vec_lib", "enable_fast_math", "enable_raise_block_pointer"), "for Triton's own CPU target"),
    **dict.fromkeys(("ukernels", "assume_in_bounds"), "for Triton's own CPU target"),
    **dict.fromkeys(("num_cpu_threads", "num_threads"), "the number of threads is DEUTERON_NUM_THREADS"),
    "fpsan_homomorphic_casts": "Deuteron has no sanitizer of floats",
    "instrumentation_mode": "DEUTERON_CHECK=bounds, and the emulator, check a kernel's accesses",
    "ptx_options": "Deuteron gives the assembler its own; enable_fp_fusion=False is --fmad=false",
    "optimize_epilogue": "Deuteron chooses its own epilogue",
    "extern_libs": "Deuteron has the functions of libdevice itself",
    "allow_fp8e4nv": "Deuteron has the type on every target",
    "max_num_imprecise_acc_default": "give it to tl.dot",
}


# Options that a launch cannot do without, and what to do instead.
REFUSED_OPTIONS = {
    "arch": "A launch is compiled for the GPU that it runs on, triton.compile for its target; "
    "DEUTERON_TARGET=cuda:80 is for another.",
    "stream": "A launch goes to the stream that is current in the program's library: `with torch.cuda.stream(s):`.",
    "cluster_dims": "Say num_ctas.",
    "ctas_per_cga": "Say num_ctas.",
}


def is_ignored(option: str, value: Any) -> bool:
    """Whether an option means nothing here; says so in a warning, unless it asks for nothing."""
    if option in IGNORED_OPTIONS and value:
        warnings.warn(f"Deuteron ignores the option '{option}': {IGNORED_OPTIONS[option]}", stacklevel=4)
    return option in IGNORED_OPTIONS


def option_names(options_class: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(options_class))


def is_option(name: str) -> bool:
    """Whether some target has it, or it is one that is ignored."""
    return name in IGNORED_OPTIONS or any(name in option_names(options) for options in (CPUOptions, CUDAOptions))


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """None is how a launch leaves an option out, as in Triton."""
    return {name: value for name, value in options.items() if value is not None}


def as_read(options: Any) -> Any:
    """Options of which those that the code for their target does not read are as they are where nothing is asked."""
    return replace(options, **{field.name: field.default for field in fields(options) if field.name in options.unread})


def unknown_options(options_class: type, given: Mapping[str, Any]) -> list[str]:
    """Those that the target does not have, and that are not of another target or version, or left out."""
    known = {*option_names(options_class), *IGNORED_OPTIONS}
    left_out = {name for name in REFUSED_OPTIONS if given.get(name) is None}
    return [name for name in given if name not in known | left_out]


def make_options(options_class: type, given: Mapping[str, Any]) -> Any:
    """An options object; an option that the target does not have is a UsageError that lists those it has, unless it is
    one of another target or version, which a warning says is ignored."""
    if not isinstance(given, Mapping):
        raise UsageError(f"options are a dictionary, as in {{'num_warps': 8}}, got {given!r}")
    if unknown := unknown_options(options_class, given):
        known = ", ".join(option_names(options_class))
        near = REFUSED_OPTIONS.get(unknown[0]) or suggest(unknown[0], option_names(options_class)).strip()
        raise UsageError(f"unknown option '{unknown[0]}': the options are {known}{near and f'. {near}'}")
    given = {name: value for name, value in given.items() if not is_ignored(name, value)}
    return options_class(**{**settings.option_defaults, **without_none(given)})
