"""`TensorDescriptor`, an array that a kernel accesses in blocks; the module is named as Triton's."""

from deuteron.backend.tensor_descriptor import TensorDescriptor

__all__ = ["TensorDescriptor"]
