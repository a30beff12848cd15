"""Packages: wheels, Debian packages, man pages, a bill of materials, and recipes for other tools.

`make dist` calls `python -m scripts.dist`. What each package holds, and how it is tried:
packaging/README.md.

- `build`: the programs and libraries, compiled
- `manuals`: man pages, from the command lines themselves
- `notices`: the licences of all that is linked or copied in
- `bill`: the bill of materials (CycloneDX)
- `wheels`, `debs`, `recipes`: the packages
"""
