"""Speed and compile times: `python -m benchmarks.cpu`, `python -m benchmarks.compile_time`; see `make bench`."""
