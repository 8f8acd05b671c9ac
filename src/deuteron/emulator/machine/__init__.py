"""The machine: memories, waves of blocks, groups of threads that run together, and the scheduler.

Wave       some blocks that are resident at the same time; owns shared and local memory, barriers, checks
Group      threads of a wave at one program counter, with their registers, one NumPy array each
Scheduler  runs groups, splits them where they diverge, joins them where they meet again
"""
