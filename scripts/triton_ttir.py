"""Triton's side of `check_ttir_with_triton.py` and of the fuzzer: runs in an environment that has Triton, not Deuteron.

    python scripts/triton_ttir.py parse build/ttir/parse.json    whether Triton's parser and verifier accept each text
    python scripts/triton_ttir.py make build/ttir/make.json      writes the ttir that Triton makes of each kernel
    python scripts/triton_ttir.py serve                          the latter for each line, a request; says "done"

A request has the `path` of a text, and that of the `answer`: what went wrong, nothing if all is well. To make a text it
names a `file`, a `kernel` of it, and what to compile that for. A kernel that says `import deuteron` gets Triton. Each
request is done in a process of its own, for Triton may abort.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # it warns where this is not said

try:
    import triton
    import triton.language
    from triton._C.libtriton import ir
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError as error:
    sys.exit(f"this needs an environment with Triton, which is not that of Deuteron: pip install triton ({error})")

TARGET = GPUTarget("cuda", 90, 32)
# What files with kernels import beside the language: for the tests that are in them as well.
FOREIGN = (
    *("tests.kernels", "tests.kernels.case", "ml_dtypes", "numpy"),
    *("deuteron.backend", "deuteron.backend.tensor_descriptor"),
)


def parse(request: dict[str, Any]) -> str | None:
    """What Triton's parser and verifier have to say against a text."""
    context = ir.context()
    ir.load_dialects(context)
    module = ir.parse_mlir_module(request["path"], context)
    module.context = context
    return None if module.verify() else "the verifier refuses it"


def make(request: dict[str, Any]) -> None:
    """Write the ttir of a kernel."""
    function = getattr(load(request["file"]), request["kernel"])
    while hasattr(function, "configs") or hasattr(function, "values"):  # the autotuner, the heuristics
        function = function.fn
    signature = {name: as_tuple(type) for name, type in request["signature"].items()}
    constexprs = {name: constant(value) for name, value in request["constexprs"].items()}
    attrs = {tuple(path): pairs for path, pairs in request["attrs"]}
    source = ASTSource(function, signature, constexprs, attrs)
    backend = backends["nvidia"].compiler(TARGET)
    options = backend.parse_options(request["options"])
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    target = [TARGET] if "target" in inspect.signature(source.make_ir).parameters else []  # since Triton 3.5
    module = source.make_ir(*target, options, functions, modules, context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    Path(request["path"]).write_text(str(stages["ttir"](module, {})))


def load(path: str) -> Any:
    """A file with kernels as a module, in which Deuteron is Triton."""
    for name, module in list(sys.modules.items()):
        if name == "triton" or name.startswith("triton."):
            sys.modules[name.replace("triton", "deuteron", 1)] = module
    sys.modules.update({name: MagicMock() for name in FOREIGN})
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def constant(value: Any) -> Any:
    """The value of a constexpr: a type of the language is `{"dtype": "float16"}`."""
    return getattr(triton.language, value["dtype"]) if isinstance(value, dict) else value


def as_tuple(type: Any) -> Any:
    return tuple(map(as_tuple, type)) if isinstance(type, list) else type


def answer(request: dict[str, Any], do: Any) -> None:
    try:
        message = do(request)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
    Path(request["answer"]).write_text(message or "")


def answer_in_child(request: dict[str, Any], do: Any) -> None:
    Path(request["answer"]).write_text("it ended the process")
    child = os.fork()
    if child == 0:
        answer(request, do)
        os._exit(0)
    os.waitpid(child, 0)


def serve() -> None:
    """Make texts until there are no more requests. What kernels print while they are compiled goes nowhere."""
    said = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        answer_in_child(json.loads(line), make)
        print("done", file=said, flush=True)


def main(command: str, requests: str | None = None) -> None:
    if command == "serve":
        serve()
        return
    do = {"parse": parse, "make": make}[command]
    for request in json.loads(Path(requests).read_text()):
        answer_in_child(request, do)


if __name__ == "__main__":
    main(*sys.argv[1:])
