"""`python -m tripos`."""

from tripos.cli.app import main

main()
