"""What may be one place in memory: arguments, tiles of addresses, the order of loads and stores."""
