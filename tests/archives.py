"""What is inside saved files, to be changed and written again with a checksum that fits."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def archive_contents(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the metadata and the arrays of a file, as `write_archive` takes them."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    meta = json.loads(members.pop("meta.json"))
    for name in ("kind", "format", "written_by", "sha256"):
        del meta[name]
    return meta, {
        name.removesuffix(".npy"): np.load(io.BytesIO(content)) for name, content in members.items()
    }
