"""Ahead of time: a kernel becomes C that a program links without Python.

    deuteron compile   compile.py: signature, grid, naming -> the compiler -> emit.py (targets/, assembly, templates)
    deuteron link      link.py: metadata of many kernels -> dispatch.py

    runtime/           C that every emitted file has: types, statuses, grids, the thread pool
    templates/         C with placeholders
    targets/           what differs between targets: a table of CTarget

docs/aot.md is the user's view of it.
"""
