"""Archives as binutils and LLVM's linkers read them."""

import subprocess
from pathlib import Path

import pytest
from aot.workspace import ADD_ALPHA

from deuteron.aot.archive import archive
from deuteron.backend.llvm.compile import emit_object_for
from deuteron.backend.llvm.targets import machine

NAMES = {"a.o": ["first"], "a_name_longer_than_sixteen.o": ["second"], "odd.o": ["third"]}
MAGICS = {"linux": b"\x7fELF", "macos": b"\xcf\xfa\xed\xfe", "windows": {"x86_64": b"\x64\x86", "aarch64": b"\x64\xaa"}}


def test_the_gnu_format(tmp_path: Path):
    """Contents of odd lengths too; the index says where each symbol is defined."""
    cpu = "x86-64" if machine() == "x86_64" else "generic"
    objects = {
        name: emit_object_for("linux", ADD_ALPHA.replace("SYMBOL", symbol), cpu) for name, (symbol,) in NAMES.items()
    }
    objects["odd.o"] += b"\0"
    library = tmp_path / "lib.a"
    library.write_bytes(archive(objects, NAMES, "gnu"))
    listed = subprocess.run(["ar", "t", library], capture_output=True, text=True, check=True).stdout.split()
    assert listed == list(NAMES)
    subprocess.run(["ar", "x", library], cwd=tmp_path, check=True)
    assert {name: (tmp_path / name).read_bytes() for name in NAMES} == objects
    index = subprocess.run(["nm", "-s", library], capture_output=True, text=True, check=True).stdout
    assert [line for line in index.splitlines() if " in " in line] == [
        f"{symbol} in {name}" for name, (symbol,) in NAMES.items()
    ]


def test_the_bsd_format():
    """Every object begins at a multiple of eight, where the index says that its member does."""
    contents = {name: bytes([65 + i]) * (16 + i) for i, name in enumerate(NAMES)}
    made = archive(contents, {name: [f"_{symbol}" for symbol in symbols] for name, symbols in NAMES.items()}, "bsd")
    assert made.startswith(b"!<arch>\n#1/20") and b"__.SYMDEF SORTED" in made
    for name, content in contents.items():
        place = made.index(content)
        assert place % 8 == 0
        header = made.rindex(b"#1/", 0, place)
        assert made[header + 60 :].startswith(name.encode())
        assert header.to_bytes(4, "little") in made[:200]


@pytest.mark.parametrize("cpu", ["x86-64-v3", "apple-m1"])
@pytest.mark.parametrize("system", MAGICS)
def test_objects_of_every_system(system: str, cpu: str):
    made = emit_object_for(system, ADD_ALPHA.replace("SYMBOL", "add_alpha"), cpu)
    magic = MAGICS[system]
    magic = magic["aarch64" if cpu == "apple-m1" else "x86_64"] if isinstance(magic, dict) else magic
    assert made.startswith(magic)
    assert (b"_add_alpha\0" in made) == (system == "macos")
