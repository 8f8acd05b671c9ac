"""LLVM IR for GPUs: kernels, address spaces, assembly; and its way to PTX."""

import time

import pytest

from deuteron.backend.llvm.builder import Touches
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.nvptx import check, emit_ptx
from deuteron.backend.llvm.types import bit_width, const
from deuteron.errors import InternalError

GLOBAL = "ptr addrspace(1)"


def kernel(emit) -> str:
    module = Module("k", debug_kind="DebugDirectivesOnly")
    attributes = 'nounwind "nvvm.reqntid"="64"'
    b = module.function("k", "void", [(f"{GLOBAL} align 16", "p"), ("i32", "n")], "ptx_kernel", attributes)
    b.set_debug_location(module.debug_location(b, "/somewhere/k.py", 3, 1))
    emit(module, b)
    b.ret()
    return module.text()


def test_a_kernel_is_an_entry_with_its_parameters_lines_and_threads():
    ptx = emit_ptx(kernel(lambda module, b: b.store(b.parameters[1], b.parameters[0])), "sm_90a", 83)
    assert ".version 8.3" in ptx and ".target sm_90a\n" in ptx
    assert ".visible .entry k(" in ptx and ".ptr .global .align 16" in ptx and ".reqntid 64" in ptx
    assert "st.global.b32" in ptx and ".loc" in ptx


def test_shared_memory_has_addresses_of_32_bits():
    def emit(module, b):
        shared = module.external_global("shared", "[0 x i8]", 3, 128)
        b.store(b.parameters[1], b.gep("i8", shared, b.parameters[1]))

    ptx = emit_ptx(kernel(emit), "sm_80", 83)
    assert ".extern .shared .align 128 .b8 shared[]" in ptx and "st.shared.b32 \t[%r" in ptx
    assert bit_width("ptr addrspace(3)") == 32 and bit_width(GLOBAL) == 64


def test_an_external_global_is_declared_once():
    module = Module("m")
    first = module.external_global("shared", "[0 x i8]", 3, 16)
    assert module.external_global("shared", "[0 x i8]", 3, 16) == first
    assert module.text().count("@shared = external addrspace(3) global [0 x i8], align 16") == 1


def test_assembly_with_effects_stays_and_pure_assembly_goes_if_unused():
    def emit(module, b):
        b.assembly(Touches.MEMORY, "void", "membar.cta;", "")
        b.assembly(Touches.NOTHING, "i32", "mov.u32 $0, 77;", "=r")
        b.store(b.assembly(Touches.NOTHING, "i32", "add.u32 $0, $1, 99;", "=r,r", b.parameters[1]), b.parameters[0])

    ptx = emit_ptx(kernel(emit), "sm_80", 83)
    assert "membar.cta" in ptx and ", 99;" in ptx and "77" not in ptx


# What the rules emit to order accesses of memory, and assembly that writes it.
ORDERING = {
    "barrier": ("llvm.nvvm.barrier.cta.sync.aligned.all", [const("i32", 0)]),
    "barrier of some": ("llvm.nvvm.barrier.cta.sync.aligned.count", [const("i32", 1), const("i32", 64)]),
    "arrival": ("llvm.nvvm.barrier.cta.arrive.aligned.count", [const("i32", 1), const("i32", 64)]),
    "cluster arrival": ("llvm.nvvm.barrier.cluster.arrive.aligned", []),
    "cluster wait": ("llvm.nvvm.barrier.cluster.wait.aligned", []),
    "warp barrier": ("llvm.nvvm.bar.warp.sync", [const("i32", -1)]),
    "wait for copies": ("llvm.nvvm.cp.async.wait.group", [const("i32", 0)]),
    "wait for stores": ("llvm.nvvm.cp.async.bulk.wait.group", [const("i32", 0)]),
    "wait for reads": ("llvm.nvvm.cp.async.bulk.wait.group.read", [const("i32", 0)]),
    "proxy fence": ("llvm.nvvm.fence.proxy.async.shared_cta", []),
    "fence of mbarriers": ("llvm.nvvm.fence.mbarrier_init.release.cluster", []),
    "assembly": ("st.global.b32 [$0], 7;", None),
}


@pytest.mark.parametrize("name", ORDERING)
def test_a_load_stays_before_what_orders_it(name):
    """Its only use is after a branch, where LLVM would like to have it."""

    def emit(module, b):
        text, operands = ORDERING[name]
        pointer, n = b.parameters
        loaded = b.load("i32", pointer)
        if operands is None:
            b.assembly(Touches.MEMORY, "void", text, "l", pointer)
        else:
            b.intrinsic(text, "void", *operands, overloads=())
        with b.if_(b.icmp("sgt", n, const("i32", 3)), "then") as branch:
            b.store(loaded, b.gep("i32", pointer, n))
            branch.otherwise()

    lines = emit_ptx(kernel(emit), "sm_90a", 83).splitlines()
    load, branch = (next(i for i, line in enumerate(lines) if text in line) for text in ("ld.global", "bra"))
    assert load < branch


def test_text_that_llvm_refuses_is_our_error():
    with pytest.raises(InternalError, match="LLVM does not accept"):
        check("define void @f() { ret i32 0 }")


def value_of_another_block(module, b):
    inner, end = b.block(), b.block()
    b.cond_br(b.icmp("eq", b.parameters[1], const("i32", 0)), inner, end)
    b.position(inner)
    value = b.mul(b.parameters[1], b.parameters[1])
    b.br(end)
    b.position(end)
    b.store(value, b.parameters[0])


BROKEN = {
    "Instruction does not dominate all uses": value_of_another_block,
    "integer or pointer type": lambda module, b: b.cmpxchg(b.parameters[0], const("float", 0), const("float", 1)),
    "invalid intrinsic signature": lambda module, b: b.intrinsic("llvm.fabs", "i32", b.parameters[1]),
    "unknown intrinsic": lambda module, b: b.call("i32", "llvm.nvvm.no.such.thing"),
    "invalid cast opcode": lambda module, b: b.trunc(b.parameters[1], "i64"),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_instruction_is_an_error_at_its_place_and_not_the_end_of_the_process(message):
    """The module has debug information, with which LLVM's parser would verify it, and abort."""
    with pytest.raises(InternalError, match=message) as caught:
        check(kernel(BROKEN[message]))
    assert str(caught.value.location) == "/somewhere/k.py:3:1"


@pytest.mark.parametrize("name", ["llvm.exp", "llvm.sin", "llvm.pow", "llvm.exp2", "llvm.vector.reduce.fadd"])
def test_intrinsics_that_llvm_cannot_select_are_refused(name):
    types = {"llvm.pow": ["float"] * 2, "llvm.vector.reduce.fadd": ["float", "<4 x float>"]}.get(name, ["float"])

    def emit(module, b):
        b.intrinsic(name, "float", *(const(type, 1.0) for type in types), overloads=types[-1:])

    with pytest.raises(InternalError, match=f"may not select the intrinsic '{name}\\."):
        check(kernel(emit))


def test_constraints_of_assembly_that_nvptx_does_not_have_are_refused():
    with pytest.raises(InternalError, match="no constraint 'zz', in '=r,zz'"):
        check(kernel(lambda module, b: b.assembly(Touches.READS, "i32", "mov.u32 $0, $1;", "=r,zz", b.parameters[1])))


def test_a_pointer_constant_has_the_type_of_its_space():
    assert str(const(GLOBAL, 0)) == "ptr addrspace(1) null"
    assert str(const(GLOBAL, 16)) == "ptr addrspace(1) inttoptr (i64 16 to ptr addrspace(1))"


@pytest.mark.parametrize("stop", [None, 100])
def test_rolled_loops_stay_loops(stop):
    def emit(module, b):
        p, n = b.parameters
        end = n if stop is None else const("i32", stop)
        for _ in range(2):
            with b.loop(const("i32", 0), end, const("i32", 1), metadata=module.rolled_loop()) as loop:
                b.store(loop.index, b.gep("i32", p, loop.index))

    text = kernel(emit)
    assert text.count("!llvm.loop !") == 2 and text.count('"llvm.loop.unroll.disable"') == 1
    assert emit_ptx(text, "sm_90a", 83).count('.pragma "nounroll"') == 2


def rows_loaded(count: int) -> str:
    """Loads from rows of an array one after the other, each with an address of its own."""

    def emit(module, b):
        p, n = b.parameters
        for row in range(count):
            index = b.sext(b.mul(b.add(n, const("i32", 3 * row)), n), "i64")
            b.store(b.load("i32", b.gep("i32", p, index)), b.gep("i32", p, const("i64", row)))

    return kernel(emit)


def test_the_time_to_emit_grows_as_the_number_of_addresses():
    def seconds(count: int) -> float:
        llir, begin = rows_loaded(count), time.process_time()
        emit_ptx(llir, "sm_90a", 83)
        return time.process_time() - begin

    few, many = (min(seconds(count) for _ in range(2)) for count in (200, 1600))
    assert many < 24 * few  # 9 times as long, 64 if it grew with the square


def test_lowering_rules_alone_make_vectors():
    """LLVM would find neighbours by comparing each access with many others."""

    def emit(module, b):
        p, _ = b.parameters
        first = b.load("i32", p, align=8)
        b.store(b.add(first, b.load("i32", b.gep("i32", p, const("i64", 1)))), p)

    assert emit_ptx(kernel(emit), "sm_90a", 83).count("ld.global.b32") == 2


BRANCHES_THAT_LOAD = """
define ptx_kernel void @k(i1 %c, ptr addrspace(1) %p, ptr addrspace(1) %q, ptr addrspace(1) noalias readonly %r) {
  br i1 %c, label %then, label %else
then:
  %x = load i32, ptr addrspace(1) %r
  store volatile i32 %x, ptr addrspace(1) %p
  br label %end
else:
  %y = load i32, ptr addrspace(1) %r
  store volatile i32 %y, ptr addrspace(1) %q
  br label %end
end:
  %z = load i32, ptr addrspace(1) %r
  store i32 %z, ptr addrspace(1) %p
  ret void
}
"""


def test_values_are_not_numbered_over_all_blocks():
    """Our own passes have done so: LLVM would take up to a third of code generation to find next to nothing."""
    assert emit_ptx(BRANCHES_THAT_LOAD, "sm_90a", 83).count("ld.global.") == 3


def test_bits_counted_by_shifts_and_masks_are_one_instruction():
    """Hamming distances written that way had 0.47 to 0.66 of Triton's speed."""

    def emit(module, b):
        p, x = b.parameters
        constant = lambda n: const("i32", n)  # noqa: E731
        x = b.sub(x, b.and_(b.lshr(x, constant(1)), constant(0x55555555)))
        x = b.add(b.and_(x, constant(0x33333333)), b.and_(b.lshr(x, constant(2)), constant(0x33333333)))
        x = b.and_(b.add(x, b.lshr(x, constant(4))), constant(0x0F0F0F0F))
        b.store(b.lshr(b.mul(x, constant(0x01010101)), constant(24)), p)

    ptx = emit_ptx(kernel(emit), "sm_90a", 83)
    assert ptx.count("popc.b32") == 1 and "mul.lo" not in ptx


def test_cubins_do_not_depend_on_when_a_source_was_written():
    """ptxas would look for the file's time and size where the PTX says none."""
    llir = """
define ptx_kernel void @k() !dbg !4 { ret void, !dbg !5 }
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, emissionKind: DebugDirectivesOnly)
!2 = !DIFile(filename: "k.py", directory: "/somewhere")
!3 = !DISubroutineType(types: !{})
!4 = distinct !DISubprogram(name: "k", file: !2, line: 1, type: !3, unit: !1, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 2, scope: !4)
"""
    (line,) = (line for line in emit_ptx(llir, "sm_80", 83).splitlines() if ".file" in line)
    assert line.endswith('k.py", 1, 1')
