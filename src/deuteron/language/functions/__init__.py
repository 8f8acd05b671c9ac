"""Functions of Python that are written in the language: their parameters and source, what their names mean, their key.

function.py            a function of the language: `@jit` and the standard library make them
source_functions.py    whatever has a source that a kernel's key depends on; place_in_file.py
keys.py                that key, and of a class whose methods kernels call
source.py              text and syntax tree, with places in the file; lambda_source.py
references.py          what the names in a source mean outside of it, and whether they still mean that
stable_text.py         what such values mean, as text for a key
names.py               what functions and modules are called in every process
"""
