"""The command line: `deuteron compile`, `inspect`, `link`, `opt`, `run`; one module for each command."""
