"""What goes into a program that imports Deuteron; PyInstaller executes this file and reads the names.

Modules are imported where they are needed, and functions of the language are compiled from their sources.
"""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

hiddenimports = [name for package in ("deuteron", "xdsl") for name in collect_submodules(package) if "-" not in name]
datas = collect_data_files("deuteron")
for package in ("deuteron", "xdsl", "llvmlite"):
    datas += copy_metadata(package)
module_collection_mode = {"deuteron": "py"}
