"""A library for the CPU and for GPUs: the stream says which. Its kernels are made up and say that they were called."""

import dataclasses
import subprocess
from pathlib import Path

import pytest
from aot.workspace import C99, Program

from deuteron.aot.link import group
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.library.c_code import library_chooser
from deuteron.library.manifest import Entry, Manifest
from deuteron.library.report import findings, rows_of
from deuteron.library.staleness import Sources

PARAMS = (ParamRecord("x", "x", "*fp16", 16, None), ParamRecord("n", "n", "i32", None, None))
CPU = KernelRecord(
    kernel="add",
    out_name="add",
    hash="00000001",
    suffix="0d1",
    digest="0123456789ab",
    deuteron="0.1.0",
    source="89ab",
    target="cpu:x86-64-v3",
    device_rank=13,
    num_warps=4,
    num_stages=3,
    num_ctas=1,
    extras=("cpu:x86-64-v3",),
    grid="n",
    params=PARAMS,
)
GPUS = [
    dataclasses.replace(CPU, hash=f"000000{c}", target=f"cuda:{c}", device_rank=c, extras=(f"cuda:{c}",))
    for c in (80, 90)
]
# The functions of the kernels, which say that they were called; that for 9.0 is on a device that is not there.
KERNELS = """
#include "lib.h"
#include <stdio.h>
#define KERNEL(name, status) \\
  DEUTERON_API deuteron_status name(deuteron_stream stream, deuteron_ptr x, int32_t n) \\
      DEUTERON_SYMBOL("deuteron_0123456789ab_" #name); \\
  DEUTERON_API deuteron_status load_##name(void) DEUTERON_SYMBOL("deuteron_0123456789ab_load_" #name); \\
  DEUTERON_API deuteron_status unload_##name(void) DEUTERON_SYMBOL("deuteron_0123456789ab_unload_" #name); \\
  DEUTERON_API deuteron_status supports_##name(void) DEUTERON_SYMBOL("deuteron_0123456789ab_supports_" #name); \\
  deuteron_status name(deuteron_stream stream, deuteron_ptr x, int32_t n) { \\
    (void)stream, (void)x, (void)n; \\
    printf(#name " "); \\
    return status; \\
  } \\
  deuteron_status supports_##name(void) { return status; } \\
  deuteron_status load_##name(void) { printf("load " #name " "); return status; } \\
  deuteron_status unload_##name(void) { printf("unload " #name " "); return status; }
"""
CALLS = """
#include "lib.h"
#include <stdio.h>

int main(void) {
  static char x[64] __attribute__((aligned(64)));
  int other;
  deuteron_stream streams[3];
  int i;
  streams[0] = DEUTERON_CPU, streams[1] = NULL, streams[2] = &other;
  for (i = 0; i < 3; i++)
    printf("%d ", add_default(streams[i], x, 1));
  printf("%d %d ", add_default(streams[0], x + 2, 1), add_default(streams[1], x + 2, 1));
  printf("%d %d\\n", load_add(streams[0]), load_add(streams[2]));
  for (i = 0; i < 3; i++) {
    const char *reason;
    printf("supports %d ", add_supports(streams[i], x, 1, 0, &reason));
    printf("%d ", add_supports(streams[i], x + 2, 1, DEUTERON_ANY_ALGO, &reason));
    printf("%s\\n", reason);
  }
  return 0;
}
"""
EXPECTED = {
    "both": "add_00000001_0d1 0 add_00000090_0d1 add_00000080_0d1 0 add_00000090_0d1 add_00000080_0d1 0 1 1 "
    "load add_00000001_0d1 load add_00000090_0d1 load add_00000080_0d1 0 0\n",
    "cpu": "add_00000001_0d1 0 add_00000001_0d1 0 209 1 1 load add_00000001_0d1 0 209\n",
    "cuda": "209 add_00000090_0d1 add_00000080_0d1 0 add_00000090_0d1 add_00000080_0d1 0 209 1 "
    "load add_00000090_0d1 load add_00000080_0d1 209 0\n",
}


UNALIGNED, NONE = "1001 x is not divisible by 16", "209 there is no kernel for this device"
SUPPORTED = {
    "both": f"supports 0 {UNALIGNED}\n" * 3,
    "cpu": f"supports 0 {UNALIGNED}\nsupports 0 {UNALIGNED}\nsupports 209 {NONE}\n",
    "cuda": f"supports 209 {NONE}\nsupports 0 {UNALIGNED}\nsupports 0 {UNALIGNED}\n",
}


def records(kind: str) -> list[KernelRecord]:
    return {"both": [CPU, *GPUS], "cpu": [CPU], "cuda": GPUS}[kind]


@pytest.mark.parametrize("kind", EXPECTED)
def test_the_stream_chooses_the_device(kind: str, tmp_path: Path):
    functions = group(records(kind))
    chooser = library_chooser("lib", functions)
    (tmp_path / "lib.h").write_text(chooser.header())
    (tmp_path / "lib.c").write_text(chooser.source())
    macros = (f"KERNEL({r.function}, {209 if r.target == 'cuda:90' else 0})" for r in records(kind))
    names = (tmp_path / "status.c", tmp_path / "kernels.c", tmp_path / "main.c")
    status = (Path(__file__).parents[2] / "src/deuteron/aot/runtime/status.c").read_text()
    texts = (
        '#include "lib.h"\n' + "".join(line for line in status.splitlines(True) if not line.startswith('#include "')),
        KERNELS + "\n".join(macros) + "\n",
        CALLS,
    )
    for name, text in zip(names, texts, strict=True):
        name.write_text(text)
    command = [*C99, *tmp_path.glob("*.c"), "-o", tmp_path / "program"]
    subprocess.run(command, check=True)
    first, supported = Program(tmp_path / "program").run().split("\n", 1)
    assert sorted(first.split()) == sorted(EXPECTED[kind].split()) and supported == SUPPORTED[kind]


def test_findings():
    spilling = dataclasses.replace(
        GPUS[0], shared=50_000, resources={"registers": 255, "spill_bytes": 16, "warnings": ["x (C7514) y"]}
    )
    entries = tuple(Entry("", "", "add", 100, Sources(), {}, record) for record in (CPU, spilling))
    rows = rows_of(Manifest("lib", "lib", "0.1.0", "", {}, {}, entries), {})
    where = "add (4 warps, 3 stages) for cuda:80"
    assert findings(rows, {"spill"}) == [f"{where} spills 16 bytes a thread"]
    assert findings(rows, {"wgmma"}) == [f"{where}: x (C7514) y"]
    assert findings(rows, {"shared"}) == [f"{where} needs 50000 bytes of shared memory"]
    assert findings(rows, set()) == []
