"""What raddle raises: one family, so that a caller may catch all of it at once."""

__all__ = [
    "ExperimentError",
    "LabError",
    "RaddleError",
    "ResultsError",
    "RunCancelled",
    "RunFailed",
    "TraceError",
]


class RaddleError(Exception):
    """Base of everything raddle raises on purpose; the message fits one screen."""


class ExperimentError(RaddleError):
    """An experiment, map or flow file is wrong; the message names file, place and cure."""


class LabError(RaddleError):
    """A lab cannot be built, is not there, or is in use; the message names the way out."""


class ResultsError(RaddleError):
    """A results folder is missing, of another kind, in use, or lacks a file."""


class RunFailed(RaddleError):
    """A simulation stopped because of a fault that is not in the user's files."""


class RunCancelled(RaddleError):
    """A simulation was asked to stop and left nothing half-written."""


class TraceError(RaddleError):
    """A program cannot be recorded, or a trace is broken; the message names file and cure."""
