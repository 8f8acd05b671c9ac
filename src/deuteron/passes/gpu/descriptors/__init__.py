"""Loads and stores of blocks of tensors, which TMA copies.

infer_descriptors.py   loads of strided tiles through pointers made such loads
lower_descriptors.py   blocks through shared memory, where nothing copies them ahead
"""
