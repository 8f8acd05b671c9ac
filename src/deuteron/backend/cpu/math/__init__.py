"""Functions that vectors of AVX-512 compute in ways of their own, and those that all processors share."""
