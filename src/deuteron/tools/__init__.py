"""The command line: `deuteron cache`, `compile`, `inspect`, `link`, `opt`, `run`; one module for each command."""
