"""A directive that documents the public names of a package, with the signatures and docstrings of the code.

    ```{public-names} missmdp.learn
    AsMAR
    ```

Public names are those in the stub of the package, and the module of a name decides its topic: a new name is
in the reference as soon as it is public. Names in the body come first, the others follow, verbs before classes.
"""

from __future__ import annotations

import inspect
import re

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from docutils.utils import unescape
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject, PyXRefRole
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import missmdp

HOME_OF = missmdp._modules()


def names_in(package: str, first: list[str]) -> list[str]:
    """Return the public names whose home is the package or a module in it."""
    inside = [name for name, home in HOME_OF.items() if f"{home}.".startswith(f"{package}.")]
    rest = sorted(
        set(inside) - set(first), key=lambda name: (inspect.isclass(getattr(missmdp, name)), name.lower())
    )
    return [*(name for name in first if name in inside), *rest]


def documented(name: str) -> list[str]:
    """Return the directive that documents a public name, line by line."""
    value = getattr(missmdp, name)
    if inspect.isclass(value):
        return [f".. auto{'exception' if issubclass(value, Exception) else 'class'}:: missmdp.{name}", ""]
    if callable(value):
        return [f".. autofunction:: missmdp.{name}", ""]
    docstring = ModuleAnalyzer.for_module(HOME_OF[name]).find_attr_docs()[("", name)]
    return [
        f".. py:data:: missmdp.{name}",
        f"   :value: {value!r}",
        "",
        *(f"   {line}" for line in docstring),
        "",
    ]


class PublicNames(SphinxDirective):
    """Documents every public name of a package."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return what autodoc makes of the names."""
        names = names_in(self.arguments[0], list(self.content))
        if unknown := set(self.content) - set(names):
            raise self.error(f"{', '.join(sorted(unknown))}: not public in {self.arguments[0]}")
        lines = [line for name in names for line in documented(name)]
        return self.parse_text_to_nodes("\n".join(["```{eval-rst}", *lines, "```"]))


def code_or_link(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Inliner,
    options: object = None,
    content: object = (),
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return what single backticks mean in docstrings: code, and a link where it is the name of something."""
    text = unescape(text)
    if not re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", text):
        return [nodes.literal(rawtext, text)], []
    return PyXRefRole()("py:obj", rawtext, text, lineno, inliner, {}, [])


def plain_docstring(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Keep what docstrings mean: |S| is no substitution, and "the best: …" of an attribute is no type."""
    lines[:] = [line if line.lstrip().startswith(">>>") else line.replace("|", r"\|") for line in lines]
    if what in ("attribute", "property", "data"):
        lines[:0] = ["..", ""]  # an empty comment: napoleon looks for a type in the first line only


def short_signature(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Write arrays in signatures as the code does, and give protocols none: nobody constructs them."""
    if getattr(obj, "_is_protocol", False):
        return "", None
    return _as_written(signature), _as_written(returns)


def _as_written(text: str | None) -> str | None:
    if text is None:
        return None
    text = re.sub(r"~?(?:numpy\.)?ndarray\[.*?dtype\[([^\]]*)\]\]", r"NDArray[\1]", text)
    return re.sub(r"~?[\w.]*_Buffer \|.*?_NestedSequence\[(?![~\w.]*_Supports)[^\]]*\]", "ArrayLike", text)


def short_annotation(app: Sphinx, domain: str, objtype: str, content: nodes.Element) -> None:
    """Write arrays in the types of attributes as the code does."""
    for annotation in content.parent.findall(addnodes.desc_annotation):
        text = annotation.astext()
        if "ndarray[" in text:
            annotation[:] = [nodes.Text(_as_written(text) or "")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the role, and what makes docstrings fit before napoleon reads them."""
    app.add_directive("public-names", PublicNames)
    app.add_role("code-or-link", code_or_link)
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)
    app.connect("autodoc-process-signature", short_signature)
    app.connect("object-description-transform", short_annotation)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    return {"parallel_read_safe": True}
