"""What the rules of all GPUs ask for, in instructions of PTX."""
