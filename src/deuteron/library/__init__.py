"""Kernels as a library: what `deuteron build` makes of deuteron.toml, or of the same as Python objects.

    from deuteron.library import Kernel, Library, build_library

    norms = Library(
        "norms",
        targets=["cpu", "cuda:90"],
        kernels=[Kernel(source="norms.py", name="rms_norm", grid="rows", types={"X": ["*fp16", "*fp32"]}, ...)],
    )
    build_library(norms, Path("build/norms"))

    declaration.py    Library, Kernel: what is asked for, checked     project.py, places.py: read from a file
    variants.py       the cross product: one Variant for each kernel that is compiled
    staleness.py      which of them are out of date                   manifest.py: what is known of those that are not
    processes.py      compiles them, worker.py in processes of its own
    c_code.py, cxx_code.py    the functions of the library            objects.py: by the system's compiler
    folder.py         the output changes as a whole                   report.py: what became of each kernel
    builder.py        all of this in its order
    measure.py        how fast the kernels are on this machine        device_arrays.py: what they are given for it

docs/aot.md is the user's view of it. Compiling is imported when something is stale.
"""

from deuteron.library.builder import BuildOptions as BuildOptions
from deuteron.library.builder import build_library as build_library
from deuteron.library.declaration import Kernel as Kernel
from deuteron.library.declaration import Library as Library
from deuteron.library.project import read_project as read_project
from deuteron.library.variants import source_names as source_names
