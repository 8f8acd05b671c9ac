"""Dots by wgmma, which run on while threads compute.

issue_dots.py         before threads compute from another one
overlap_wgmma.py      in flight while others are issued
release_buffers.py    what they read given back when they are over
order_warp_groups.py  ping-pong: two warpgroups that issue dots in turns
fence_wgmma.py        what is stored to shared memory made visible to them
serialised_dots.py    which the assembler would wait for one by one
"""
