"""pyarrow as a module of unknown types: what its stubs say is too partial for strict checking to be of help."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["arrow_csv", "compute", "pa", "parquet"]

pa: Any = import_module("pyarrow")
compute: Any = import_module("pyarrow.compute")
arrow_csv: Any = import_module("pyarrow.csv")
parquet: Any = import_module("pyarrow.parquet")
