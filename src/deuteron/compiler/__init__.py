"""From a source to a compiled kernel: sources, stage driver, cache.

    source.py    ASTSource and IRSource: what a compile starts from
    key.py       what the result depends on
    kept.py      compiled kernels on disk: cache.py as files, cache_folder.py as folders that Triton's programs read
    eviction.py   keeps the cache within its size; whose files are read is said by deuteron/trusted_files.py
    cache_contents.py    what is there, for people
    stages.py    the loop that walks a backend's stages
    driver.py    compile(): the parts put together
    job.py, ahead.py, worker.py    several compiles in processes, into the cache; locks.py: what processes share
    kernel.py    CompiledKernel: the result

Nothing here imports xDSL or llvmlite before a kernel is compiled.
"""

from deuteron.backend.metadata import KernelMetadata as KernelMetadata
from deuteron.backend.metadata import Param as Param
from deuteron.compiler.driver import compile as compile
from deuteron.compiler.driver import resolve_target as resolve_target
from deuteron.compiler.kernel import CompiledKernel as CompiledKernel
from deuteron.compiler.source import ASTSource as ASTSource
from deuteron.compiler.source import IRSource as IRSource
