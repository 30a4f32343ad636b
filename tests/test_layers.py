"""A file includes its own layer and the layers below it, always by the folder's name (docs/architecture.md)."""
import pathlib
import re
import sys

FLOOR = {"src/base.h", "src/error.h", "src/error.c", "src/text.h", "src/text.c", "src/cdacq.h"}
LAYERS = ["floor", "src/formats", "target", "descriptors", "contracts", "src"]  # each may include those before it
MOCK_MAY_INCLUDE = {"src/formats/core_writer.h", "descriptors/layout.def"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def layer(path):
    return "floor" if path in FLOOR else path.rpartition("/")[0]


def allowed(path, included):
    own, other = layer(path), layer(included)
    if own == "src/cli":
        return included == "src/cdacq.h" or other == own
    if own == "mocktarget":
        return other in ("floor", own) or included in MOCK_MAY_INCLUDE
    return own in LAYERS and other in LAYERS[: LAYERS.index(own) + 1]


def problems(path, text):
    for quote, included in INCLUDE.findall(text):
        if quote == '"' and not allowed(path, included):
            yield f'{path} must not include "{included}"'
        if "cJSON" in included and path != "descriptors/json.c":
            yield f"{path} must not include cJSON: descriptors/json.c alone does"


# The rule itself, so that a slip above cannot make it accept everything.
for path, included, expected in [
    ("src/error.c", "src/base.h", True),
    ("src/error.c", "src/formats/bytes.h", False),
    ("src/formats/elf.c", "target/reader.h", False),
    ("target/core.c", "src/formats/elf.h", True),
    ("target/core.c", "core.h", False),
    ("target/core.c", "descriptors/layout.h", False),
    ("contracts/loader.c", "descriptors/layout.h", True),
    ("contracts/loader.c", "src/door.h", False),
    ("src/cdacq.c", "contracts/loader.h", True),
    ("src/cdacq.c", "src/cli/cli.h", False),
    ("src/cdacq.c", "mocktarget/mock.h", False),
    ("src/cli/main.c", "src/cdacq.h", True),
    ("src/cli/main.c", "src/text.h", False),
    ("mocktarget/mock.c", "descriptors/layout.def", True),
    ("mocktarget/mock.c", "descriptors/layout.h", False),
    ("mocktarget/mock.c", "target/reader.h", False),
]:
    assert allowed(path, included) == expected, (path, included)

found, count = [], 0
for folder in ["src", "target", "descriptors", "contracts", "mocktarget"]:
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix in (".c", ".h", ".def", ".inc"):
            count += 1
            found += problems(path.as_posix(), path.read_text())
print("\n".join(found) or f"{count} files")
sys.exit(bool(found) or not count)
