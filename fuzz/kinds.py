"""All kinds of cases, by name."""

from __future__ import annotations

import importlib

from fuzz.harness import Kind

KINDS = {
    "models": "fuzz.readers:Models",
    "policies": "fuzz.readers:Policies",
    "counts": "fuzz.readers:Counts",
    "cells": "fuzz.readers:Cells",
    "pomdp": "fuzz.readers:Pomdps",
    "pomdpx": "fuzz.readers:Pomdpxs",
    "policyx": "fuzz.readers:Policyxs",
    "graphs": "fuzz.readers:Graphs",
    "configs": "fuzz.readers:Configs",
    "settings": "fuzz.readers:Settings",
    "records": "fuzz.readers:Records",
    "logs": "fuzz.readers:Logs",
    "parquet": "fuzz.readers:ParquetLogs",
    "tables": "fuzz.readers:Tables",
    "values": "fuzz.readers:Values",
    "commands": "fuzz.commands:Commands",
    "api": "fuzz.api:Api",
}


def load(name: str) -> type[Kind]:
    """Return a kind of case."""
    module, _, found = KINDS[name].partition(":")
    return getattr(importlib.import_module(module), found)
