"""From PTX to machine code: ptxas, what its text is given first, and how many registers it takes."""
