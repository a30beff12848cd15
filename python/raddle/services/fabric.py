"""Maps of fabrics: built from a few numbers, checked, read from and written for other programs."""

from dataclasses import dataclass
from pathlib import Path

from raddle import core
from raddle.core.fabric import DrawnFabric, Fabric, ImportedFabric
from raddle.errors import TraceError
from raddle.files import read_text, source_name

__all__ = ["Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a map or an experiment, and the name of its file in messages.

    Formats are those of `raddle.core.fabric`.
    """

    text: str
    name: str

    @classmethod
    def of(cls, file: Path) -> "Source":
        """Read a file, or standard input.

        Raises
        ------
        ExperimentError
            It cannot be read.
        """
        return cls(read_text(file, stream=True), str(source_name(file)))

    @classmethod
    def of_trace(cls, trace: Path) -> "Source":
        """The map that a trace brings along.

        Raises
        ------
        TraceError
            It has none, or is damaged.
        """
        text = core.trace.fabric_of(trace)
        if not text:
            msg = f"{trace}: the trace has no fabric of its own; name one with --fabric"
            raise TraceError(msg)
        return cls(text, str(trace))

    def build(self, format: str) -> str:
        """The whole map, "toml" or "hpcc-ns3", that a fabric table or an experiment describes."""
        return core.fabric.build(self.text, self.name, format)

    def check(self, format: str) -> Fabric:
        """The map in numbers.

        Raises
        ------
        ExperimentError
            The map is not sound; the message names the place.
        """
        return core.fabric.check(self.text, self.name, format)

    def draw(self, format: str) -> DrawnFabric:
        """The map in numbers, with its nodes and links; errors as of `check`."""
        return core.fabric.draw(self.text, self.name, format)

    def export(self, format: str, out_format: str) -> str:
        """The map as "ibsim", "toml" or "hpcc-ns3"."""
        return core.fabric.export(self.text, self.name, format, out_format)

    def import_map(
        self, format: str, *, rate: str | None, delay: str | None, split_ports: bool
    ) -> tuple[ImportedFabric, str]:
        """The map of an InfiniBand fabric with what is odd in it, and the map as TOML.

        Parameters
        ----------
        rate, delay
            Of links for which the file gives none.
        split_ports
            Whether an adapter with several links is a host per port.
        """
        return core.fabric.read_foreign(
            self.text, self.name, format, rate=rate, delay=delay, split_ports=split_ports
        )
