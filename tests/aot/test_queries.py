"""In C, on the CPU: algorithms by their values, whether one takes given arguments, the default by what was measured."""

import json
from pathlib import Path

import pytest
from aot.test_dispatch import mark
from aot.workspace import C99, CXX17, Parameter, Workspace
from hypothesis import given, settings
from hypothesis import strategies as st

from deuteron.aot.link import link_kernels
from deuteron.aot.templates import runtime_source
from deuteron.aot.tuned import logarithm
from deuteron.errors import UsageError
from deuteron.runtime.autotuning.tuned_file import Choice, Outcome, merge_into

PARAMS = (
    *(Parameter("x"), Parameter("n"), Parameter("BLOCK", True)),
    *(Parameter("ACTIVATION", True), Parameter("EVEN", True), Parameter("SCALE", True)),
)
ALGORITHMS = ("128, 'relu', True, 0.5", "256, 'relu', False, 0.5", "256, None, False, 2")
SIGNATURES = [f"*fp32{hint}, i32, {values}" for values in ALGORITHMS for hint in (":16", "")]
WARPS = {"num_warps": 1, "num_stages": 3, "num_ctas": 1}


def emit(workspace: Workspace, signatures: list[str], tuned: tuple[Path, ...] = ()) -> None:
    headers = [workspace.emit(mark(i + 1), signature, "1", PARAMS) for i, signature in enumerate(signatures)]
    link_kernels(headers, workspace.folder / "linked", tuned)


SELECT = r"""
#include "linked.h"
#include <stdio.h>

#define ANY DEUTERON_ANY

static void show(int64_t block, const char *activation, int64_t even, double scale, int64_t warps) {
  printf("%d ", add_alpha_select(block, activation, even, scale, warps, ANY));
}

int main(void) {
  show(256, NULL, ANY, ANY, ANY);
  show(ANY, "None", ANY, ANY, ANY);
  show(ANY, "relu", 0, 0.5, 1);
  show(512, NULL, ANY, ANY, ANY);
  show(ANY, "gelu", ANY, ANY, ANY);
  show(ANY, NULL, ANY, 2, ANY);
  show(ANY, NULL, ANY, ANY, 4);
  return 0;
}
"""


@pytest.mark.parametrize("compiler", [C99, CXX17])
def test_algorithms_by_their_values(workspace: Workspace, compiler: list[str]):
    emit(workspace, SIGNATURES)
    assert workspace.build(SELECT, compiler).run() == "1 2 1 -1 -1 2 -1 "


SUPPORTS = r"""
#include "linked.h"
#include <stdio.h>

static void ask(float *x, int32_t n, int algo_id) {
  const char *reason;
  const deuteron_status status = add_alpha_supports(NULL, x, n, algo_id, &reason);
  printf("%d %s | %s\n", (int)status, deuteron_status_string(status), reason);
}

int main(void) {
  static float x[8] __attribute__((aligned(16)));
  ask(x, 3, 0);
  ask(x + 1, 1, 0);
  ask(x, 5, 1);
  ask(x, 1, 1);
  ask(x, 1, 7);
  ask(x, 1, -1); /* what select says where there is none */
  ask(x + 1, 16, DEUTERON_ANY_ALGO);
  ask(x + 1, 1, DEUTERON_ANY_ALGO);
  printf("%d\n", (int)add_alpha_supports(NULL, x, 3, 0, NULL));
  return 0;
}
"""


def test_why_nothing_takes_the_arguments(workspace: Workspace):
    emit(workspace, ["*fp32:16, i32, 128, 1, 1, 1", "*fp32:16, i32:16, 128, 1, 1, 1", "*fp32, i32:1, 256, 1, 1, 1"])
    none = "1001 no kernel for these arguments"
    assert workspace.build(SUPPORTS).run().splitlines() == [
        "0 success | ",
        f"{none} | x is not divisible by 16",
        f"{none} | n is not 1",
        "0 success | ",
        "1 invalid value | there is no algorithm of this number",
        "1 invalid value | there is no algorithm of this number",
        f"{none} | n is not 1",
        "0 success | ",
        "0",
    ]


GRIDS = r"""
#include "linked.h"
#include <stdio.h>

int main(void) {
  static float x[1];
  const int32_t sizes[] = {1, 65535, 65536, 3, 0, -1};
  const char *reason;
  for (int i = 0; i < 6; i++)
    for (int algo_id = 0; algo_id < 2; algo_id++) {
      const int asked = (int)add_alpha_supports(NULL, x, sizes[i], algo_id, &reason);
      printf("%d %d %s\n", asked, (int)add_alpha(NULL, x, sizes[i], algo_id), reason);
    }
  return 0;
}
"""


def test_why_a_grid_is_not_launched(workspace: Workspace):
    """What is said of the arguments is what comes of the launch."""
    grids = {"128": "1, n", "256": "cdiv(BLOCK, n - 3), ONE"}
    params = (*PARAMS[:3], Parameter("ONE"))
    headers = [workspace.emit(mark(1), f"*fp32, i32, {block}, i32:1", grid, params) for block, grid in grids.items()]
    link_kernels(headers, workspace.folder / "linked")
    program = workspace.build(GRIDS.replace("sizes[i], algo_id", "sizes[i], 1, algo_id"), CXX17)
    fits, large = "0 0 ", "1001 1 the grid is larger than 2147483647 x 65535 x 65535"
    zero = "1001 1 the grid divides by zero, or has a number of more than 64 bits"
    expected = [*(fits, fits), *(fits, fits), *(large, fits), *(fits, zero), *(fits, fits), *(fits, fits)]
    assert program.run().splitlines() == expected


def test_a_processor_that_no_kernel_is_for(workspace: Workspace):
    header = workspace.emit(mark(1), "*fp32:16, i32, 128, 1, 1, 1", "1", PARAMS, target="cpu:diamondrapids")
    source = header.with_suffix(".c")
    source.write_text(source.read_text().replace("{0x7, 0, 1, 5, 0x6}", "{0x7, 0, 1, 5, 0x80000000}"))
    link_kernels([header], workspace.folder / "linked")
    lines = workspace.build(SUPPORTS).run().splitlines()
    assert lines[:2] == ["209 unsupported device | there is no kernel for this device"] * 2 and lines[-1] == "209"


# By what was measured.


def choice(key: dict, fastest: int, device: str = "cpu:znver3, 2 threads", **others) -> Choice:
    values = [
        {"BLOCK": block, "ACTIVATION": "relu", "EVEN": block == 128, "SCALE": 0.5, **WARPS} for block in (128, 256)
    ]
    times = {json.dumps(config): Outcome([1.0 if i == fastest else 2.0]) for i, config in enumerate(values)}
    times[json.dumps({**values[0], "BLOCK": 1024})] = Outcome([0.1])  # no algorithm of the library
    times[json.dumps({**values[0], "BLOCK": 64})] = Outcome(failure="it spills 8 bytes")
    return Choice(device, "6f1c", "0.1.0 91ab", key, {"x": "fp32"}, {**times, **others})


DEFAULT = r"""
#include "linked.h"
#include <stdio.h>
#include <stdlib.h>

static float memory[8] __attribute__((aligned(16)));

int main(int argc, char **argv) {
  int i;
  for (i = 1; i < argc; i++) {
    float *x = memory + (argv[i][0] == '/');
    x[0] = 0;
    deuteron_status status = add_alpha_default(NULL, x, atoi(argv[i] + (argv[i][0] == '/')));
    printf("%d ", status == DEUTERON_SUCCESS ? (int)x[0] : -(int)status);
  }
  return 0;
}
"""


@pytest.mark.parametrize("compiler", [C99, CXX17])
def test_the_default_is_what_was_fastest_for_the_nearest_size(workspace: Workspace, compiler: list[str]):
    path = workspace.folder / "tuned.json"
    merge_into(path, "m.add", [choice({"n": 100}, 1), choice({"n": 1000}, 0), choice({"n": 64000}, 1)])
    emit(workspace, SIGNATURES[::2], (path,))
    sizes = ["100", "1000", "64000", "300", "330", "8000", "8200", "0", "-5", "2147483647"]
    assert workspace.build(DEFAULT, compiler).run(*sizes) == "2 1 2 2 1 1 2 2 2 2 "
    assert "the fastest, by n" in (workspace.folder / "linked.h").read_text()


def test_where_the_fastest_has_no_kernel_for_the_arguments_another_has(workspace: Workspace):
    path = workspace.folder / "tuned.json"
    merge_into(path, "m.add", [choice({"n": 100}, 0)])
    emit(workspace, [SIGNATURES[0], SIGNATURES[2], SIGNATURES[5]], (path,))
    program = workspace.build(DEFAULT)
    assert program.run("100", "/100") == "1 3 "
    assert "the fastest, by n" in (workspace.folder / "linked.h").read_text()


def test_without_a_row_for_the_device_it_is_the_first(workspace: Workspace):
    path = workspace.folder / "tuned.json"
    merge_into(path, "m.add", [choice({"n": 100}, 1, "cuda:90, 132 multiprocessors")])
    emit(workspace, SIGNATURES[::2], (path,))
    assert workspace.build(DEFAULT).run("100") == "1 "


def test_a_choice_without_a_key_holds_for_all_sizes(workspace: Workspace):
    path = workspace.folder / "tuned.json"
    merge_into(path, "m.add", [choice({}, 1)])
    emit(workspace, SIGNATURES[::2], (path,))
    assert workspace.build(DEFAULT).run("100", "7") == "2 2 "


def test_a_constexpr_in_the_key_is_a_value_of_the_algorithm(workspace: Workspace):
    path = workspace.folder / "tuned.json"
    configs = {json.dumps({"BLOCK": 256, **WARPS}): Outcome(1.0)}
    keys = ({"n": 64, "ACTIVATION": None}, {"n": 4096, "ACTIVATION": "relu"})
    about = ("cpu:znver3", "6f1c", "0.1.0")
    merge_into(path, "m.add", [Choice(*about, key, {"x": "fp32"}, configs) for key in keys])
    emit(workspace, SIGNATURES[::2], (path,))
    assert workspace.build(DEFAULT).run("64", "4096") == "3 2 "


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([], "the timings of m.add, with nothing, are not for the types of add_alpha"),
        ([Choice("cpu", "s", "c", {}, {"x": "fp16"})], "with x: fp16, are not for the types of add_alpha"),
        (
            [Choice("cpu", "s", "c", {}, {"x": "fp32"}, {'{"BLOCK": 8}': Outcome(1.0)})],
            '{"BLOCK": 8}. Compile it for these',
        ),
        ([choice({"x": 3}, 0)], "'x' of the tuned key is no whole parameter of add_alpha, or is 3"),
        ([choice({"n": 3.5}, 0)], "'n' of the tuned key is no whole parameter of add_alpha, or is 3.5"),
        ([choice({"n": 3}, 0), choice({}, 0)], "add_alpha is tuned by n and by nothing: it needs one key"),
        ([choice({"n": 3}, 0, "xpu:1")], "timings of 'xpu:1' are of no device that is known"),
    ],
)
def test_timings_that_say_nothing(workspace: Workspace, choices: list[Choice], message: str):
    path = workspace.folder / "tuned.json"
    merge_into(path, "m.add", choices)
    with pytest.raises(UsageError) as caught:
        emit(workspace, SIGNATURES[::2], (path,))
    assert message in str(caught.value) and not (workspace.folder / "linked.c").exists()


@given(st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1))
@settings(max_examples=50)
def test_logarithms_are_of_the_order_of_sizes(a: int, b: int):
    assert (logarithm(a) <= logarithm(b)) or a > b
    assert logarithm(1 << a % 63) == (a % 63) << 16


LOGARITHMS = r"""
int main(int argc, char **argv) {
  int i;
  for (i = 1; i < argc; i++)
    printf("%lld ", (long long)deuteron_logarithm((int64_t)strtoll(argv[i], NULL, 10)));
  (void)deuteron_nearest;
  return 0;
}
"""


def test_logarithms_in_c_are_those_of_python(workspace: Workspace):
    includes = "#include <stdbool.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    program = workspace.build(f"{includes}{runtime_source('tuned.c')}{LOGARITHMS}")
    sizes = [-(2**63), -1, 0, 1, 2, 3, 1000, 65535, 65537, 2**17 - 1, 2**17 + 1, 2**40 + 12345, 2**62 + 7, 2**63 - 1]
    assert program.run(*map(str, sizes)).split() == [str(logarithm(size)) for size in sizes]
