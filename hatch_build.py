"""What a package index shows: the README, without the links and pictures that only a clone can follow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?![a-z]+:)[^)]*\)\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")
ABOUT = "\n(Pages under `docs/` are in the repository and in the source distribution.)\n"


def readable(text: str) -> str:
    """The README where nothing lies beside it: a link becomes its words, or its page where they say nothing else."""
    text = PICTURE.sub("", text)
    text = LINK.sub(lambda link: f"`{link[2]}`" if link[1] == link[2] else link[1], text)  # anchors are not kept either
    return text.replace("\n## More\n", f"\n## More\n{ABOUT}", 1)


class Readme(MetadataHookInterface):
    """Gives the metadata its description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read the README of the folder that is built."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readable(text)}
