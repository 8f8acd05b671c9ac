"""The command line: `deuteron compile`, `inspect`, `link`, `run`; one module for each command."""
