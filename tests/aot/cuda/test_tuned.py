"""The default by what was measured, for each architecture, and what can be asked, with the fake driver."""

import json

import pytest
from aot.cuda.fake_gpu import SANITIZED, FakeGpu

from deuteron.aot.link import link_kernels
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into


def choice(capability: int, n: int, fastest: int) -> Choice:
    configs = [json.dumps({"BLOCK": block, "num_warps": 4, "num_stages": 3, "num_ctas": 1}) for block in (128, 256)]
    outcomes = {config: Outcome(1.0 if i == fastest else 2.0) for i, config in enumerate(configs)}
    return Choice(f"cuda:{capability}, 132 multiprocessors", "s", "c", {"n": n}, {"x": "fp32"}, outcomes)


@pytest.fixture
def tuned(gpu: FakeGpu) -> dict[str, str]:
    """Two algorithms for 8.0 and 9.0; the functions of all kernels by what they are."""
    kernels = {}
    for block in (128, 256):
        for arch in (80, 90):
            header = gpu.emit_cuda(f"*fp32, fp32, i32, {block}", "1", f"cuda:{arch}")
            kernels[header.stem.split(".")[1].split("_")[0]] = f"{block} for {arch}"
    path = gpu.folder / "tuned.json"
    merge_into(path, "m.add", [choice(80, 100, 1), choice(90, 100, 0), choice(90, 6400, 1)])
    link_kernels(gpu.headers, gpu.folder / "linked", [path])
    return kernels


def test_each_architecture_has_its_own(gpu: FakeGpu, tuned: dict[str, str]):
    body = """
  static const int found[] = {80, 86, 90, 75, 100, 0};
  static const int sizes[] = {100, 5000};
  int i, k;
  devices(found);
  for (i = 0; i < 5; i++)
    for (k = 0; k < 2; k++) {
      reset();
      use_device(i);
      const int status = (int)add_alpha_default(NULL, 0, 0, sizes[k]);
      const char *launched = strstr(calls(), "add_alpha_");
      printf("%d %.8s\\n", status, launched ? launched + 10 : "-");
    }
"""
    lines = [line.split() for line in gpu.program(body, flags=SANITIZED).run().splitlines()]
    found = [tuned.get(function, "-") for _, function in lines]
    assert found == ["256 for 80"] * 4 + ["128 for 90", "256 for 90"] + ["-"] * 4
    assert [status for status, _ in lines] == ["0"] * 6 + ["209"] * 4


def test_what_a_device_supports_is_asked_without_loading(gpu: FakeGpu, tuned: dict[str, str]):
    body = """
  static const int found[] = {90, 75, 0};
  int i;
  devices(found);
  for (i = 0; i < 2; i++) {
    const char *reason;
    use_device(i);
    printf("%d ", (int)add_alpha_supports(NULL, 0, 0, 5, DEUTERON_ANY_ALGO, &reason));
    printf("%s|", reason);
  }
  printf("%d %d", strstr(calls(), "cuLibraryLoadData") != NULL, strstr(calls(), "cuLaunchKernel") != NULL);
"""
    assert gpu.program(body).run() == "0 |209 there is no kernel for this device|0 0"


def test_without_a_driver_the_status_says_so(gpu: FakeGpu, tuned: dict[str, str]):
    body = """
  const char *reason;
  const int status = (int)add_alpha_supports(NULL, 0, 0, 5, 0, &reason);
  printf("%d %s %d", status, reason, (int)add_alpha_default(NULL, 0, 0, 5));
"""
    program = gpu.program(f"int main(void) {{{body}  return 0;\n}}\n")
    assert program.run(LD_LIBRARY_PATH="/nowhere") == "35 no driver 35"
