"""The version of the package; that of the compiled core is `_core.version()`."""

__all__ = ["__version__"]

__version__ = "0.1.0"
