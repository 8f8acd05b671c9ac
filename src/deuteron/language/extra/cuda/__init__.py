"""Triton's names for GPUs: `tl.extra.cuda.libdevice.tanh(x)` is `tl.extra.libdevice.tanh(x)`."""

from deuteron.language.extra import libdevice as libdevice
from deuteron.language.program import globaltimer as globaltimer
