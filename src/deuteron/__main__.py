"""`python -m deuteron`: the command line."""

from deuteron.tools.main import main

main()
