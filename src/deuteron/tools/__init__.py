"""The command line: `deuteron compile`, `deuteron link`, `deuteron run`; one module for each command."""
