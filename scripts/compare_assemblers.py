"""PTX to cubin by ptxas, as a process, and by nvJitLink, in this one: time, registers, spills, code.

    pip install nvidia-nvjitlink
    python scripts/compare_assemblers.py assemblers.json dumps/*.ptx

Needs no GPU. nvJitLink is called through ctypes, with the options that ptxas gets; its report of resources
(`-Xptxas=-v`) is read as that of ptxas is. Code is compared as the bytes of the sections of instructions.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import sys
import time
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from deuteron.backend.cuda.assembler.ptxas import assemble

_PTX_INPUT = 2
_TARGET = re.compile(r"\.target\s+(\w+)")


class NvJitLink:
    """The library of the wheel `nvidia-nvjitlink`."""

    def __init__(self) -> None:
        folders = getattr(find_spec("nvidia"), "submodule_search_locations", ())
        path = next((path for folder in folders for path in Path(folder).glob("*/lib/libnvJitLink.so.*")), None)
        if path is None:
            sys.exit("this needs nvJitLink: pip install nvidia-nvjitlink")
        self.library, self.path = ctypes.CDLL(str(path)), path

    def _function(self, name: str):
        """Its functions have a version in their names: `__nvJitLinkCreate_13_0`, beside the plain one."""
        return getattr(self.library, name)

    def assemble(self, ptx: str, name: str) -> tuple[bytes, str]:
        """The cubin, and what the library says."""
        options = [f"-arch={name}", "-Xptxas=-v", "-lineinfo", "-verbose"]
        texts = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        handle = ctypes.c_void_p()
        self._check(self._function("nvJitLinkCreate")(ctypes.byref(handle), len(options), texts), handle)
        try:
            content = ptx.encode() + b"\0"
            add = self._function("nvJitLinkAddData")
            self._check(add(handle, _PTX_INPUT, content, ctypes.c_size_t(len(content)), b"kernel.ptx"), handle)
            self._check(self._function("nvJitLinkComplete")(handle), handle)
            return self._read(handle, "LinkedCubin"), self._read(handle, "InfoLog").decode()
        finally:
            self._function("nvJitLinkDestroy")(ctypes.byref(handle))

    def _read(self, handle: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._function(f"nvJitLinkGet{what}Size")(handle, ctypes.byref(size))
        content = ctypes.create_string_buffer(max(size.value, 1))
        self._function(f"nvJitLinkGet{what}")(handle, content)
        return content.raw[: size.value]

    def _check(self, status: int, handle: ctypes.c_void_p) -> None:
        if status:
            raise RuntimeError(f"nvJitLink: status {status}: {self._read(handle, 'ErrorLog').decode()}")


def instructions(cubin: bytes) -> bytes:
    """The content of the sections `.text.*` of an ELF file of 64 bits."""
    (offset,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names_index = struct.unpack_from("<HHH", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, offset + size * index) for index in range(count)]
    names = headers[names_index][4]

    def name(header: tuple[int, ...]) -> bytes:
        begin = names + header[0]
        return cubin[begin : cubin.index(b"\0", begin)]

    return b"".join(cubin[h[4] : h[4] + h[5]] for h in headers if name(h).startswith(b".text."))


def counts(report: str) -> dict[str, int]:
    patterns = {"registers": r"Used (\d+) registers", "spill_stores": r"(\d+) bytes spill stores"}
    found = {key: re.search(pattern, report) for key, pattern in patterns.items()}
    return {key: int(match[1]) for key, match in found.items() if match}


def compare(path: Path, linker: NvJitLink) -> dict[str, object]:
    ptx = path.read_text()
    name = _TARGET.search(ptx)[1]
    begin = time.perf_counter(), time.process_time()
    cubin = assemble(ptx, name)
    middle = time.perf_counter(), time.process_time()
    image, report = linker.assemble(ptx, name)
    end = time.perf_counter(), time.process_time()
    return {
        "kernel": path.stem,
        "target": name,
        "ptxas seconds": middle[0] - begin[0],
        "nvJitLink seconds": end[0] - middle[0],
        "nvJitLink CPU seconds": end[1] - middle[1],
        "same instructions": instructions(cubin.image) == instructions(image),
        "ptxas": {**asdict(cubin.resources), "bytes": len(cubin.image), "messages": cubin.messages},
        "nvJitLink": {**counts(report), "bytes": len(image), "report": report.strip()},
    }


def main() -> None:
    linker = NvJitLink()
    rows = []
    for path in map(Path, sys.argv[2:]):
        rows.append(compare(path, linker))
        row = rows[-1]
        print(
            path.stem,
            *(row[key] for key in ("ptxas seconds", "nvJitLink seconds", "same instructions")),
            file=sys.stderr,
        )
    Path(sys.argv[1]).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
