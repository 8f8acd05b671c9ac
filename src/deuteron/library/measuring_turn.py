"""Whose turn it is to measure a device: of all processes of a machine one at a time, as each slows the others down.

    with measuring_turn(target, on_wait):
        ...                             no other process of this machine is in here for the same processor or GPU

It is a lock of a folder in the machine's folder for temporary files, whoever the processes belong to; it ends with the
process that has it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from deuteron.backend.cuda.launch.libcuda import cuda_driver
from deuteron.backend.cuda.launch.streams import current_device
from deuteron.compiler.locks import locked
from deuteron.errors import not_written
from deuteron.options import Target

_BUS_ID_BYTES = 16  # 0000:1b:00.0 and what ends it


@contextmanager
def measuring_turn(target: Target, on_wait: Callable[[], None]) -> Iterator[None]:
    """With no other process here for the same device; `on_wait` is called where there is one, before it waits."""
    folder = Path(tempfile.gettempdir()) / f"deuteron-measures-{_device_name(target)}"
    with ExitStack() as stack:
        try:
            folder.mkdir(exist_ok=True)
            with suppress(PermissionError):  # another user's, who has let everyone in
                folder.chmod(0o755)
            stack.enter_context(locked(folder, on_wait))
        except OSError as error:
            raise not_written(folder, error) from None
        yield


def _device_name(target: Target) -> str:
    """The processor, or the GPU by its place on the bus, which no environment renumbers."""
    if target.backend == "cpu":
        return "cpu"
    driver = cuda_driver()
    place = driver.call("cuDeviceGetPCIBusId", _BUS_ID_BYTES, driver.call("cuDeviceGet", current_device(driver)))
    return "gpu-" + bytes(place).rstrip(b"\0").decode().replace(":", "-")
