"""The groups of knobs, with Triton's names and variables.

    cache.dir           TRITON_CACHE_DIR, and DEUTERON_CACHE_DIR before it
    runtime.debug       TRITON_DEBUG
    runtime.jit_post_compile_hook, launch_enter_hook ...    hooks, which the runtime calls

What has `effect=False` is there because programs set it, and changes nothing in Deuteron.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deuteron.knobs.hooks import HookChain
from deuteron.knobs.variables import base_knobs, env_bool, env_class, env_int, env_opt_bool, env_opt_str, env_str
from deuteron.settings import settings

ignored_bool = partial(env_bool, effect=False)
ignored_opt_bool = partial(env_opt_bool, effect=False)
ignored_str = partial(env_opt_str, effect=False)


def _in_home(name: str) -> str:
    """A folder of Triton's, such as `~/.triton/dump`."""
    return os.path.join(settings.triton_home or os.path.expanduser("~/"), ".triton", name)


class build_knobs(base_knobs):
    """What Triton compiles its launchers with; Deuteron's are made by LLVM."""

    cc = ignored_str("CC")
    cudacrt_path = ignored_str("TRITON_CUDACRT_PATH")
    cudart_path = ignored_str("TRITON_CUDART_PATH")
    impl = None

    @property
    def backend_dirs(self) -> set[str]:
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    """Where `triton.runtime.cache.RedisRemoteCacheBackend` would look; Deuteron has none."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}", effect=False)
    host = env_str("TRITON_REDIS_HOST", "localhost", effect=False)
    port = env_int("TRITON_REDIS_PORT", 6379, effect=False)


class cache_knobs(base_knobs):
    """Where compiled kernels are kept, and where `compilation.dump_ir` and `.override` write and read texts."""

    home_dir = env_str("TRITON_HOME", lambda: os.path.expanduser("~/"))
    dir = env_str("TRITON_CACHE_DIR", lambda: str(settings.cache_dir), own="DEUTERON_CACHE_DIR")
    dump_dir = env_str("TRITON_DUMP_DIR", partial(_in_home, "dump"), own="DEUTERON_DUMP_DIR")
    override_dir = env_str("TRITON_OVERRIDE_DIR", partial(_in_home, "override"), own="DEUTERON_OVERRIDE_DIR")
    # For programs that keep files of their own: Deuteron keeps its kernels in `dir`.
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")


class compilation_knobs(base_knobs):
    """How kernels are compiled. `listener(src, metadata, metadata_group, times, cache_hit)` is told of each."""

    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    always_compile = env_bool("TRITON_ALWAYS_COMPILE", own="DEUTERON_ALWAYS_COMPILE")
    store_binary_only = ignored_bool("TRITON_STORE_BINARY_ONLY")
    use_ir_loc = ignored_str("USE_IR_LOC")
    dump_ir_extract_di_local_variables = ignored_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    enable_asan = ignored_bool("TRITON_ENABLE_ASAN")
    disable_line_info = ignored_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING", own="DEUTERON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    enable_experimental_consan = ignored_bool("TRITON_ENABLE_EXPERIMENTAL_CONSAN")
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "", effect=False)
    listener: Callable[..., None] | None = None


class autotuning_knobs(base_knobs):
    """How configurations are chosen. `listener(fn=, key=, best_config=, configs_timings=, duration=, cache_hit=)` is
    told of each choice."""

    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    print = env_bool("TRITON_PRINT_AUTOTUNING", own="DEUTERON_PRINT_AUTOTUNING")
    listener: Callable[..., None] | None = None


class runtime_knobs(base_knobs):
    """Launching. Hooks that are chains have `add` and `remove`; any of them can be set to a function, or to None.

    launch_enter_hook(metadata), launch_exit_hook(metadata): before and after every launch, where `metadata.get()` is a
        dictionary with `name`, `function`, `stream`, and what the kernel's own `launch_metadata` returns.
    kernel_load_start_hook, kernel_load_end_hook, kernel_unload_hook (module, function, name, metadata_group, hash):
        around loading code, and before a kernel lets go of it.
    jit_cache_hook, jit_post_compile_hook (key=, repr=, fn=, compile=, is_manual_warmup=, already_compiled=): before and
        after a kernel is compiled, or read from the cache on disk, for new types. Where the first returns something
        true, nothing is compiled and nothing is launched.
    add_stages_inspection_hook (backend, stages, options, language, capability): before the stages of a compile, to look
        at what they make, or to change it; without arguments it returns a text that is part of the key of the compile,
        and its hash (`compiler/inspection.py`).
    """

    interpret = env_bool("TRITON_INTERPRET", own="DEUTERON_INTERPRET")
    debug = env_bool("TRITON_DEBUG")
    sanitize_overflow = ignored_bool("TRITON_SANITIZE_OVERFLOW")
    override_arch = ignored_str("TRITON_OVERRIDE_ARCH")
    launch_enter_hook: Any = None
    launch_exit_hook: Any = None
    kernel_load_start_hook: Any = None
    kernel_load_end_hook: Any = None
    kernel_unload_hook: Any = None
    jit_cache_hook: Callable[..., Any] | None = None
    jit_post_compile_hook: Callable[..., Any] | None = None
    add_stages_inspection_hook: Callable[..., Any] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.launch_enter_hook, self.launch_exit_hook = HookChain(), HookChain(reversed=True)
        self.kernel_load_start_hook, self.kernel_load_end_hook = HookChain(), HookChain(reversed=True)
        self.kernel_unload_hook = HookChain()
        self.jit_cache_hook = self.jit_post_compile_hook = self.add_stages_inspection_hook = None


class language_knobs(base_knobs):
    """What kernels mean."""

    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)


class Tool(NamedTuple):
    """A program of the CUDA toolkit."""

    path: str
    version: str | None = None


def _ptxas() -> Tool | None:
    from deuteron.backend.cuda.assembler.toolkit import find_tool  # deferred: a look-up of packages

    found = find_tool("ptxas")
    return Tool(str(found)) if found else None


class _PtxasKnob(env_opt_str):
    """The path of ptxas, given as a text and read as a Tool."""

    def __get__(self, group: Any, owner: type | None = None) -> Any:
        found = super().__get__(group, owner)
        return Tool(str(found)) if isinstance(found, str | Path) else found


class nvidia_knobs(base_knobs):
    """NVIDIA's tools."""

    ptxas = _PtxasKnob("TRITON_PTXAS_PATH", _ptxas, own="DEUTERON_PTXAS")
    ptxas_options = ignored_str("PTXAS_OPTIONS")
    dump_nvptx = ignored_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = ignored_bool("DISABLE_PTXAS_OPT")
    mock_ptx_version = ignored_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = ignored_bool("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = ignored_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = ignored_str("TRITON_LIBCUDA_PATH")


class amd_knobs(base_knobs):
    """AMD's GPUs, which Deuteron does not compile for."""

    use_buffer_ops = ignored_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = ignored_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    dump_amdgcn = ignored_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = ignored_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = ignored_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = ignored_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = ignored_opt_bool("TRITON_HIP_USE_ASYNC_COPY")
    global_prefetch = env_int("TRITON_HIP_GLOBAL_PREFETCH", effect=False)
    local_prefetch = env_int("TRITON_HIP_LOCAL_PREFETCH", effect=False)


class proton_knobs(base_knobs):
    """Triton's profiler, of which Deuteron has sessions and scopes (compat/proton.py)."""

    disable = env_bool("PROTON_DISABLE")
    enable_nvtx = ignored_bool("TRITON_ENABLE_NVTX", True)
    cupti_lib_dir = ignored_str("TRITON_CUPTI_LIB_PATH")
