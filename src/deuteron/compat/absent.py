"""What there is not below `triton`, and what to do instead.

why("triton.ops.matmul")                     ": Triton took its ready-made kernels out in 3.0; ..."
why("triton.testing.cuda_memcheck")          ": DEUTERON_CHECK=bounds ..."
message("triton.language.core", "extrn")     "Deuteron has no 'triton.language.core.extrn'"

The reason of a module holds for the names in it and below, that of a name goes before.
"""

from __future__ import annotations

_BACKENDS = "backends are not loaded from packages; docs/add-a-target.md says what a target takes"
_LAUNCHERS = "launches are machine code of Deuteron's own; kernel[grid](...), or emitted C, launch a kernel"
_FRONTEND = "Deuteron has a frontend of its own; triton.compile(ASTSource(fn, signature)).asm['ttir'] has what it makes"
_INTERPRETER = "Deuteron's interpreter is another; DEUTERON_INTERPRET=1 runs kernels in it"
_OPS_OF_TRITON = "it makes ops of Triton's own compiler; call functions of the language with _semantic=_semantic"
_HIP = "it is for AMD's GPUs, which Deuteron has not; triton.language.extra.libdevice is for every target"
_ASCEND = "it is for Ascend's processors, which Deuteron has not; triton.language.extra.libdevice is for every target"
_OLD_DESCRIPTORS = (
    "it is of Triton 3.0 to 3.3; pass triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(x, block)"
)

REASONS = {
    "triton.ops": "Triton took its ready-made kernels out in 3.0; they are in the package kernels of its repository",
    "triton.experimental": "it is of Triton's own compiler",
    "triton.experimental.gluon": "Gluon is a language of its own, which Deuteron does not have",
    "triton.profiler": "of Proton there are sessions, scopes and the viewer's parse and print_tree; "
    "knobs.runtime.launch_enter_hook is called for every launch",
    "triton.profiler.language": "nothing is timed within kernels; tl.extra.cuda.globaltimer() reads the clock",
    "triton._C.libtriton.amd": _HIP,
    "triton._C": "it is Triton's own compiler in C++",
    "triton._filecheck": "it checks texts of MLIR; Deuteron's tests use the package filecheck",
    "triton._instrumentation": _OPS_OF_TRITON,
    "triton._internal_testing": "of the helpers of Triton's own tests there are those that ask for the target",
    "triton.backends": _BACKENDS,
    "triton.backends.amd": _HIP,
    "triton.backends.driver": _LAUNCHERS,
    "triton.backends.nvidia.driver": _LAUNCHERS,
    "triton.backends.nvidia.compiler": "it is Triton's own compiler; deuteron.compiler has the stages of Deuteron's",
    "triton.compiler.code_generator": _FRONTEND,
    "triton.compiler.make_launcher": _LAUNCHERS,
    "triton.compiler.compiler.AttrsDescriptor": "it is of Triton 3.0 to 3.2, whose Inductor wrote it; attrs are "
    "dictionaries now: {(0,): [['tt.divisibility', 16]]}",
    "triton.compiler.compiler.instance_descriptor": "it is of Triton 2.1, whose Inductor wrote it",
    "triton.backends.compiler.AttrsDescriptor": "it is of Triton 3.2, whose Inductor wrote it; attrs are dictionaries "
    "now: {(0,): [['tt.divisibility', 16]]}",
    "triton.language.core.dispatch": "call core.extern_elementwise(...), which dispatches",
    "triton.language.core.binary_op_type_legalization": "operators convert their operands themselves",
    "triton.language.core.nv_tma_desc_type": _OLD_DESCRIPTORS,
    "triton.language._experimental_reinterpret_tensor_descriptor": _OLD_DESCRIPTORS,
    "triton.language.math": "the functions are there; what Triton makes them of is not",
    "triton.language.semantic": _OPS_OF_TRITON,
    "triton.language.extra.hip": _HIP,
    "triton.language.extra.amd": _HIP,
    "triton.language.extra.ascend": _ASCEND,
    "triton.language.extra.cann": _ASCEND,
    "triton.language.extra.intel": "it is for Intel's GPUs, which Deuteron has not; triton.language.extra.libdevice is "
    "for every target",
    "triton.language.extra.tlx": "it is a language of Meta's Triton; tl.range(..., num_stages=n) is pipelined",
    "triton.runtime.build": "kernels need no C compiler; deuteron compile and deuteron link make C libraries",
    "triton.common.build": "kernels need no C compiler; deuteron compile and deuteron link make C libraries",
    "triton.runtime.interpreter": _INTERPRETER,
    "triton.testing.cuda_memcheck": "DEUTERON_CHECK=bounds, and the emulator, check the accesses of every kernel",
    "triton.testing.cublas": "torch.matmul calls it",
    "triton.tools.LinearLayout": "deuteron.layout.linear has the layouts of Deuteron",
    "triton.tools.compile": "the command is `deuteron compile`, see docs/aot.md",
    "triton.tools.link": "the command is `deuteron link`, see docs/aot.md",
    "triton.tools.build_extern": "functions of libdevice are in triton.language.extra.libdevice, others are not linked",
}


def why(name: str) -> str:
    """The reason why there is no module or name, with the way out; empty where none is known."""
    while name:
        if name in REASONS:
            return f": {REASONS[name]}"
        name = name.rpartition(".")[0]
    return ""


def message(module: str, name: str) -> str:
    """What is said of a name that a module does not have. No other is guessed: Triton may have this one."""
    return f"Deuteron has no '{module}.{name}'{why(f'{module}.{name}')}"
