"""The bill of materials of a release (CycloneDX 1.6): what of others is inside or needed."""

import uuid
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from scripts.dist.common import committed, fail, version
from scripts.dist.crates import Part

__all__ = ["bill", "python_parts"]


def python_parts(environment: Path) -> list[Part]:
    """The Python packages of others in an environment."""
    parts = []
    for folder in environment.glob("lib/*/site-packages/*.dist-info"):
        told = Parser().parsestr((folder / "METADATA").read_text(), headersonly=True)
        if told["Name"] == "raddle":
            continue
        licence = told["License-Expression"] or (told["License"] or "").partition("\n")[0]
        parts.append(Part(told["Name"], told["Version"], licence, "pypi"))
    return sorted(parts)


def bill(parts: Iterable[Part]) -> str:
    """Write the bill of a release that has these parts.

    Its time is that of the commit, and its number follows from the parts: the same parts, the
    same bytes.
    """
    licences = LicenseFactory()

    def component(part: Part) -> Component:
        return Component(
            name=part.name,
            version=part.version,
            type=ComponentType.LIBRARY,
            bom_ref=part.url,
            purl=PackageURL.from_string(part.url),
            licenses=[licences.make_from_string(part.licence)] if part.licence else [],
        )

    product = Component(
        name="raddle",
        version=version(),
        type=ComponentType.APPLICATION,
        bom_ref=f"raddle@{version()}",
        licenses=[licences.make_from_string("Apache-2.0")],
    )
    parts = sorted(set(parts))
    whole = Bom(components=map(component, parts))
    named = " ".join(part.url for part in parts)
    whole.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{product.bom_ref} {named}")
    whole.metadata.timestamp = committed()
    whole.metadata.component = product
    whole.register_dependency(product, whole.components)
    text = JsonV1Dot6(whole).output_as_string(indent=2)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        fail(f"the bill of materials is not CycloneDX: {wrong}")
    return text
