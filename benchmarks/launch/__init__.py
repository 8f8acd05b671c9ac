"""What a launch costs on the host: from Python (`python -m benchmarks.launch`) and from C (`make run` here)."""
