"""Building: `pip install` of this folder refuses an environment that has Triton."""

import os
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Runs in the Python that pip installs into, also where it builds in isolation."""

    def initialize(self, version, build_data):
        for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
            triton = os.path.join(folder, "triton")
            if self.target_name == "wheel" and os.path.isdir(triton):
                raise RuntimeError(
                    f"Triton is installed here, in {triton}, and triton-deuteron takes its place: "
                    "run `pip uninstall triton` first"
                )
