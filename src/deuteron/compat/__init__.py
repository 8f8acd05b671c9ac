"""Triton's import paths, resolved to Deuteron: `import deuteron.compat`, and then `import triton` is Deuteron.

    import deuteron.compat
    import triton, triton.language as tl                    # no Triton is installed, or it is not taken
    from triton.runtime import driver

Importing this module installs it; `deuteron run file.py` does it for a whole program. Where Triton itself has been
imported before, that is an error, since a program must not have both.

    modules.py     what each of Triton's modules holds
    finder.py      puts the modules in place and answers for those that there are not
"""

from deuteron.compat.finder import install as install

install()
