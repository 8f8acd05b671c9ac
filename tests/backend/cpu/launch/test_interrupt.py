"""A launch that takes long ends soon after Ctrl-C, with what has run by then; the next launch is as any other.

So it is in the middle of a program, with any handler: `interrupted_programs.py`.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LONG = """
import signal, time
import numpy as np, deuteron, deuteron.language as tl
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background is started without
@deuteron.jit
def kernel(out, n):
    total = 0.0
    for i in range(n):
        total = total * 0.999 + i
    tl.store(out + 2 * tl.program_id(0), total)  # programs that are neighbours in memory would run in step
out = np.zeros(6000, np.float32)
kernel[(2,)](out, 5_000_000)
print("starts", flush=True)
out[:] = 0
begin = time.monotonic()
try:
    kernel[(3000,)](out, 5_000_000)
except KeyboardInterrupt:
    took = time.monotonic() - begin
    print("interrupted", took < 20, 0 < np.count_nonzero(out) < 3000)
kernel[(3000,)](out, 5)
print((out[::2] == out[0]).all())
"""


@pytest.mark.parametrize("num_threads", ["1", "2"])
def test_a_long_launch_is_interrupted(tmp_path, num_threads):
    path = tmp_path / "long.py"
    path.write_text(LONG)
    environment = {**os.environ, "DEUTERON_NUM_THREADS": num_threads}
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout.readline() == "starts\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.0)
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=120)[0] == "interrupted True True\nTrue\n"
        finally:
            process.kill()


@pytest.mark.parametrize("num_threads", ["1", "3"])
def test_signals_in_the_middle_of_programs(seed, num_threads):
    """In a process of its own, which is killed where something cannot be interrupted."""
    script = Path(__file__).with_name("interrupted_programs.py")
    environment = {**os.environ, "DEUTERON_NUM_THREADS": num_threads}
    command = [sys.executable, script, str(seed % 2**32)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert process.returncode == 0, process.stdout + process.stderr
    assert process.stdout.split()[-1] == "other_threads"
