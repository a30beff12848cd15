"""`python -m raddle`."""

from raddle.cli import main

main()
