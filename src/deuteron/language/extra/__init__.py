"""Functions that Triton has for each kind of machine: here they are the same on all.

from deuteron.language.extra import libdevice
y = libdevice.tanh(x)
"""

from deuteron.language.extra import cpu as cpu
from deuteron.language.extra import cuda as cuda
from deuteron.language.extra import libdevice as libdevice
