"""Targets, compile options (one frozen dataclass per backend) and settings from the environment.

This is the only module that reads environment variables. Settings are read when they are asked for, so that a test or a
program that changes `os.environ` is heard.
"""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from deuteron.errors import UsageError, suggest


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
# Options of a launch, which the compiled code knows nothing of, as Triton calls them.
LAUNCH_ATTRIBUTES = ("launch_cooperative_grid", "launch_pdl")
BOUNDS = "bounds"


@dataclass(frozen=True)
class CPUOptions:
    """How a kernel is compiled for the CPU. Scripts for GPUs pass `num_warps`, `num_stages`, `num_ctas`: accepted, and
    so are `launch_pdl` and `launch_cooperative_grid`: launches follow one another, and programs may wait for others.

    A warp is one lane here, so that a program which wants so many lanes asks for as many warps. With `check="bounds"`
    every access is checked against the arrays of the launch; None: as `debug` says, where a kernel is launched from
    Python; "": not. `line_info` is for debuggers and profilers; kernels with `debug` have it. `may_alias`: arguments
    may be views of one array, in any way; else a launch checks that those which the code takes to be apart are.
    `interruptible`: loops look now and then whether the launch is to end; None: where a kernel is launched from Python.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    opt_level: int = 3
    debug: bool = False
    sanitize_overflow: bool = True
    check: str | None = None
    line_info: bool = False
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    may_alias: bool = False
    interruptible: bool | None = None

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
        _check_flags(self, "enable_fp_fusion", "debug", "sanitize_overflow", "line_info", "may_alias")
        _check_flags(self, *LAUNCH_ATTRIBUTES)
        if self.interruptible not in (None, True, False):
            raise UsageError(f"interruptible is None, True or False, got {self.interruptible!r}")
        if self.opt_level not in range(4):
            raise UsageError(f"opt_level must be a whole number from 0 to 3, got {self.opt_level!r}")


@dataclass(frozen=True)
class CUDAOptions:
    """How a kernel is compiled for a GPU. `maxnreg` limits registers a thread.

    `debug` compiles `tl.device_assert`, and with `sanitize_overflow` asserts that integers of less than 64 bits do not
    overflow in `+`, `-` and `*`.

    A program is a cluster of `num_ctas` blocks of `num_warps` warps each. `plain_arguments` is for launchers that pass
    the arguments of the signature and nothing else: such a kernel takes no tensor maps, and so does not copy by TMA.

    With `launch_pdl` a launch may begin before the one before it in the stream has ended, for which the kernel calls
    `gdc_wait`, from compute capability 9.0 on. With `launch_cooperative_grid` all programs of a launch run at once.
    `may_alias`: arguments may be views of one array, in any way.
    """

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    debug: bool = False
    plain_arguments: bool = False
    sanitize_overflow: bool = True
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    may_alias: bool = False

    def for_launch(self) -> CUDAOptions:
        """As they are where the kernel is launched with the arrays at hand."""
        return self

    def __post_init__(self) -> None:
        check_launch_options(self.num_warps, self.num_stages, self.num_ctas)
        _check_flags(
            self, "enable_fp_fusion", "debug", "plain_arguments", "sanitize_overflow", "may_alias", *LAUNCH_ATTRIBUTES
        )
        if self.maxnreg is not None and not (isinstance(self.maxnreg, int) and 16 <= self.maxnreg <= 255):
            raise UsageError(f"maxnreg must be a whole number from 16 to 255, got {self.maxnreg!r}")


def _check_flags(options: Any, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        if not isinstance(value, int | None):
            raise UsageError(f"{name} is True or False, got {value!r}")


def check_launch_options(num_warps: int, num_stages: int, num_ctas: int, max_warps: int = 32) -> None:
    """Raise UsageError unless these can be launched on some target; clusters of more than 8 are not portable."""
    if not isinstance(num_warps, int) or not 1 <= num_warps <= max_warps or num_warps & (num_warps - 1):
        raise UsageError(f"num_warps must be a power of two from 1 to {max_warps}, got {num_warps!r}")
    if not isinstance(num_stages, int) or num_stages < 0:
        raise UsageError(f"num_stages must be a whole number, 0 or more, got {num_stages!r}")
    if not isinstance(num_ctas, int) or num_ctas not in (1, 2, 4, 8):
        raise UsageError(f"num_ctas must be a power of two from 1 to 8, got {num_ctas!r}")


# Options of other targets and of other versions of Triton, and why a kernel can do without them here.
IGNORED_OPTIONS = {
    **dict.fromkeys(("waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint"), "for AMD's GPUs"),
    **dict.fromkeys(("instruction_sched_variant", "instruction_sched_hint", "use_block_pingpong"), "for AMD's GPUs"),
    **dict.fromkeys(("grf_mode", "threads_per_warp", "one_matrix_per_load_for_bt"), "for Intel's GPUs"),
    **dict.fromkeys(("multibuffer", "enable_hivm_auto_cv_balance"), "for Ascend's processors"),
    **dict.fromkeys(("num_consumer_groups", "num_buffers_warp_spec"), "Deuteron chooses its own warp specialisation"),
    **dict.fromkeys(("reg_dec_producer", "reg_inc_consumer"), "Deuteron chooses its own warp specialisation"),
    **dict.fromkeys(("enable_warp_specialization", "enable_persistent"), "Deuteron chooses its own schedule"),
    **dict.fromkeys(("device", "device_type"), "a kernel runs where its arrays are"),
    **dict.fromkeys(("vec_lib", "enable_fast_math", "enable_raise_block_pointer"), "for Triton's own CPU target"),
    "optimize_epilogue": "Deuteron chooses its own epilogue",
    "extern_libs": "Deuteron has the functions of libdevice itself",
    "allow_fp8e4nv": "Deuteron has the type on every target",
    "max_num_imprecise_acc_default": "give it to tl.dot",
    "enable_reflect_ftz": "functions treat subnormal numbers in one way, which docs/math.md describes",
}


# Options that a launch cannot do without, and what to do instead.
REFUSED_OPTIONS = {
    "arch": "A launch is compiled for the GPU that it runs on; set DEUTERON_TARGET=cuda:80 to compile for another.",
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


def make_options(options_class: type, given: dict[str, Any]) -> Any:
    """An options object; an option that the target does not have is a UsageError that lists those it has, unless it is
    one of another target or version, which a warning says is ignored."""
    given = {name: value for name, value in given.items() if not is_ignored(name, value)}
    unknown = [name for name in given if name not in option_names(options_class)]
    if unknown:
        known = ", ".join(option_names(options_class))
        near = suggest(unknown[0], option_names(options_class))
        raise UsageError(f"unknown option '{unknown[0]}': the options are {known}{near and f'.{near}'}")
    return options_class(**{**settings.option_defaults, **given})


# What `os.environ` keeps its variables in, encoded: to look there takes a tenth of the time (0.05 us), and every launch
# asks for variables that are mostly not set.
_variables = getattr(os.environ, "_data", None)


def _variable(name: str) -> str | None:
    if _variables is not None and os.environ.encodekey(name) not in _variables:
        return None
    return os.environ.get(name)


# What a launch asks for, whose kernel is there.
LAUNCH_VARIABLES = (
    *("DEUTERON_INTERPRET", "TRITON_INTERPRET", "DEUTERON_EMULATE", "DEUTERON_TARGET"),
    *("TRITON_DEBUG", "TRITON_DEFAULT_FP_FUSION", "DEUTERON_CHECK"),
    "DEUTERON_SYNC",
)


def environment_entry(name: str) -> tuple[dict[Any, Any], Any] | None:
    """The dictionary that holds a variable while it is set, and its key there; None where that is not known."""
    if type(_variables) is not dict:
        return None
    return _variables, os.environ.encodekey(name)


def get_variable(name: str) -> str | None:
    """A variable of the environment; None where it is not set."""
    return os.environ.get(name)


def set_variable(name: str, text: str | None) -> None:
    """Set a variable of the environment, or, with None, take it away."""
    if text is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = text


def truth(text: str) -> bool:
    """Whether the text of a variable means yes."""
    return text.lower() not in ("", "0", "false", "off", "no", "n")


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _flag(name: str, theirs: str = "") -> bool:
    """Whether a variable says yes, or, where it is not set, that of Triton."""
    return truth(_variable(name) or (theirs and _variable(theirs)) or "0")


@functools.cache
def _user_cache_dir() -> str:
    import platformdirs  # deferred: 5 ms, which a program that names its folder does not need

    return platformdirs.user_cache_dir("deuteron")


class Settings:
    """What the environment says. Every property reads its variable anew."""

    @property
    def interpret(self) -> bool:
        """DEUTERON_INTERPRET (or TRITON_INTERPRET): run kernels in the NumPy interpreter."""
        return _flag("DEUTERON_INTERPRET", "TRITON_INTERPRET")

    @property
    def emulate(self) -> bool:
        """DEUTERON_EMULATE: compile kernels for a GPU (DEUTERON_TARGET, default cuda:90), run their PTX on the CPU."""
        return _flag("DEUTERON_EMULATE")

    @property
    def emulator_seed(self) -> int:
        """DEUTERON_EMULATOR_SEED: when what is asynchronous happens on the emulator; default: 0."""
        text = os.environ.get("DEUTERON_EMULATOR_SEED") or "0"
        if not text.isdecimal():
            raise UsageError(f"DEUTERON_EMULATOR_SEED must be a whole number that is not negative, got '{text}'")
        return int(text)

    @property
    def cache_dir(self) -> Path:
        """DEUTERON_CACHE_DIR (or TRITON_CACHE_DIR, or one in TRITON_HOME): where compiled kernels are kept."""
        given = os.environ.get("DEUTERON_CACHE_DIR") or os.environ.get("TRITON_CACHE_DIR")
        at_home = self.triton_home and os.path.join(self.triton_home, ".triton", "cache")
        return Path(given or at_home or _user_cache_dir())

    @property
    def triton_cache_dir(self) -> Path:
        """TRITON_CACHE_DIR, else `cache_dir`: where programs made for Triton look for compiled kernels."""
        return Path(os.environ.get("TRITON_CACHE_DIR") or self.cache_dir)

    @property
    def triton_home(self) -> str | None:
        """TRITON_HOME: where Triton's folder `.triton` is, if set."""
        return os.environ.get("TRITON_HOME") or None

    @property
    def cache_size(self) -> int:
        """DEUTERON_CACHE_SIZE: how many bytes may be kept there, such as 500M or 4G; default: 2G; 0: any number."""
        text = os.environ.get("DEUTERON_CACHE_SIZE") or "2G"
        number, unit = (text[:-1], text[-1].upper()) if text[-1].upper() in _UNITS else (text, "")
        if not number.isdecimal():
            raise UsageError(f"DEUTERON_CACHE_SIZE must be a number of bytes, such as 500M or 2G, got '{text}'")
        return int(number) * _UNITS.get(unit, 1)

    @property
    def cache_is_shared(self) -> bool:
        """DEUTERON_CACHE_SHARED: several users have the cache folder in common; its entries are signed."""
        return _flag("DEUTERON_CACHE_SHARED")

    @property
    def cache_key(self) -> bytes:
        """DEUTERON_CACHE_KEY: the secret that entries of a shared cache are signed with."""
        return os.fsencode(_variable("DEUTERON_CACHE_KEY") or "")

    @property
    def remote_cache(self) -> str | None:
        """DEUTERON_REMOTE_CACHE: where machines share what they compile, an address for fsspec; entries are signed."""
        return _variable("DEUTERON_REMOTE_CACHE") or None

    @property
    def dump_dir(self) -> Path | None:
        """DEUTERON_DUMP_DIR (or, with TRITON_KERNEL_DUMP, Triton's): where the text of every stage is written."""
        return self._folder("DEUTERON_DUMP_DIR", "TRITON_KERNEL_DUMP", "TRITON_DUMP_DIR", "dump")

    @property
    def override_dir(self) -> Path | None:
        """DEUTERON_OVERRIDE_DIR (or, with TRITON_KERNEL_OVERRIDE, Triton's): `<kernel>.<stage>` files in it replace
        what that stage made."""
        return self._folder("DEUTERON_OVERRIDE_DIR", "TRITON_KERNEL_OVERRIDE", "TRITON_OVERRIDE_DIR", "override")

    def _folder(self, own: str, switch: str, theirs: str, name: str) -> Path | None:
        """The folder that Deuteron's variable names, else, where Triton's switch is on, the one of Triton."""
        path = os.environ.get(own)
        if path or not _flag(switch):
            return Path(path) if path else None
        return Path(os.environ.get(theirs) or os.path.join(self.triton_home or Path.home(), ".triton", name))

    @property
    def option_texts(self) -> tuple[str | None, ...]:
        """TRITON_DEBUG, TRITON_DEFAULT_FP_FUSION and DEUTERON_CHECK. Every launch asks for them."""
        return _variable("TRITON_DEBUG"), _variable("TRITON_DEFAULT_FP_FUSION"), _variable("DEUTERON_CHECK")

    @property
    def option_defaults(self) -> dict[str, bool]:
        """The options `debug` and `enable_fp_fusion` where the environment says them: of kernels that say nothing."""
        variables = {"debug": "TRITON_DEBUG", "enable_fp_fusion": "TRITON_DEFAULT_FP_FUSION"}
        return {option: truth(text) for option, name in variables.items() if (text := _variable(name))}

    @property
    def line_info(self) -> bool:
        """DEUTERON_LINE_INFO: kernels for the CPU have line tables, those of launches, of which gdb is told, and C."""
        return _flag("DEUTERON_LINE_INFO")

    @property
    def check(self) -> str | None:
        """DEUTERON_CHECK: `bounds` checks the accesses of launches on the CPU; `none`, also those with `debug`, not."""
        text = _variable("DEUTERON_CHECK")
        if text not in (None, "", "none", BOUNDS):
            raise UsageError(f"DEUTERON_CHECK must be {BOUNDS} or none, got '{text}'")
        return {"": None, "none": ""}.get(text, text)

    @property
    def ptxas(self) -> str | None:
        """DEUTERON_PTXAS (or TRITON_PTXAS_PATH): the assembler, if it is not to be that of the wheel or on PATH."""
        return _variable("DEUTERON_PTXAS") or _variable("TRITON_PTXAS_PATH") or None

    @property
    def disabled_passes(self) -> tuple[str, ...]:
        """DEUTERON_DISABLE_PASSES: names of passes that a compile leaves out, such as `fold,overlap-wgmma`."""
        names = (_variable("DEUTERON_DISABLE_PASSES") or "").split(",")
        return tuple(sorted({name.strip() for name in names} - {""}))

    @property
    def always_compile(self) -> bool:
        """DEUTERON_ALWAYS_COMPILE (or TRITON_ALWAYS_COMPILE): do not read the cache."""
        return _flag("DEUTERON_ALWAYS_COMPILE", "TRITON_ALWAYS_COMPILE")

    @property
    def strict(self) -> bool:
        """DEUTERON_STRICT: a launch that would compile is an error."""
        return _flag("DEUTERON_STRICT")

    @property
    def verify_each(self) -> bool:
        """DEUTERON_VERIFY_EACH: verify tile IR after every pass, and not at the end of a stage alone."""
        return _flag("DEUTERON_VERIFY_EACH")

    @property
    def isolate(self) -> bool:
        """DEUTERON_ISOLATE: compile in a process of its own, which an abort of LLVM ends instead of this one."""
        return _flag("DEUTERON_ISOLATE")

    @property
    def sync(self) -> bool:
        """DEUTERON_SYNC: a launch on a GPU waits until the kernel has ended, so that its errors are raised by it."""
        return _flag("DEUTERON_SYNC")

    @property
    def record(self) -> Path | None:
        """DEUTERON_RECORD: a file to which is added what launches compile, for `deuteron warmup`."""
        path = _variable("DEUTERON_RECORD")
        return Path(path) if path else None

    @property
    def compile_processes(self) -> int:
        """DEUTERON_COMPILE_PROCESSES: how many configurations an autotuner compiles at a time; default: the usable
        cores; 1: all in this process."""
        return _positive("DEUTERON_COMPILE_PROCESSES")

    @property
    def tuned_dir(self) -> Path | None:
        """DEUTERON_TUNED_DIR: where autotuners keep what they measure, if set."""
        text = os.environ.get("DEUTERON_TUNED_DIR")
        return Path(text) if text else None

    @property
    def print_autotuning(self) -> bool:
        """DEUTERON_PRINT_AUTOTUNING (or TRITON_PRINT_AUTOTUNING): say which configuration was taken."""
        return _flag("DEUTERON_PRINT_AUTOTUNING", "TRITON_PRINT_AUTOTUNING")

    @property
    def target(self) -> str | None:
        """DEUTERON_TARGET: the target of kernels launched from Python, instead of the machine's own."""
        return _variable("DEUTERON_TARGET") or None

    @property
    def num_threads(self) -> int:
        """DEUTERON_NUM_THREADS: threads that run the programs of a grid on the CPU; default: the usable cores."""
        return _positive("DEUTERON_NUM_THREADS")


def _positive(name: str) -> int:
    """A variable that is a positive whole number; where it is not set, the usable cores."""
    text = os.environ.get(name)
    if not text:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"{name} must be a positive whole number, got '{text}'")
    return int(text)


settings = Settings()
