"""Programs shared out over the CTAs of their clusters (`num_ctas`).

plan_cta.py    the rewrite: each CTA has its part of the tiles
cta_split.py   along which axes
multicast.py   what the CTAs load together
"""
