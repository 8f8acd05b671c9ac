"""Matrix products, before any code is emitted: where operands are read, in which layout, and which sums are needed.

In the copy of the function (`prepare.py`)  native_products.py, steps_together.py; marks.py: what they write on its ops
Operands      operand_layout.py  how copies lie;  pack_in_place.py  packed by the nest that computes them
              direct.py  not copied, as arguments have them (distances.py);  reuse.py  packed once for many programs
Sums          begin_sums.py  not cleared;  needed_sums.py, needed_depth.py  what masks leave of them
              few_rows.py  of few rows they are computed before the loop, from memory
              single_rows.py  of one row, as B is computed

What the planned products become is in `backend/cpu/products`.
"""
