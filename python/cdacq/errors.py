"""What the package raises."""
from __future__ import annotations

from ._abi import Status


class Error(Exception):
    """A call of the library failed.

    `status` is a Status, `message` one line that names what failed, and `address` the address that the failure
    concerns, 0 if it concerns none.
    """

    def __init__(self, status: Status | int, message: str, address: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.address = address


class ClosedError(ValueError):
    """The target, session or jitdump was closed."""
