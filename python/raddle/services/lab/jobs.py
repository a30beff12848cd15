"""Keys of jobs: derived from the secret of the site, so that a switch needs to keep none."""

from pathlib import Path

from raddle import core

__all__ = ["job_key"]


def job_key(secret_file: Path, job: int) -> str:
    """The key of a job in hexadecimal digits, as its switches derive it."""
    return core.build.job_key(bytes.fromhex(secret_file.read_text()), job).hex()
