"""`python -m missmdp` is the command line."""

from missmdp.cli.main import main

main()
