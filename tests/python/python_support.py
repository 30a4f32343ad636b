"""What the tests of the Python package share: the package, and a library that was built with sanitizers."""
import bisect
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent.parent))
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", ROOT / "tests/fixtures"))
SKIPPED = 77


def use_package():
    """Makes `import cdacq` work: from the source tree unless the caller installed it elsewhere."""
    if "CDACQ_INSTALLED" not in os.environ:
        sys.path.insert(0, str(ROOT / "python"))
    preload_sanitizer()


def preload_sanitizer():
    """AddressSanitizer must be loaded before the program. Starts it again with the runtime that the library needs."""
    library = os.environ.get("CDACQ_LIBRARY")
    if not library:
        return
    probe = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"], capture_output=True,
                           text=True)
    if probe.returncode == 0:
        return
    if "CDACQ_PRELOADED" not in os.environ:
        needed = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
        runtime = [line.split("=>")[1].split()[0] for line in needed.splitlines() if "libasan" in line and "=>" in line]
        if runtime:
            options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # Python's own
            os.execve(sys.executable, [sys.executable, "-B", *sys.argv],
                      {**os.environ, "LD_PRELOAD": runtime[0], "CDACQ_PRELOADED": "1", "ASAN_OPTIONS": options})
    if "__sanitizer" in probe.stderr or "__asan" in probe.stderr or "__ubsan" in probe.stderr or "ASan" in probe.stderr:
        print("skipped: a sanitizer's runtime that Python cannot load")
        sys.exit(SKIPPED)
    sys.exit(probe.stderr)


def fixture(name):
    return str(FIXTURES / name / "core")


def load_segments(path):
    """The PT_LOAD segments and the file mappings of a 64-bit little-endian core: for a target of callbacks."""
    data = pathlib.Path(path).read_bytes()
    u16, u32, u64 = (lambda at, size=size: int.from_bytes(data[at:at + size], "little") for size in (2, 4, 8))
    segments, mappings = [], []
    for i in range(u16(56)):
        at = u64(32) + i * 56
        offset, address, size = u64(at + 8), u64(at + 16), u64(at + 32)
        if u32(at) == 1 and size:
            segments.append((address, data[offset:offset + size]))
        while u32(at) == 4 and size > 12:
            names, length, kind = u32(offset), u32(offset + 4), u32(offset + 8)
            note = offset + 12 + (names + 3 & ~3)
            if kind == 0x46494c45:  # NT_FILE
                count, page = u64(note), u64(note + 8)
                paths = data[note + 16 + count * 24:note + length].split(b"\0")
                mappings += [(u64(note + 16 + j * 24), u64(note + 24 + j * 24), u64(note + 32 + j * 24) * page,
                              os.fsdecode(paths[j])) for j in range(count)]
            step = note + (length + 3 & ~3) - offset
            offset, size = offset + step, size - step
    return sorted(segments), mappings, u16(18)


def segment_at(segments, address):
    """The last of the sorted segments that begins at or before an address."""
    index = bisect.bisect_right(segments, address, key=lambda segment: segment[0])
    return segments[index - 1] if index else (address, b"")


