"""`python -m isogloss` is the command `isogloss`."""

from isogloss.cli import main

main()
