"""Published experiments, a folder per paper: files for raddle, programs that print our tables.

A program runs in the repository's root as `python3 -m experiments.PAPER.NAME`.
"""

import bench  # noqa: F401 (goes on with the project's own Python, where raddle and its packages are)
