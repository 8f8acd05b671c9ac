"""What happens while threads go on: cp.async, bulk and tensor copies, wgmma, and the mbarriers they complete on.

groups.py       copies that a thread commits and waits for in groups
state.py        everything in flight in a wave; delivers it late, early or at random
tensor_map.py   the emulation of CUtensorMap
"""
