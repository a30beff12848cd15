"""The version of the package, from Cargo.toml; that of the compiled core is `_core.version()`."""

import importlib.metadata

__all__ = ["__version__"]

__version__ = importlib.metadata.version("raddle")
