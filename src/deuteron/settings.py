"""Settings from the environment, which no other module reads.

They are read when they are asked for, so that a test or a program that changes `os.environ` is heard.
"""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path
from typing import Any

from deuteron.errors import UsageError, suggest

BOUNDS = "bounds"  # what is checked of a launch, as the option `check` says it as well

# What `os.environ` keeps its variables in, encoded: to look there takes a tenth of the time (0.05 us), and every launch
# asks for variables that are mostly not set.
_variables = getattr(os.environ, "_data", None)


def _variable(name: str) -> str | None:
    if _variables is not None and _encoded(name) not in _variables:
        return None
    return os.environ.get(name)


# What a launch asks for, whose kernel is there.
LAUNCH_VARIABLES = (
    *("DEUTERON_INTERPRET", "TRITON_INTERPRET", "DEUTERON_EMULATE", "DEUTERON_TARGET"),
    *("TRITON_DEBUG", "TRITON_DEFAULT_FP_FUSION", "TRITON_F32_DEFAULT", "DEUTERON_CHECK"),
    "DEUTERON_SYNC",
)

# What a compile depends on.
COMPILE_VARIABLES = (*LAUNCH_VARIABLES, "DEUTERON_LINE_INFO", "DEUTERON_DISABLE_PASSES")


# All that Deuteron reads, without the prefix DEUTERON_.
VARIABLES = (
    *("ALWAYS_COMPILE", "CACHE_DIR", "CACHE_KEY", "CACHE_SHARED", "CACHE_SIZE", "CHECK", "COMPILE_PROCESSES"),
    *("DISABLE_PASSES", "DUMP_DIR", "EMULATE", "EMULATOR_SEED", "FRONT_END_DEBUGGING", "INTERPRET", "ISOLATE"),
    *("LINE_INFO", "NUM_THREADS"),
    *("OVERRIDE_DIR", "PRINT_AUTOTUNING", "PTXAS", "RECORD", "REMOTE_CACHE", "STRICT", "SYNC", "TARGET", "TUNED_DIR"),
    "VERIFY_EACH",
)
PREFIX = "DEUTERON_"
_OF_TESTS = ("DEUTERON_TEST_", "DEUTERON_FUZZ_")


@functools.cache
def warn_of_unknown_variables() -> None:
    """Warn, once in a process, of variables that have Deuteron's prefix and no meaning."""
    for name in sorted(os.environ):
        own = name.removeprefix(PREFIX)
        if own != name and own not in VARIABLES and not name.startswith(_OF_TESTS):
            warnings.warn(
                f"Deuteron knows no variable {name}, which is ignored.{suggest(own, VARIABLES)}", stacklevel=3
            )


def environment_entry(name: str) -> tuple[dict[Any, Any], Any] | None:
    """The dictionary that holds a variable while it is set, and its key there; None where that is not known."""
    if type(_variables) is not dict:
        return None
    return _variables, _encoded(name)


@functools.cache
def _encoded(name: str) -> Any:
    """One object of a name, which keeps its hash."""
    return os.environ.encodekey(name)


def get_variable(name: str) -> str | None:
    """A variable of the environment; None where it is not set."""
    return os.environ.get(name)


def set_variable(name: str, text: str | None) -> None:
    """Set a variable of the environment, or, with None, take it away."""
    if text is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = text


_YES, _NO = ("1", "true", "on", "yes", "y"), ("", "0", "false", "off", "no", "n")


def truth(text: str, name: str) -> bool:
    """Whether the text of a variable means yes; raises UsageError where it means neither that nor no."""
    if text.lower() not in (*_YES, *_NO):
        raise UsageError(f"{name} must be 1 or 0, got '{text}'")
    return text.lower() in _YES


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _flag(name: str, theirs: str = "") -> bool:
    """Whether a variable says yes, or, where it is not set, that of Triton."""
    text = _variable(name)
    return truth(text, name) if text else bool(theirs) and truth(_variable(theirs) or "0", theirs)


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
        folder = self._folder("DEUTERON_OVERRIDE_DIR", "TRITON_KERNEL_OVERRIDE", "TRITON_OVERRIDE_DIR", "override")
        if folder is not None and os.environ.get("DEUTERON_OVERRIDE_DIR") and not folder.is_dir():
            raise UsageError(f"DEUTERON_OVERRIDE_DIR must be a folder, got '{folder}', which is none")
        return folder

    def _folder(self, own: str, switch: str, theirs: str, name: str) -> Path | None:
        """The folder that Deuteron's variable names, else, where Triton's switch is on, the one of Triton."""
        path = os.environ.get(own)
        if path or not _flag(switch):
            return Path(path) if path else None
        return Path(os.environ.get(theirs) or os.path.join(self.triton_home or Path.home(), ".triton", name))

    @property
    def option_texts(self) -> tuple[str | None, ...]:
        """TRITON_DEBUG, TRITON_DEFAULT_FP_FUSION, TRITON_F32_DEFAULT and DEUTERON_CHECK. Every launch asks for them."""
        numbers = _variable("TRITON_DEFAULT_FP_FUSION"), _variable("TRITON_F32_DEFAULT")
        return _variable("TRITON_DEBUG"), *numbers, _variable("DEUTERON_CHECK")

    @property
    def option_defaults(self) -> dict[str, bool | str]:
        """The options `debug`, `enable_fp_fusion` and `default_dot_input_precision` where the environment says them: of
        kernels that say nothing.
        """
        variables = {"debug": "TRITON_DEBUG", "enable_fp_fusion": "TRITON_DEFAULT_FP_FUSION"}
        said = {option: truth(text, name) for option, name in variables.items() if (text := _variable(name))}
        precision = (_variable("TRITON_F32_DEFAULT") or "").lower()
        return {**said, "default_dot_input_precision": precision} if precision else said

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
    def allow_non_constexpr_globals(self) -> bool:
        """TRITON_ALLOW_NON_CONSTEXPR_GLOBALS: kernels may use any global, with the value that it has when they are
        compiled; a launch after it has changed is an error, as with constexprs."""
        return _flag("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")

    @property
    def front_end_debugging(self) -> bool:
        """DEUTERON_FRONT_END_DEBUGGING (or TRITON_FRONT_END_DEBUGGING): tracebacks show the frames of Deuteron too."""
        return _flag("DEUTERON_FRONT_END_DEBUGGING", "TRITON_FRONT_END_DEBUGGING")

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
