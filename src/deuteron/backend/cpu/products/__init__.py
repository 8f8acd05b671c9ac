"""Matrix products: blocks of sums that stay in registers, by multiply-adds, AVX-512's instructions or AMX's tiles."""
