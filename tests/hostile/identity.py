"""Gives an assembly and its PDB the identity of another one: what tells two builds apart without reading them whole."""
import pathlib
import struct


class Assembly:
    """A PE file with metadata and a debug directory, and the PDB beside it."""

    def __init__(self, path):
        self.path, self.pdb_path = pathlib.Path(path), pathlib.Path(path).with_suffix(".pdb")
        self.bytes, self.pdb = bytearray(self.path.read_bytes()), bytearray(self.pdb_path.read_bytes())
        pe, = struct.unpack_from("<I", self.bytes, 0x3C)
        self.stamp = pe + 8
        sections, = struct.unpack_from("<H", self.bytes, pe + 6)
        optional, = struct.unpack_from("<H", self.bytes, pe + 20)
        self.image_size, = struct.unpack_from("<I", self.bytes, pe + 24 + 56)
        self.sections = [struct.unpack_from("<IIII", self.bytes, pe + 24 + optional + 40 * i + 8) for i in range(sections)]
        directories = pe + 24 + (112 if self.bytes[pe + 24:pe + 26] == b"\x0b\x02" else 96)
        address, size = struct.unpack_from("<II", self.bytes, directories + 8 * 6)
        debug = self.offset(address)
        self.entries = [(at, *struct.unpack_from("<I", self.bytes, at + 12), *struct.unpack_from("<II", self.bytes, at + 20))
                        for at in range(debug, debug + size, 28)]  # of the debug directory: at, type, address, place
        self.rsds = next(place for _, kind, _, place in self.entries if kind == 2)
        self.mvid = stream(self.bytes, self.bytes.index(b"BSJB"), b"#GUID\0")

    def offset(self, address):
        begin, place = next((begin, place) for size, begin, _, place in self.sections if begin <= address < begin + size)
        return address - begin + place

    def take_identity(self, other):
        """The MVID, the time stamps, and the id of the PDB; the checksum of the PDB does not cover the id."""
        for at, size, source in [(self.stamp, 4, other.stamp), (self.mvid, 16, other.mvid), (self.rsds + 4, 16, other.rsds + 4)]:
            self.bytes[at:at + size] = other.bytes[source:source + size]
        stamps = {kind: other.bytes[at + 4:at + 8] for at, kind, _, _ in other.entries}
        for at, kind, _, _ in self.entries:
            self.bytes[at + 4:at + 8] = stamps[kind]
        place, source = stream(self.pdb, 0, b"#Pdb\0"), stream(other.pdb, 0, b"#Pdb\0")
        self.pdb[place:place + 20] = other.pdb[source:source + 20]

    def save(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        (folder / self.path.name).write_bytes(self.bytes)
        (folder / self.pdb_path.name).write_bytes(self.pdb)
        return folder / self.path.name


def stream(data, root, name):
    """Where a stream of metadata begins."""
    at = root + 16 + struct.unpack_from("<I", data, root + 12)[0]
    at, count = at + 4, struct.unpack_from("<H", data, at + 2)[0]
    for _ in range(count):
        offset, = struct.unpack_from("<I", data, at)
        end = data.index(b"\0", at + 8)
        if data[at + 8:end + 1] == name:
            return root + offset
        at = end + 4 - (end - at) % 4
    raise LookupError(name)


def write_pair(first, second, folder):
    """FOLDER/first and FOLDER/second: two assemblies of one identity and one size."""
    one, other = Assembly(first), Assembly(second)
    if (len(one.bytes), one.image_size) != (len(other.bytes), other.image_size):
        raise ValueError(f"the assemblies differ in size: {len(one.bytes)} and {len(other.bytes)}")
    other.take_identity(one)
    return one.save(pathlib.Path(folder) / "first"), other.save(pathlib.Path(folder) / "second")
