"""LLVM's assembly within C: labels that cannot clash, no debug information, strings intact."""

from deuteron.aot.assembly import assembly_block

ASSEMBLY = """
	.file	"kernel.py"
	.text
	.hidden	add
	.globl	add
	.type	add,@function
add:
	.loc	1 2 3
	add	%rax, 8(%rbx)
	callq	helper
	leaq	.Lmsg(%rip), %rdi
	jl	.LBB0_1
.LBB0_1:
	retq
	.size	add, .Lfunc_end0-add
helper:
	retq
	.section	.rodata.str1.1,"aMS",@progbits,1
.Lmsg:
	.asciz	"helper .LBB0_1 \\"quoted\\" \\\\ \\n"
	.section	.debug_info,"",@progbits
	.long	.Linfo
	.section	".note.GNU-stack","",@progbits
"""


def test_block():
    block = assembly_block(ASSEMBLY, "add")
    prefix = ".L" + block.split("callq\\t.L")[1].split("_")[0]
    assert block.splitlines() == [
        "__asm__(",
        r'"\t.ifndef\tadd\n"',
        r'"\t.pushsection\t.text\n"',
        r'"\t.weak\tadd\n"',
        r'"\t.hidden\tadd\n"',
        r'"\t.text\n"',
        r'"\t.type\tadd,@function\n"',
        r'"add:\n"',
        r'"\tadd\t%rax, 8(%rbx)\n"',
        rf'"\tcallq\t{prefix}_helper\n"',
        rf'"\tleaq\t{prefix}_msg(%rip), %rdi\n"',
        rf'"\tjl\t{prefix}_BB0_1\n"',
        rf'"{prefix}_BB0_1:\n"',
        r'"\tretq\n"',
        r'"\t.size\tadd, .Lfunc_end0-add\n"',
        rf'"{prefix}_helper:\n"',
        r'"\tretq\n"',
        r'"\t.section\t.rodata.str1.1,\"aMS\",@progbits,1\n"',
        rf'"{prefix}_msg:\n"',
        r'"\t.asciz\t\"helper .LBB0_1 \\\"quoted\\\" \\\\ \\n\"\n"',
        r'"\t.popsection\n"',
        r'"\t.endif\n"',
        ");",
    ]


def test_labels_of_two_kernels_differ():
    first, second = (assembly_block("x:\n.LBB0_1:\n", symbol) for symbol in ("a", "b"))
    assert not {line for line in first.splitlines() if "BB0" in line} & set(second.splitlines())
