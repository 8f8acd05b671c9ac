"""Mistakes in a declaration, each at its line with what is known there; the cross product that it comes to."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deuteron.errors import UsageError
from deuteron.library import Kernel, Library, read_project
from deuteron.library.places import Places
from deuteron.library.variants import variants_of

TEXT = """
[library.norms]
targets = ["cpu", "cuda:90"]
# a comment with [brackets] = "and quotes
[[library.norms.kernel]]
source = "norms.py"
name = "rms_norm"
grid = '''n_rows,
  1'''
host_parameters = { n_rows = "i32", "other one" = "i64" }
exclude = [
  { BLOCK = 1024, num_warps = 8 },
  { X = "*fp32" },
]
[library.norms.kernel.types]
X = ["*fp16:16", "*fp32"]  # ]
[[library.norms.kernel]]
options.num_warps = [4, 8]
[library.norms.kernel.types]
X = "*fp16"
"""


@pytest.mark.parametrize(
    "path, place",
    [
        (("library", "norms", "targets", 1), "3:19"),
        (("library", "norms", "kernel", 0, "source"), "6:1"),
        (("library", "norms", "kernel", 0, "grid"), "8:1"),
        (("library", "norms", "kernel", 0, "host_parameters", "other one"), "10:37"),
        (("library", "norms", "kernel", 0, "exclude", 0, "num_warps"), "12:19"),
        (("library", "norms", "kernel", 0, "exclude", 1, "X"), "13:5"),
        (("library", "norms", "kernel", 0, "types", "X", 1), "16:18"),
        (("library", "norms", "kernel", 0, "types", "absent"), "15:2"),
        (("library", "norms", "kernel", 1, "options", "num_warps", 0), "18:22"),
        (("library", "norms", "kernel", 1, "types", "X"), "20:1"),
    ],
)
def test_places(path: tuple, place: str):
    assert str(Places("d.toml", TEXT).at(*path)) == f"d.toml:{place}"


def test_places_of_odd_texts_end():
    text = 'a = ["""x"""", 1979-05-27T07:32:00Z, {b = -1.5e3, "c.d" = [[], {}]}]\n'
    assert str(Places("d.toml", text).at("a")) == "d.toml:1:1"


KERNEL = '[library.a]\ntargets = ["cpu"]\n[[library.a.kernel]]\nsource = "k.py"\nname = "k"\ngrid = "1"\n'
MISTAKES = [
    ("", "declares no library: [library.NAME] begins one"),
    ("[library.a\n", "d.toml:1:11: error: Expected ']' at the end of a table declaration"),
    ("[libary.a]\n", "1:2: error: unknown key 'libary'. Did you mean 'library'? Known are library"),
    ("[library.a]\n", "1:2: error: library 'a' has no 'targets'"),
    (
        '[library.time]\ntargets = ["cpu"]\n',
        "1:2: error: 'time.h' would be included in the place of <time.h>: choose another name than 'time'",
    ),
    ('[library.log]\ntargets = ["cpu"]\n', "1:2: error: 'log' cannot be a namespace of C++: give a 'namespace'"),
    ('[library.class]\ntargets = ["cpu"]\n', "1:2: error: 'class' cannot be a namespace of C++: give a 'namespace'"),
    ('[library.a]\ntargets = ["cpu"]\nnamespace = "b::new"\n', "3:1: error: 'b::new' cannot be a namespace of C++"),
    ('[library.a]\ntargets = ["cpu"]\nnamespace = "a.b"\n', "its parts are words that C++ leaves free, joined by ::"),
    ('[library.a]\ntargets = ["cpu"]\nnamespace = "b::log"\n', "error: library 'a' has no kernels"),
    ('[library.a]\ntargets = ["cpu"]\n', "1:2: error: library 'a' has no kernels"),
    ('[library.a]\ntargets = ["cpux"]\n', "2:12: error: unknown target 'cpux'"),
    ('[library.a]\ntargets = ["cpu:haswel"]\n', "2:12: error: unknown CPU 'haswel'. Did you mean haswell"),
    ('[library.a]\ntargets = ["cpu", "cpu"]\n', "2:19: error: target 'cpu' is there twice"),
    ('[library.a]\ntarget = ["cpu"]\n', "2:1: error: unknown key 'target'. Did you mean 'targets'?"),
    (KERNEL + 'source = "x"\n', "d.toml:7:13: error: Cannot overwrite a value"),
    (KERNEL.replace('source = "k.py"\n', ""), "4:1: error: kernel 'k' needs either 'source', a file, or 'module'"),
    (KERNEL.replace('"k.py"', '""'), "5:1: error: kernel 'k' needs either 'source', a file, or 'module'"),
    (KERNEL.replace('grid = "1"\n', ""), "3:3: error: a kernel needs 'grid'"),
    (
        KERNEL.replace('"1"', '["m", "n"]'),
        "6:1: error: 'grid' is a text with a comma between its parts: grid = \"cdiv(m, 64), n\", got ['m', 'n']",
    ),
    (KERNEL + "grids = 1\n", "7:1: error: unknown key 'grids'. Did you mean 'grid'? Known are name, grid, source"),
    (KERNEL + "types = { X = 3 }\n", "7:11: error: the type of 'X' is a text such as \"*fp16:16\", got 3"),
    (
        KERNEL + 'types = { X = ["*fp32", "None"] }\n',
        '7:11: error: None is the type of no parameter, but a value: a kernel with X = "None" among its constexprs',
    ),
    (
        KERNEL + 'types = { X = "i32", Y = "i32" }\n' + KERNEL[KERNEL.index("[[") :] + 'types = { X = "i32" }\n',
        "10:1: error: 'k' takes X, and above X, Y: give one of the kernels an 'out_name'",
    ),
    (KERNEL + "types = { X = [] }\n", "7:11: error: the list of 'X' is empty, so that nothing is compiled"),
    (
        KERNEL + 'types = { X = "*fp16:16|*fp32" }\n',
        "7:11: error: '|' is between the hints of one type, got '*fp16:16|*f",
    ),
    (
        KERNEL + 'types = { X = "same:Z", Y = "i32" }\n',
        "7:11: error: 'X' follows 'Z', which is not among the types. There are Y",
    ),
    (KERNEL + "constexprs = { B = [1, 2] }\nexclude = [{ C = 1 }]\n", "8:14: error: 'exclude' names 'C', which is no"),
    (KERNEL + "constexprs = { B = [1, 2] }\nexclude = [{ B = 3 }]\n", "8:14: error: 'B' is never 3: it has 1, 2"),
    (KERNEL + "constexprs = { B = [1, 2] }\nexclude = [{ B = [1, 2] }]\n", "8:1: error: all variants of kernel 'k'"),
    (KERNEL + 'out_name = "a b"\n', "7:1: error: 'a b' cannot be the name of a C function: give an 'out_name'"),
    (KERNEL + 'out_name = "exp"\n', "'exp' cannot be the name of a C function, as the C library has one: give an"),
    (KERNEL + KERNEL[KERNEL.index("[[") :], "9:1: error: k for cpu is declared twice, with equal types and options"),
    (KERNEL + "constexprs = { B = [1, 1] }\n", "5:1: error: k (B = 1) for cpu is declared twice"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes(text: str, message: str, declared: Callable[[str], Path]):
    path = declared(text)
    with pytest.raises(UsageError) as raised:
        for library in read_project(path).values():
            variants_of(library)
    assert message in str(raised.value).replace(str(path), "d.toml")


def test_the_cross_product():
    kernel = Kernel(
        name="rms_norm",
        grid="n",
        source="norms.py",
        types={"X": ["*fp16:16", "*fp16", "*fp32"], "Y": "same:X", "n": "i32"},
        constexprs={"BLOCK": [64, 128], "HALF": "same:BLOCK", "SHAPE": [[1, 2]]},
        options={"num_warps": [4, 8]},
        exclude=[{"BLOCK": 128, "num_warps": 8}, {"target": "cpu", "X": ["*fp16", "*fp32"]}],
    )
    variants = variants_of(Library("norms", ["cpu:x86-64-v3", "cuda:90"], [kernel]))
    assert len(variants) == 3 * 2 * 2 * 2 - 3 * 2 - 2 * 3
    assert {variant.function for variant in variants} == {"rms_norm_fp16", "rms_norm_fp32"}
    assert all(variant.types["X"] == variant.types["Y"] for variant in variants)
    assert all(variant.constexprs["HALF"] == variant.constexprs["BLOCK"] for variant in variants)
    assert variants[0].constexprs["SHAPE"] == [1, 2]
    assert len({variant.identity for variant in variants}) == len(variants)


def functions_of(types):
    kernel = Kernel(name="k", grid="1", source="k.py", types=types)
    variants = variants_of(Library("norms", ["cpu"], [kernel]))
    return {variant.function for variant in variants}, [tuple(variant.types.values()) for variant in variants]


def test_hints_rename_no_function():
    """Whether kernels with further hints are added to a text, to a list, or to the items of a tuple."""
    assert functions_of({"x": "*fp16:16", "n": "i32"})[0] == {"k"}
    names, types = functions_of({"x": "*fp16:16 | *fp16", "y": "same:x", "n": "i32:16|i32"})
    assert names == {"k"}
    both = [("*fp16:16", "*fp16:16"), ("*fp16", "*fp16")]
    assert types == [(*pointers, n) for pointers in both for n in ("i32:16", "i32")]
    assert functions_of({"x": ["*fp16"]})[0] == functions_of({"x": ["*fp16:16|*fp16"]})[0] == {"k_fp16"}
    plain = functions_of({"x": ["(*fp16, i32)", "(*fp32, i32)"]})[0]
    assert plain == functions_of({"x": ["(*fp16:16, i32:1)", "(*fp32:16, i32)"]})[0] and len(plain) == 2


def test_the_same_as_python_objects(tmp_path: Path):
    (tmp_path / "libraries.py").write_text(
        "from deuteron.library import Kernel, Library\n"
        'norms = Library("norms", ["cpu"], [Kernel("k", "1", source="k.py", types={"x": ["*fp16", "*fp32"]})])\n'
    )
    (tmp_path / "deuteron.toml").write_text(
        '[library.norms]\ntargets = ["cpu"]\n[[library.norms.kernel]]\n'
        'name = "k"\ngrid = "1"\nsource = "k.py"\ntypes = { x = ["*fp16", "*fp32"] }\n'
    )
    from_python, from_toml = (read_project(tmp_path / name)["norms"] for name in ("libraries.py", "deuteron.toml"))
    assert from_python.root == from_toml.root == tmp_path
    assert variants_of(from_python) == variants_of(from_toml)


def test_a_byte_order_mark_and_comments_in_any_locale(declared: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch):
    path = declared("")
    path.write_text("\ufeff# größe\n" + KERNEL, encoding="utf-8")
    monkeypatch.setattr("io.text_encoding", lambda encoding, stacklevel=2: encoding or "ascii")
    assert list(read_project(path)) == ["a"]


def test_too_many_variants():
    kernel = Kernel("k", "1", source="k.py", constexprs={name: list(range(30)) for name in "abc"})
    with pytest.raises(UsageError, match="kernel 'k' comes to 27,000 variants, and the most is 20,000"):
        variants_of(Library("a", ["cpu"], [kernel]))
