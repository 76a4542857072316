"""How the documentation is built: `make docs`. Nothing is fetched, neither here nor by the pages."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "missmdp"
author = "The missmdp developers"
copyright = author
release = version = metadata.version("missmdp")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "public_names"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Docstrings put code between single backticks; where that is the name of something public, it becomes a link.
default_role = "code-or-link"
highlight_language = "none"
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["gymnasium"]
napoleon_google_docstring = False
napoleon_custom_sections = ["Deviation"]
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "missmdp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
