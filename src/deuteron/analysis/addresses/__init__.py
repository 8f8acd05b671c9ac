"""Where the elements of a tile are: polynomials, tiles of strided arrays, what one access takes."""
