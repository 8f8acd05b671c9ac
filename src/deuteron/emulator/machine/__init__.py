"""The machine: memories, waves of blocks, groups of threads that run together, and the scheduler.

LaunchState  what all waves share: sizes, options, global memory
Residents    some blocks that are resident at the same time, with their shared and local memory
Wave         the same, with their barriers, what they have in flight, and the checks
Group        threads of a wave at one program counter, with their registers, one NumPy array each
Scheduler    runs groups, splits them where they diverge, joins them where they meet again
"""
