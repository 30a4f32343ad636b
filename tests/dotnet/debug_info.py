"""Takes the debug info of a method apart, to see whether an address is that of one: a blob's parts must fill it.

Source: dotnet/runtime docs/design/datacontracts/DebugInfo.md; src/coreclr/vm/debuginfostore.cpp.
"""


class Nibbles:
    """Numbers of three bits a nibble, the highest first; the low nibble of a byte comes first."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = 0
        while True:
            nibble = self.data[self.at // 2] >> 4 * (self.at % 2) & 15
            self.at += 1
            value = value << 3 | nibble & 7
            if not nibble & 8:
                return value

    def bytes_read(self):
        return (self.at + 1) // 2


def _bounds_of_8(data):
    """How many bytes the bounds of .NET 8 and 9 take, and how many there are."""
    nibbles = Nibbles(data)
    count = nibbles.number()
    for _ in range(3 * count):  # native offset, IL offset, source
        nibbles.number()
    return nibbles.bytes_read(), count


def _bounds_of_10(data, source_bits=2):
    """From .NET 10 on the records are packed to the bit: source, native offset, IL offset."""
    nibbles = Nibbles(data)
    count, native_bits, il_bits = nibbles.number(), nibbles.number() + 1, nibbles.number() + 1
    return nibbles.bytes_read() + (count * (source_bits + native_bits + il_bits) + 7) // 8, count


def _chunks_of_11(data):
    """The size of the bounds and where they are. The sizes of further chunks are there if the first number is 0."""
    nibbles = Nibbles(data)
    size = nibbles.number()
    if size:
        nibbles.number()  # variables
    else:
        size = nibbles.number()
        for _ in range(5):  # variables, other bounds, patchpoints, rich debug info, async methods
            nibbles.number()
    return size, nibbles.bytes_read()


def bounds_fill_their_place(data, has_flag_byte, major):
    """Whether the bounds of the blob that `data` begins with take the bytes that its header announces; since .NET 10,
    some small ones are filled up with zeros. None for a blob with more than bounds and variables (on-stack replacement
    up to .NET 10).
    """
    if major >= 11:  # which has no flags
        size, at = _chunks_of_11(data)
        bounds = data[at:at + size]
        taken, _ = _bounds_of_10(bounds, source_bits=3) if size else (0, 0)
        return taken <= size == len(bounds) and not any(bounds[taken:])
    if has_flag_byte:
        if data[0]:
            return None
        data = data[1:]
    nibbles = Nibbles(data)
    size = nibbles.number()
    if size == 0xFFFFFFFF:  # instrumented code, which has two sets of bounds
        size = nibbles.number()
        nibbles.number()
    nibbles.number()  # variables
    data = data[nibbles.bytes_read():nibbles.bytes_read() + size]
    if not size:
        return True
    taken, _ = (_bounds_of_10 if major >= 10 else _bounds_of_8)(data)
    return taken <= size and not any(data[taken:]) and (major >= 10 or taken == size)
