"""`deuteron opt`: passes on text, printed, disabled, listed; what can be wrong with the request and with the text."""

import importlib
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner
from ir_text import parse_kernel
from xdsl.passes import ModulePass

import deuteron.passes
from deuteron.ir.text import print_module
from deuteron.passes.by_name import known_passes, options_of
from deuteron.passes.optimisation import Optimisation
from deuteron.tools.main import main

TEXT = """"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type = (i32) -> (), sym_visibility = "public"}> ({
  ^bb0(%n: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %sum = "arith.addi"(%n, %zero) : (i32, i32) -> i32
    %tile = "tt.splat"(%sum) : (i32) -> tensor<128xi32>
    "tt.print"(%tile) <{prefix = " n: ", hex = false, isSigned = array<i32: 1>}> : (tensor<128xi32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.fixture
def opt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("k.ttir").write_text(TEXT)
    return lambda *args, **options: CliRunner().invoke(main, ("opt", *args), **options)


def printed(result) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def test_passes_of_a_file(opt):
    text = printed(opt("-p", "fold,eliminate-dead-code", "-t", "cpu", "k.ttir"))
    assert "arith" not in text and "tt.splat %n :" in text


def test_the_generic_form(opt):
    text = printed(opt("-p", "fold", "-t", "cpu", "--generic", "k.ttir"))
    assert '"tt.splat"(%n) : (i32) -> tensor<128xi32>' in text and text.startswith('"builtin.module"()')


def test_standard_input_and_no_locations(opt):
    text = printed(opt("-p", "fold", "-t", "cpu", "--no-locations", input=TEXT))
    assert "tt.splat %n :" in text and "loc(" not in text


def test_what_is_printed_can_be_read_again(opt):
    once = printed(opt("-p", "tile,gpu", "-t", "cuda:80", "-w", "2", "k.ttir"))
    assert '"ttg.num-warps" = 2 : i32' in once
    assert printed(opt(input=once)) == once


def test_pipelines_are_those_of_a_compile(opt):
    ours = printed(opt("-p", "tile,gpu", "-t", "cuda:90", "-w", "4", "k.ttir"))
    args = ("inspect", "k.ttir", "-t", "cuda:90", "-w", "4", "--stage", "ttgir")
    assert printed(CliRunner().invoke(main, args)) == ours


def test_options_of_a_pass_go_before_those_of_the_command(opt):
    text = printed(opt("-p", "tile,assign-layouts{num-warps=8 num-ctas=1}", "-t", "cuda:80", "-w", "2", "k.ttir"))
    assert '"ttg.num-warps" = 8 : i32' in text


def test_the_option_of_a_tile_pass(opt):
    printed(opt("-p", "rewrite-descriptors-to-pointers{tma-bytes=1024}", "-t", "cpu", "k.ttir"))


def test_printing_before_and_after(opt):
    result = opt("-p", "fold,combine", "-t", "cpu", "--print-before", "fold", "--print-after", "all", "k.ttir")
    titles = re.findall(r"^// .*", result.stderr, re.MULTILINE)
    assert titles == ["// before fold", "// after fold", "// after combine"]
    assert result.stderr.count("module {") == 3 and "// " not in result.stdout


@pytest.mark.parametrize("target", ["cpu", "cuda:80", "cuda:90"])
def test_printing_after_every_pass(opt, target):
    """Each title is a pass as `--passes` takes it, whatever its options are."""
    result = opt("-p", "tile" if target == "cpu" else "tile,gpu", "-t", target, "--print-after", "all", "k.ttir")
    titles = re.findall(r"^// after (.*)", result.stderr, re.MULTILINE)
    assert result.exit_code == 0 and len(titles) > 15
    printed(opt("-p", titles[0], "-t", target, "k.ttir"))


LOOP = """
    %p = "tt.splat"(%q) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>>
    %t = "arith.constant"() <{value = dense<0.0> : tensor<128xf32>}> : () -> tensor<128xf32>
    %one = "arith.constant"() <{value = 1 : i32}> : () -> i32
    %r = "scf.for"(%one, %n, %one, %t) ({
    ^bb1(%i: i32, %a: tensor<128xf32>):
      %x = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, cache = 1 : i32,
        evict = 1 : i32, isVolatile = true}> : (tensor<128x!tt.ptr<f32>>) -> tensor<128xf32> loc("k.py":7:9)
      %b = "arith.addf"(%a, %x) : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32>
      "scf.yield"(%b) : (tensor<128xf32>) -> ()
    }) : (i32, i32, i32, tensor<128xf32>) -> tensor<128xf32>
    use %r : tensor<128xf32>"""


def test_remarks_have_their_line_and_are_said_once(opt):
    module = parse_kernel("%n: i32, %q: !tt.ptr<f32>", LOOP)
    passes = "assign-layouts,pipeline-loads,pipeline-loads"
    result = opt("-p", passes, "-t", "cuda:80", "--remarks", input=print_module(module))
    assert printed(result).count("not-ahead") == 1
    assert [line[:43] for line in result.stderr.splitlines()] == ["pipeline-loads: k.py:7:9: not-ahead: tt.loa"]


def test_a_disabled_pass_does_not_run(opt):
    text = printed(opt("-p", "fold", "--disable", "fold", "-t", "cpu", "k.ttir"))
    assert "arith.addi" in text


def test_the_list_has_a_line_for_each_pass(opt):
    lines = printed(opt("--list")).splitlines()
    assert [line for line in lines if line.startswith("allocate-shared ")][0].endswith("(needed)")
    assert any(re.match(r"pipeline-loads\{.*num-stages=int.*\} +Pipelines the loads", line) for line in lines)
    assert lines == sorted(lines)


MISTAKES = [
    (("-p", "folt"), "<passes>:1:1: error: unknown pass 'folt': did you mean 'fold'?\n    folt\n    ^~~~\n"),
    (("-p", "fold,xyz"), "<passes>:1:6: error: unknown pass 'xyz': known are "),
    (("-p", "plan-cta{ctas=2}", "-t", "cuda:90"), "unknown option of plan-cta 'ctas': did you mean 'num-ctas'?"),
    (("-p", "fold{x=2}"), "unknown option of fold 'x': known are none"),
    (
        ("-p", "assign-layouts{num-warps=many}", "-t", "cuda:90"),
        "option 'num-warps' is a whole number, 0 or more, got 'many'",
    ),
    (
        ("-p", "pipeline-loads{num-stages=-4}", "-t", "cuda:90"),
        "option 'num-stages' is a whole number, 0 or more, got '-4'",
    ),
    (("-p", "assign-layouts{num-warps=3}", "-t", "cuda:90"), "num_warps must be a power of two, got 3"),
    (("-p", "assign-layouts{num-warps}", "-t", "cuda:90"), "option 'num-warps' needs a value"),
    (
        ("-p", "rewrite-descriptors-to-pointers{tma-bytes=yes}"),
        "option 'tma-bytes' is a whole number, 0 or more, got 'yes'",
    ),
    (("-p", "assign-layouts"), "pass 'assign-layouts' needs a GPUConfig: give a target that has one"),
    (("-p", "allocate-shared"), "pass 'allocate-shared' needs a GPUConfig: give a target that has one"),
    (("-p", "tile{x=1}"), "'tile' is a pipeline, which has no options of its own"),
    (("-p", "fold{x=1"), "expected a pass, as in 'pass{option=value},other-pass'"),
    (("-p", "fold", "--print-after", "flod"), "unknown pass 'flod': did you mean 'fold'?"),
    (("-p", "fold", "--disable", "flod"), "unknown pass 'flod': did you mean 'fold'?"),
    (("-p", "fold", "-w", "3"), "num_warps must be a power of two"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_of_the_command_line(opt, arguments, message):
    result = opt(*(("-t", "cpu") if "-t" not in arguments else ()), *arguments, "k.ttir")
    assert result.exit_code == 1 and message in result.stderr, result.output


BROKEN = [
    (TEXT.replace("tt.splat", "tt.splot"), "k.ttir:6:", "tt.splot"),
    (TEXT.replace("(%n, %zero)", "(%n, %one)"), "k.ttir:5:", "%one"),
    (TEXT.replace("tensor<128xi32>", "tensor<127xi32>"), "k.ttir:6:", "powers of two"),
    (TEXT.replace("value = 0 : i32", "value = 0.0 : f32"), "k.ttir:4:", "does not verify"),
]


@pytest.mark.parametrize(("text", "place", "message"), BROKEN)
def test_a_text_that_is_wrong_is_shown_with_its_line(opt, text, place, message):
    Path("k.ttir").write_text(text)
    result = opt("-p", "fold", "-t", "cpu", "k.ttir")
    assert result.exit_code == 1 and result.stderr.startswith(place), result.output
    assert message in result.stderr and "\n    %" in result.stderr, result.stderr


def test_a_text_for_other_warps_is_refused(opt):
    once = printed(opt("-p", "tile,gpu", "-t", "cuda:80", "-w", "2", "k.ttir"))
    result = opt("-p", "place-barriers", "-w", "4", input=once)
    assert result.exit_code == 1 and "the ttgir is for num_warps=2, and num_warps=4 was asked for" in result.stderr


def test_a_file_that_is_not_there(opt):
    result = opt("none.ttir")
    assert result.exit_code == 1 and "cannot read 'none.ttir': No such file or directory" in result.stderr


def test_a_text_without_anything_in_it(opt):
    result = opt(input="\n")
    assert result.exit_code == 1 and "<stdin>:1:1: error: the text of a module is expected" in result.stderr


@pytest.mark.parametrize(
    ("text", "place", "what"), [("module {", "1:9", "the end of the text"), ("module {3}", "1:9", "'3'")]
)
def test_a_text_that_is_cut_off_or_has_something_strange_in_it(opt, text, place, what):
    result = opt(input=text)
    assert result.stderr.startswith(f"<stdin>:{place}: error: {what} is not expected in block definition"), (
        result.stderr
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [("; LLVM IR", "Unexpected character: ;"), ("module {\n" * 3000, "regions are too deep in each other")],
)
def test_a_text_of_another_kind(opt, text, message):
    result = opt(input=text)
    assert result.exit_code == 1 and re.match(rf"<stdin>:\d+:\d+: error: {message}", result.stderr), result.output


def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_text(opt):
    Path("k.ttir").write_text(TEXT, encoding="utf-8-sig")
    assert printed(opt("k.ttir")) == printed(opt(input=TEXT)).replace("<stdin>", "k.ttir")


def all_passes(base: type) -> set[type]:
    return {base}.union(*map(all_passes, base.__subclasses__()))


def test_every_pass_is_known_by_its_name():
    """None is written and imported by no pipeline."""
    for module in pkgutil.walk_packages(deuteron.passes.__path__, "deuteron.passes."):
        importlib.import_module(module.name)
    written = {one for one in all_passes(ModulePass) if one.__module__.startswith("deuteron.passes.")}
    assert set(known_passes().values()) == written - {Optimisation}


@pytest.mark.parametrize("one", sorted(known_passes().values(), key=lambda one: one.name))
def test_every_field_of_a_pass_can_be_given(one):
    """By an option, or as an object by the command's options: no field is left at its default in silence."""
    given = {option.within or option.field for option in options_of(one)}
    assert given == {field.name for field in fields(one)}


def test_a_text_that_has_layouts_gets_none(opt):
    ttgir = printed(opt("-p", "assign-layouts", "-t", "cuda:90", "-w", "2", "k.ttir"))
    result = opt("-p", "gpu", input=ttgir)
    assert result.exit_code == 1 and "error: the tiles have layouts already: this is ttgir" in result.stderr


@pytest.mark.parametrize("target", ["cpu", "cuda:80"])
def test_a_text_that_is_for_another_target(opt, target):
    ttgir = printed(opt("-p", "assign-layouts", "-t", "cuda:90", "-w", "2", "k.ttir"))
    result = opt("-p", "eliminate-dead-code", "-t", target, input=ttgir)
    assert result.exit_code == 1 and "error: the ttgir is for cuda:90, and " in result.stderr


@pytest.mark.parametrize("passes", ["memory", "pipeline-loads", "place-barriers"])
def test_a_text_without_layouts_for_passes_that_need_them(opt, passes):
    result = opt("-p", passes, "-t", "cuda:90", "k.ttir")
    assert result.exit_code == 1 and "takes ttgir, and the module does not say its number of warps" in result.stderr
