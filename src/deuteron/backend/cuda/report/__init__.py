"""The compile report of a kernel for a GPU.

    model.py          what it says: frozen dataclasses and their tables
    instructions.py   the instructions of PTX, each with its source line
    tiles.py          what ttgir says: why an access is narrow, what is pipelined, which layouts are converted
    build.py          both and the numbers of ptxas joined by source line

It is made when somebody asks for it, of the texts that the cache keeps: a compile does not pay for it.
"""

from deuteron.backend.cuda.report.build import make_report as make_report
