"""What an override folder has instead of what a stage made: it is for the launch that is asked for, or refused."""

import re

import pytest

import deuteron
import deuteron.language as tl
from deuteron.compiler import ASTSource
from deuteron.errors import IRError, UsageError

STAGES = [("cpu", "ttir"), ("cpu", "llir"), *(("cuda:90", stage) for stage in ("ttir", "ttgir", "llir", "ptx"))]
OF_CODE = [pair for pair in STAGES if pair[1] in ("llir", "ptx")]


@deuteron.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(tl.float32) * 2, mask=i < n)


@deuteron.jit
def double_in_place(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def compiled(target: str, divisible=(), type="*fp32", fn=double, **options):
    hints = {(number,): [["tt.divisibility", 16]] for number in divisible}
    source = ASTSource(fn, {"x": type, "y": "*fp32", "n": "i32"}, {"BLOCK": 64}, hints)
    return deuteron.compile(source, target, options)


@pytest.fixture(autouse=True)
def override(tmp_path, monkeypatch):
    def write(stage: str, text: str, kernel: str = "double") -> None:
        (tmp_path / f"{kernel}.{stage}").write_text(text)
        monkeypatch.setenv("DEUTERON_OVERRIDE_DIR", str(tmp_path))

    return write


@pytest.mark.parametrize("type", ["*fp32", "*u8", "*i1", "*kfp16", "*fp8e5"])
@pytest.mark.parametrize(("target", "stage"), STAGES)
def test_its_own_text(target, stage, type, override):
    made = compiled(target, type=type)
    override(stage, made.asm[stage])
    again = compiled(target, type=type)
    assert again.metadata.params == made.metadata.params
    last = "obj" if target == "cpu" else "cubin"
    assert again.asm[last] == made.asm[last]


@pytest.mark.parametrize(("target", "stage"), STAGES)
def test_another_type(target, stage, override):
    override(stage, compiled(target, type="*fp16").asm[stage])
    with pytest.raises(UsageError, match=rf"argument 0 of the {stage} is \*fp16, and 'x' of the kernel \*fp32"):
        compiled(target)


@pytest.mark.parametrize(("target", "stage"), STAGES)
def test_more_is_promised_than_a_launch_looks_at(target, stage, override):
    override(stage, compiled(target, divisible=[0, 2]).asm[stage])
    compiled(target, divisible=[0, 1, 2])
    with pytest.raises(
        UsageError, match=rf"argument 2 of the {stage} is i32, divisible by 16, and 'n' of the kernel i32"
    ):
        compiled(target, divisible=[0])


@pytest.mark.parametrize(("target", "stage"), OF_CODE)
def test_it_says_what_it_is_for(target, stage, override):
    override(stage, compiled(target).asm[stage].partition("\n")[2])
    with pytest.raises(UsageError, match=rf"the first line of a \.{stage} input must be the comment") as caught:
        compiled(target)
    assert caught.value.location.file.endswith(f"double.{stage}")


@pytest.mark.parametrize("stage", ["ttgir", "llir", "ptx"])
def test_other_warps(stage, override):
    override(stage, compiled("cuda:90", num_warps=8).asm[stage])
    with pytest.raises(UsageError, match=f"the {stage} is for num_warps=8, and num_warps=4 was asked for"):
        compiled("cuda:90")


def test_arguments_that_are_not_passed(override):
    override("ttir", compiled("cpu").asm["ttir"].replace("%n: i32", "%n: i32, %m: i32"))
    with pytest.raises(UsageError, match="the ttir has 4 arguments, the kernel 3"):
        compiled("cpu")


def test_another_function(override):
    override("ptx", re.sub(r"\bdouble\b", "twice", compiled("cuda:90").asm["ptx"]))
    with pytest.raises(UsageError, match="the ptx defines 'twice', and 'double' was asked for"):
        compiled("cuda:90")


def test_no_function(override):
    head, _, body = compiled("cuda:90").asm["ptx"].partition("\n")
    override("ptx", f"{head}\n{body.replace('double', 'twice')}")
    with pytest.raises(IRError, match="the ptx has no function 'double', which its first line says is the kernel"):
        compiled("cuda:90")


def test_what_it_needs_is_what_it_says(override):
    text = compiled("cuda:90").asm["ptx"]
    assert '"shared": 0' in text
    override("ptx", text.replace('"shared": 0', '"shared": 4096'))
    assert compiled("cuda:90").metadata.shared == 4096


@pytest.mark.parametrize(("target", "stage"), STAGES)
def test_which_arrays_it_writes(target, stage, override):
    text = compiled(target, fn=double_in_place).asm[stage].replace("double_in_place", "double")
    override(stage, text)
    assert compiled(target).metadata.may_write("x")
