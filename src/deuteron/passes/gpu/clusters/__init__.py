"""Programs shared out over the blocks of their clusters (`num_ctas`).

plan_cta.py    the rewrite: each block has its part of the tiles
cta_split.py   along which axes
multicast.py   what the blocks load together
"""
