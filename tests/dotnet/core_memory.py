"""The memory of a core."""

import bisect
import mmap
import struct

PN_XNUM = 0xffff  # the number of program headers is in the first section header


class CoreMemory:
    """What a 64-bit little-endian ELF core holds."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        offset, count = struct.unpack_from("<Q", self.bytes, 32)[0], struct.unpack_from("<H", self.bytes, 56)[0]
        if count == PN_XNUM:
            count = struct.unpack_from("<I", self.bytes, struct.unpack_from("<Q", self.bytes, 40)[0] + 44)[0]
        headers = [struct.unpack_from("<IIQQQQQQ", self.bytes, offset + 56 * i) for i in range(count)]
        self.segments = sorted((vaddr, size, at) for kind, _, at, vaddr, _, size, _, _ in headers if kind == 1)

    def at(self, address, size):
        """None where it is not dumped."""
        i = bisect.bisect_right(self.segments, (address, 1 << 64, 0)) - 1
        begin, length, at = self.segments[i]
        return self.bytes[at + address - begin: at + address - begin + size] if i >= 0 and address + size <= begin + length else None

    def up_to(self, address, size):
        """As much as one segment has of it."""
        i = bisect.bisect_right(self.segments, (address, 1 << 64, 0)) - 1
        begin, length, at = self.segments[i]
        return self.bytes[at + address - begin: at + min(address - begin + size, length)] if i >= 0 else b""

    def word(self, address):
        """None where it is not dumped."""
        data = self.at(address, 8)
        return None if data is None else int.from_bytes(data, "little")
