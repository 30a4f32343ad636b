"""A file includes its own layer and the layers below it, always by the folder's name (docs/architecture.md)."""
import pathlib
import re
import sys

LAYERS = ["include", "util", "formats", "target", "descriptors", "contracts", "src/api", "src/perf"]
# Sub-folders of contracts/, each of which may use those before it: code_lookup, code_info, ready_to_run,
# execution_manager, type_system. Of the files in contracts/ itself, loader is used by type_system, and contracts.c, the
# table of versions, uses all of them.
MOCK_MAY_INCLUDE = {"formats/core_writer.h", "descriptors/layout.def"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# What only some files, or folders, may spell: (pattern, theirs, why).
PRIVATE = [
    (re.compile(r"(\.|->)task\b"), ("target/reader.",), "the members of a reader's task are target/reader.[ch]'s"),
    (re.compile(r"\bmappings\b|\btarget_mapping|\bmapped_file_|\btarget_explain\b"),
     ("include/", "util/", "formats/", "target/", "descriptors/", "src/", "mocktarget/"),
     "contracts look for no file: what they need of one goes through struct module_files"),
    (re.compile(r'"[^"\n]*--[a-z]'), ("src/cli/",), "no message of the library names an option of the tool"),
]


def layer(path):
    if path == "cdacq.h" or path.startswith("cdacq/"):
        return "include"
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "src" else parts[0]


def allowed(path, included):
    own, other = layer(path), layer(included)
    if own == "src/cli":
        return other in ("include", "util", own)
    if own == "mocktarget":
        return other in ("include", "util", own) or included in MOCK_MAY_INCLUDE
    return own in LAYERS and other in LAYERS[: LAYERS.index(own) + 1]


def problems(path, text):
    for quote, included in INCLUDE.findall(text):
        if quote == '"' and not allowed(path, included):
            yield f'{path} must not include "{included}"'
        if "cJSON" in included and path != "descriptors/json.c":
            yield f"{path} must not include cJSON: descriptors/json.c alone does"
    for pattern, owners, why in PRIVATE:
        if pattern.search(text) and not path.startswith(owners):
            yield f"{path}: {why}"


# The rule itself, so that a slip above cannot make it accept everything.
for path, included, expected in [
    ("util/error.c", "util/base.h", True),
    ("util/error.c", "cdacq/error.h", True),
    ("util/error.c", "formats/bytes.h", False),
    ("formats/elf.c", "target/reader.h", False),
    ("target/core.c", "formats/elf.h", True),
    ("target/core.c", "core.h", False),
    ("target/core.c", "descriptors/layout.h", False),
    ("contracts/loader.c", "descriptors/layout.h", True),
    ("contracts/loader.c", "src/api/handles.h", False),
    ("src/api/target.c", "contracts/loader.h", True),
    ("src/api/target.c", "src/perf/record_file.h", False),
    ("src/api/target.c", "src/cli/cli.h", False),
    ("src/api/target.c", "mocktarget/mock.h", False),
    ("src/cli/main.c", "cdacq.h", True),
    ("src/cli/main.c", "util/text.h", True),
    ("src/cli/main.c", "formats/bytes.h", False),
    ("mocktarget/mock.c", "descriptors/layout.def", True),
    ("mocktarget/mock.c", "descriptors/layout.h", False),
    ("mocktarget/mock.c", "target/reader.h", False),
]:
    assert allowed(path, included) == expected, (path, included)

found, count = [], 0
for folder in ["util", "formats", "target", "descriptors", "contracts", "src", "mocktarget"]:
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix in (".c", ".h", ".def", ".inc"):
            count += 1
            found += problems(path.as_posix(), path.read_text())
print("\n".join(found) or f"{count} files")
sys.exit(bool(found) or not count)
