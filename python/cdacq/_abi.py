"""libcdacq for ctypes: its declarations, which scripts/make-python-abi makes, and finding the library. Private."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from . import _declarations
from ._declarations import *  # noqa: F403

__all__ = ["SONAME", "library", "static_text"]
__all__ += _declarations.__all__

SONAME = "libcdacq.so.0"
_library: Any = None


def _missing(name: str) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise NotImplementedError(f"{name}: this libcdacq is older than the Python package and does not have it")
    return call


def _near() -> list[str]:
    """The library in the package itself, as a wheel has it; or PREFIX/lib/python3/dist-packages/cdacq belongs to the
    library in PREFIX/lib or PREFIX/lib/TRIPLET."""
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    if os.path.exists(inside):
        return [inside]
    lib = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    if os.path.basename(lib) != "lib":
        return []
    try:
        folders = ["", *sorted(name for name in os.listdir(lib) if name.endswith("-linux-gnu"))]
    except OSError:
        return []
    prefix = os.path.dirname(lib)
    paths = [os.path.join(lib, folder, SONAME) for folder in folders] + [os.path.join(prefix, "lib64", SONAME)]
    return [path for path in paths if os.path.exists(path)]


def _load() -> Any:
    chosen = os.environ.get("CDACQ_LIBRARY")
    if chosen:
        return ctypes.CDLL(chosen)
    for name in [*_near(), SONAME]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise OSError(f"{SONAME} cannot be loaded: install libcdacq, or set CDACQ_LIBRARY to its path")


def library() -> Any:
    """The shared library, loaded at the first call. Raises OSError if it cannot be loaded."""
    global _library
    if _library is None:
        loaded = _load()
        for name, (result, *parameters) in _declarations.FUNCTIONS.items():
            try:
                function = getattr(loaded, name)
            except AttributeError:
                setattr(loaded, name, _missing(name))
                continue
            function.restype, function.argtypes = result, parameters
        _library = loaded
    return _library


def static_text(function: str, value: int) -> str:
    """The text that the library has for a value of an enumeration."""
    text: bytes = getattr(library(), function)(int(value))
    return text.decode()
