"""What is known of integers and pointers along the dimensions of a tile: neighbours, divisors, signs."""
