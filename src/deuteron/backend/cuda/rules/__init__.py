"""Lowering rules of NVIDIA GPUs, one file per op family, merged with those of every GPU in `table.py`."""
