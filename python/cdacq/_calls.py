"""Calling the library: statuses become exceptions, errors in callbacks are raised, and visits become lists. Private."""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, overload

from . import _abi, _decode
from ._abi import Status
from .errors import ClosedError, Error

T = TypeVar("T")


class Listing(Sequence[T], Generic[T]):
    """What a visit of the library found, in its order.

    Some visits find only a part, and say why: the frames before one that cannot be unwound, the code heaps that can be
    read. Iterating such a listing yields the part and then raises the Error. `items` is the list without the Error,
    and `error` is the Error or None.
    """

    def __init__(self, items: list[T], error: Error | None = None) -> None:
        self.items = items
        self.error = error

    def __iter__(self) -> Iterator[T]:
        yield from self.items
        if self.error:
            raise self.error

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self.items[index]

    def __repr__(self) -> str:
        return f"Listing({self.items!r}, {self.error!r})" if self.error else f"Listing({self.items!r})"


class Gate:
    """Counts the threads that are inside the library with a handle, so that none is closed under them.

    A thread that is inside must not enter again: callbacks are called within a call, and the library forbids them to
    use the handle. `exclusive`: one thread at a time may be inside.
    """

    def __init__(self, what: str, exclusive: bool) -> None:
        self._what = what
        self._exclusive = exclusive
        self._condition = threading.Condition()
        self._inside: set[int] = set()
        self.closed = False

    def _check_callback(self, me: int) -> None:
        if me in self._inside:
            raise RuntimeError(f"a callback must not use the {self._what} that called it")

    def enter(self) -> None:
        me = threading.get_ident()
        with self._condition:
            self._check_callback(me)
            while self._exclusive and self._inside:
                self._condition.wait()
            if self.closed:
                raise ClosedError(f"the {self._what} is closed")
            self._inside.add(me)

    def leave(self) -> None:
        with self._condition:
            self._inside.discard(threading.get_ident())
            self._condition.notify_all()

    def close(self) -> bool:
        """Waits until nobody is inside, and lets nobody in any more. False: it was closed already."""
        with self._condition:
            self._check_callback(threading.get_ident())
            if self.closed:
                return False
            self.closed = True
            while self._inside:
                self._condition.wait()
            return True


class Pending:
    """The first exception that a callback raised in this thread, until the call that called it returns."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Around a call of the library: raises what callbacks raised within it, in preference to its own error."""
        outer = getattr(self._local, "exception", None)
        self._local.exception = None
        try:
            yield
        except Error:
            if self._local.exception is None:
                raise
        finally:
            raised, self._local.exception = self._local.exception, outer
        if raised is not None:
            raise raised

    def guard(self, call: Callable[..., T], failed: T) -> Callable[..., T]:
        """`call` for use as a callback: no exception leaves it, and after the first one it is called no more."""
        def guarded(*arguments: Any) -> T:
            if getattr(self._local, "exception", None) is not None:
                return failed
            try:
                return call(*arguments)
            except BaseException as raised:  # KeyboardInterrupt too: ctypes would print and forget it
                self._local.exception = raised
                return failed
        return guarded


def error_of(status: int, error: Any, fallback: str) -> Error:
    message = _decode.text(error.message) or fallback
    return Error(_decode.member(Status, status), message, error.address)


def call(name: str, *arguments: Any) -> Status:
    """Calls a function whose last parameter is `err`, which is added. Raises Error for a negative status."""
    error = _abi.Error()
    status = getattr(_abi.library(), name)(*arguments, ctypes.byref(error))
    if status < 0:
        raise error_of(status, error, name)
    return Status(status)


def visit(name: str, *arguments: Any, item: Callable[[int], T], pending: Pending,
          visitor: Any = _abi.Visitor) -> Listing[T]:
    """Calls a function that visits, with the address of each item. Raises Error if it fails before the first one."""
    found: list[T] = []

    def add(address: int, _context: object) -> int:
        found.append(item(address))
        return 0

    callback = visitor(pending.guard(add, 1))
    with pending.collecting():
        try:
            call(name, *arguments, callback, None)
        except Error as error:
            if not found:
                raise
            return Listing(found, error)
    return Listing(found)
