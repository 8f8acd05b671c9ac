"""Which thread has which element of a tile.

anchors.py          the layouts of ops that have one of their own
homes.py            and of the values that follow them
loads_in_place.py   loads in the layouts in which they are needed
assign_layouts.py   gives every tile its layout, and converts where two differ
reduce_late.py      sums that loops add up, reduced after them
merge_reductions.py reductions for which warps wait together
exchange_in_shared.py
                    what lanes exchange, where those are too many shuffles
"""
