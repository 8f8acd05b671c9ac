"""What compiled launchers are given of a kernel for the CPU, by which `run_here` of `trampoline.py` runs it."""

MOST_SCRATCH = 16 << 10  # bytes of the caller's stack that `run_here` takes

# `time` points to the time that a program takes, which it writes.
TARGET = "function num_arguments scratch_bytes time clock".split()  # noqa: SIM905
# A grid that takes less runs on the caller's thread: Python, and waking others, takes as long (on two cores: 8 us).
SHORT_NANOSECONDS = 20_000
UNITS = 1024  # of a nanosecond, in which the time of a program is kept
