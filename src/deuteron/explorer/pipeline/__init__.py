"""The pipeline of a kernel as a timeline: what is in flight when, which slot of a ring holds what, who waits.

    timeline = read_pipeline(located_module)        None where a kernel has no loop with anything to overlap
    timeline.bars[0]                                          Bar(row=2, begin=0.0, end=14.0, kind="copy", ...)

    scalars.py    the scalars of a kernel, by the interpreter's rules, for integer arguments of one size
    clocks.py     what takes time: copies, mbarriers, tensor cores; groups that are waited for
    workers.py    the warps that run a block each: ops in order, which wait for one another
    timeline.py   all of it put together

Order, overlap, slots and waits follow from ttgir, which is executed for a few iterations: who issues what, into which
slot, and what has to be over before. How long a copy or a dot takes is nominal, in units of its own: this shows what
may overlap, not what a GPU measures.
"""

from deuteron.explorer.pipeline.timeline import read_pipeline as read_pipeline
