"""How a nest is computed in vectors: along which dimension, and what of its indices and masks a vector does at once.

axes.py        the dimension, by how accesses.py move along each: steps.py, and neighbours.py, which wrap around (`% N`)
quotients.py   divisions of indices that lanes have one quotient of: regular_quotients.py;  segments.py: runs of them
               or that are known distances apart, as what is loaded there: known_distances.py
limits.py      where the masks of a nest end (mask_limits.py), so that its loop runs in parts
"""
