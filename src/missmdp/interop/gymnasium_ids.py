"""The benchmarks as environments that `gymnasium.make` knows, without loading Gymnasium for that.

Gymnasium has no way for a package to announce its environments before it is imported. So that
`import missmdp` stays quick, ids are registered at once where Gymnasium has been imported, and otherwise right after it
is, by a finder that changes nothing else and leaves when it is done.
"""

from __future__ import annotations

import contextlib
import sys

TYPE_CHECKING = False  # as typing says; this module is loaded first of all, and must be quick
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

IDS: dict[str, dict[str, Any]] = {
    "missmdp/ICU-sMAR-v0": {"model": "icu-smar"},
    "missmdp/ICU-MNAR-id-v0": {"model": "icu-mnar-id"},
    "missmdp/ICU-MNAR-unid-v0": {"model": "icu-mnar-unid"},
    "missmdp/ICU-full-v0": {"model": "icu-smar", "fully_observed": True},
    "missmdp/Predator-MCAR-v0": {"model": "predator-mcar"},
    "missmdp/Predator-sMAR-v0": {"model": "predator-smar"},
    "missmdp/Predator-MNAR-unid-v0": {"model": "predator-mnar-unid"},
    "missmdp/Predator-full-v0": {"model": "predator-smar", "fully_observed": True},
}
"""Id → arguments of `MissMDPEnv`."""


def announce() -> None:
    """Register the ids, now or as soon as Gymnasium is imported."""
    if not _register(sys.modules.get("gymnasium")):
        finder: Any = _AfterGymnasium()
        sys.meta_path.insert(0, finder)


def _register(gymnasium: Any) -> bool:
    """Register the ids if Gymnasium has been loaded, and return whether it has."""
    if not hasattr(gymnasium, "register") or not hasattr(gymnasium, "registry"):
        return False
    for name, arguments in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, "missmdp.interop.gymnasium:MissMDPEnv", kwargs=dict(arguments))
    return True


class _AfterGymnasium:
    """Lets the other finders find Gymnasium, and registers the ids when it has been executed."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders return; None for everything but Gymnasium."""
        if fullname != "gymnasium" or self._asking:
            return None
        self._asking = True
        try:
            # As importlib does, which passes over finders without the method.
            asked = [getattr(finder, "find_spec", None) for finder in sys.meta_path]
            found = (find(fullname, path, target) for find in asked if find is not None)
            spec = next((spec for spec in found if spec is not None), None)
        finally:
            self._asking = False
        if spec is not None:
            with contextlib.suppress(AttributeError):  # a loader that cannot be told
                self._call_after(spec.loader)
        return spec

    def _call_after(self, loader: Any) -> None:
        execute = loader.exec_module
        finder: Any = self

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            # Whatever happens here, Gymnasium has been imported, and that is what somebody asked for.
            with contextlib.suppress(Exception):
                _register(module)
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(finder)

        loader.exec_module = execute_and_register
