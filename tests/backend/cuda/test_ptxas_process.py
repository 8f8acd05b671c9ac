"""A process of ptxas that starts before its text is there, and one that finds no memory."""

import subprocess
import tempfile
import time

import pytest

from deuteron.backend.cuda.assembler import ptxas_process
from deuteron.backend.cuda.assembler.ptxas import assemble, find_ptxas, start_assembler
from deuteron.backend.cuda.assembler.ptxas_process import AssemblerProcess, available_memory
from deuteron.errors import UsageError

HEAD = ".version 8.3\n.target sm_90a\n.address_size 64\n"
KERNEL = HEAD + ".visible .entry kernel()\n.reqntid 128\n{\n\tret;\n}\n"
PADDED = KERNEL + "// " + "long " * 30_000 + "\n"  # more than a pipe holds


def by_file(folder, ptx):
    """The cubin of a file, as ptxas is called by hand."""
    source, target = folder / "kernel.ptx", folder / "kernel.cubin"
    source.write_text(ptx)
    subprocess.run([find_ptxas(), "--gpu-name=sm_90a", "-v", "-lineinfo", source, "-o", target], check=True)
    return target.read_bytes()


@pytest.mark.parametrize("ptx", [KERNEL, PADDED])
@pytest.mark.parametrize("seconds", [0, 0.3])
def test_it_makes_what_is_made_of_a_file(tmp_path, ptx, seconds):
    """Whether it has opened its input when the text comes, or not."""
    process = start_assembler("sm_90a")
    time.sleep(seconds)
    cubin = assemble(ptx, "sm_90a", process=process)
    assert cubin.image == by_file(tmp_path, ptx)
    assert cubin.resources.registers > 0


def test_one_that_does_not_read_its_text(tmp_path):
    (program := tmp_path / "ptxas").write_text("#!/bin/sh\necho 'ptxas fatal : no' >&2\nexit 3\n")
    program.chmod(0o755)
    assert AssemblerProcess([program]).finish(PADDED) == (3, "ptxas fatal : no\n", None)


@pytest.mark.parametrize("said", [None, "glibc.malloc.top_pad=0"])
def test_its_heap_grows_in_large_steps_unless_somebody_says_otherwise(monkeypatch, tmp_path, said):
    monkeypatch.setenv("GLIBC_TUNABLES", said or "")
    (program := tmp_path / "ptxas").write_text("#!/bin/sh\necho $GLIBC_TUNABLES >&2\n")
    program.chmod(0o755)
    tunables = AssemblerProcess([program]).finish("").report.strip().split(":")
    assert tunables == ["glibc.malloc.hugetlb=1", "glibc.malloc.top_pad=33554432", *([said] if said else [])]


def test_one_that_nobody_needs_any_more_ends(tmp_path):
    process = start_assembler("sm_90a")
    started, folder = process._process, process._source.parent
    del process
    assert started.returncode == -9
    assert not folder.exists()


def test_a_temporary_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    refusal = r"what ptxas reads cannot be written into '.*none.*': No such file or directory. TMPDIR names"
    with pytest.raises(UsageError, match=refusal):
        assemble(KERNEL, "sm_90a")


def test_a_temporary_folder_that_is_full():
    process = start_assembler("sm_90a")
    process._source.with_suffix(".text").symlink_to("/dev/full")
    with pytest.raises(UsageError, match=r"what ptxas reads cannot be written: No space left on device. TMPDIR names"):
        process.finish(KERNEL)


def test_a_temporary_folder_that_has_no_space_for_what_comes_out(tmp_path):
    """As ptxas says it on a full disk."""
    (program := tmp_path / "ptxas").write_text(
        "#!/bin/sh\necho 'ptxas fatal   : Internal error: writing file' >&2\nexit 255\n"
    )
    program.chmod(0o755)
    with pytest.raises(UsageError, match=r"ptxas writes cannot be written: Internal error: writing file. TMPDIR names"):
        assemble(KERNEL, "sm_90a", process=AssemblerProcess([program]))


def test_one_whose_output_cannot_be_opened(tmp_path):
    process = start_assembler("sm_90a")
    process._target.symlink_to(tmp_path / "none" / "kernel.cubin")
    with pytest.raises(UsageError, match=r"what ptxas writes cannot be written: Output file '.*' could not be opened"):
        assemble(KERNEL, "sm_90a", process=process)


def test_it_takes_no_more_memory_than_there_is(monkeypatch):
    monkeypatch.setattr(ptxas_process, "available_memory", lambda: 60 << 20)
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.top_pad=0")  # or it may have its heap before it has the limit
    refusal = r"ptxas (found no memory|was ended by signal 11), at 8 lines of PTX for sm_90a\. .*smaller tiles"
    with pytest.raises(UsageError, match=refusal):
        assemble(KERNEL, "sm_90a")


def test_the_memory_of_a_container(monkeypatch, tmp_path):
    of_machine = available_memory()
    assert of_machine is None or of_machine > 1 << 20
    most, used = tmp_path / "most", tmp_path / "used"
    most.write_text("5000\n")
    used.write_text("2000\n")
    monkeypatch.setattr(ptxas_process, "_GROUPS", ((most, used),))
    assert available_memory() == 3000
    most.write_text("max\n")
    assert available_memory() == of_machine or available_memory() > 3000
