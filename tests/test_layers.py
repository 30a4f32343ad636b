"""
The rules for files and folders (docs/architecture.md):
 - a file includes its own layer and the layers below it, always by the folder's name;
 - no files include each other in a cycle;
 - no files call each other in a cycle;
 - no two folders include each other;
 - a function is defined in the folder of the header that declares it;
 - a file that a target names is opened by util/file_root alone;
 - no file sees more than HEADERS_MAX headers of the project, with those that its headers include.
A header and its own .c are one file here. Each cycle is one line, with the names that tie it.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ["include", "util", "formats", "target", "descriptors", "contracts", "src", "mocktarget", "tests/support"]
LAYERS = ["include", "util", "formats", "target", "descriptors", "contracts", "src/files", "src/lookup", "src/waits", "src/stacks", "src/ending",
          "src/api", "src/perf"]
# Sub-folders of contracts/, each of which may use those before it: code_lookup, code_info, ready_to_run,
# execution_manager, type_system, objects. Of the files in contracts/ itself, loader and module_cache are used by type_system, and
# contracts.c, the table of versions, uses all of them.
CLI_FOLDERS = ["base", "report", "commands"]  # of src/cli, each of which may use those before it; main.c uses all
MOCK_MAY_INCLUDE = {"formats/core_writer.h", "descriptors/layout.def"}
HEADERS_MAX = 85  # a header declares `struct x;` where it needs no more of it than a pointer
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
# At column 0 a type and name(parameters), then a line with nothing but a brace.
DEFINITION = re.compile(r"^(?!static\b|typedef\b|struct\s+\w+\s*\{)[A-Za-z_][^;={}()#]*?\b(\w+)\([^;{}]*?\)\s*\n\{", re.M)
DECLARATION = re.compile(r"^(?!static\b|typedef\b|extern\b|#)[A-Za-z_][^;={}()#]*?\b(\w+)\([^;{}]*?\)[^;{}()]*;", re.M)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# What only some files or folders may contain: (pattern, files, why).
PRIVATE = [
    (re.compile(r"(\.|->)task\b"), ("target/reader.",), "the members of a reader's task are target/reader.[ch]'s"),
    (re.compile(r"\bmappings\b|\btarget_mapping|\bmapped_file_"),
     ("include/", "util/", "formats/", "target/", "descriptors/", "src/", "mocktarget/", "tests/"),
     "contracts look for no file: what they need of one goes through struct module_files"),
    (re.compile(r'"[^"\n]*--[a-z]'), ("src/cli/", "src/files/curl.", "tests/"),  # curl has options of its own
     "no message of the library names an option of the tool"),
]
# Who may open, or look at, a file by a path, with which functions, and whose path it is. What a target names is opened
# by util/file_root: its path may have links, FIFOs and devices of whoever the target belongs to.
BY_PATH = re.compile(r"\b((?:fd|f|fre|mq_|shm_)?open(?:64|at|at2|dir)?|fts_open|n?ftw|scandir|creat|"
                     r"[fl]?statx?(?:at|fs)?|realpath|access|faccessat|euidaccess|dlopen|glob|file_open|"
                     r"file_read_text|syscall|canonicalize_file_name)\s*\(")
BY_DESCRIPTOR = {"fdopen", "fstat", "fstatfs"}
THE_USER = {"open", "stat", "lstat", "access", "opendir", "fstatat", "openat", "file_open"}
MAY_OPEN = {
    "util/file_root.c": {"open", "openat", "syscall", "file_open", "file_read_text"},  # opens what a target names
    "util/file_system.c": {"open", "syscall"},  # /proc; statx
    "util/helper.c": {"syscall"},  # clone
    "util/file.c": {"open", "openat", "access", "realpath", "syscall"},  # outputs of the user; close_range
    "util/part_file.c": {"openat", "fstatat"},  # in a folder of an output
    "util/proc_file.c": {"open", "opendir"},  # the kernel's files
    "util/library.c": {"dlopen"},  # fixed names
    "target/core_file.c": {"file_open"},  # the core that the user names
    "target/file_index.c": {"fts_open"},  # a directory that the user names; links are not followed
    "target/image_file.c": {"file_open", "realpath"},  # the image that the user names
    "target/live.c": {"file_read_text"},  # /proc
    "target/live_mappings.c": {"file_read_text"},
    "target/proc_status.c": {"file_read_text"},
    "target/thread_holder.c": {"file_read_text"},
    "target/proc_freezer.c": {"file_read_text"},  # /sys/fs/cgroup
    "target/control_group.c": {"file_read_text"},
    "src/api/thread_times.c": {"file_read_text"},
    "target/thread_sampler.c": {"file_read_text", "openat"},
    # The folder of fetched files, and what is in it by escaped names.
    "src/files/symbol_server.c": {"open", "openat", "lstat", "fstatat", "realpath"},
    "descriptors/runtime.c": {"file_open"},  # a descriptor that the user names
    "src/cli/commands/cmd_bundle.c": {"fstatat"},  # in the folder of the output
    "src/cli/commands/cmd_symfs.c": {"fstatat"},
    "src/cli/commands/output_folder.c": {"open", "openat", "fstatat"},
    "src/cli/base/watchdog.c": {"file_read_text"},  # /proc
    "src/cli/commands/follow.c": {"syscall"},  # pidfd_open
    "src/cli/commands/cmd_record.c": {"syscall"},  # sched_setattr
    "src/cli/main.c": {"open"},  # /dev/null
    "src/cli/commands/workers.c": {"open"},
    **{f"src/cli/{name}.c": THE_USER
       for name in ("base/arguments", "base/complete", "base/output", "base/target", "base/target_name",
                    "commands/cmd_flame", "commands/written_core", "manual")},
}
OPENERS = ("util/", "formats/", "target/", "descriptors/", "contracts/", "src/")


def open_problems(path, text):
    if not path.startswith(OPENERS) or not path.endswith(".c"):
        return
    code = re.sub(r"^\w[^;{}]*\)\s*\n\{", "{", COMMENT_OR_STRING.sub('""', text), flags=re.M)  # without definitions
    used = set(BY_PATH.findall(code)) - BY_DESCRIPTOR
    for name in sorted(used - MAY_OPEN.get(path, set())):
        yield f"{path}: {name}() opens by a path, which util/file_root does for what a target names"
    for name in sorted(MAY_OPEN.get(path, set()) - used if MAY_OPEN.get(path) is not THE_USER else ()):
        yield f"{path}: {name}() is no longer used: remove it from MAY_OPEN"


def layer(path):
    if path == "cdacq.h" or path.startswith("cdacq/"):
        return "include"
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "src" else parts[0]


def allowed(path, included):
    own, other = layer(path), layer(included)
    if own == "include":
        return other == own
    if own == "src/cli" and other == own:
        inner = [file.split("/")[2] for file in (path, included)]
        return inner[0] not in CLI_FOLDERS or (inner[1] in CLI_FOLDERS[: CLI_FOLDERS.index(inner[0]) + 1])
    if own == "src/cli":
        return other in ("include", "util")
    if own == "mocktarget":
        return other in ("include", "util", own) or included in MOCK_MAY_INCLUDE
    if own == "tests":
        return True
    return own in LAYERS and other in LAYERS[: LAYERS.index(own) + 1]


def include_problems(path, text):
    for quote, included in INCLUDE.findall(text):
        if quote == '"' and not allowed(path, included):
            yield f'{path} must not include "{included}"'
        if "cJSON" in included and path != "descriptors/json.c":
            yield f"{path} must not include cJSON: descriptors/json.c alone does"
    for pattern, owners, why in PRIVATE:
        if pattern.search(text) and not path.startswith(owners):
            yield f"{path}: {why}"


def unit(path):
    """A header and its .c are one."""
    return path.rsplit(".", 1)[0] if path.endswith((".c", ".h")) else path


def resolve(path, included, files):
    for place in (included, "include/" + included):
        if place in files:
            return place
    return None


def include_edges(files):
    """{unit: {unit that it includes: {the files that are included}}}"""
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, text in files.items():
        for quote, included in INCLUDE.findall(text):
            other = resolve(path, included, files)
            if quote == '"' and other and unit(other) != unit(path):
                edges[unit(path)][unit(other)].add(included)
    return edges


def headers_seen(files, path):
    """The headers that a file includes, and those that they include."""
    seen, todo = set(), [path]
    while todo:
        for _, included in INCLUDE.findall(files[todo.pop()]):
            other = resolve(path, included, files)
            if other and other not in seen:
                seen.add(other)
                todo.append(other)
    return [header for header in seen if header.endswith(".h")]


def header_problems(files):
    for path in sorted(files):
        count = len(headers_seen(files, path)) if path.endswith(".c") and not path.startswith("tests/") else 0
        if count > HEADERS_MAX:
            yield f"{path} sees {count} headers, more than {HEADERS_MAX}"


def call_edges(files):
    """{unit: {unit whose functions it uses: {their names}}}. A name that several files define ties none of them."""
    code = {path: COMMENT_OR_STRING.sub('""', text) for path, text in files.items()}
    owners = collections.defaultdict(set)
    for path, text in code.items():
        if path.endswith(".c"):
            for name in DEFINITION.findall(text):
                owners[name].add(unit(path))
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, text in code.items():
        if not path.endswith(".c"):
            continue
        for name in set(re.findall(r"\b[A-Za-z_]\w*\b", text)):
            if len(owners.get(name, ())) == 1:
                (owner,) = owners[name]
                if owner != unit(path):
                    edges[unit(path)][owner].add(name)
    return edges


def folder_edges(files):
    """{folder: {folder that it includes from: {the includes}}}"""
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, text in files.items():
        for quote, included in INCLUDE.findall(text):
            other = resolve(path, included, files)
            if quote == '"' and other and pathlib.PurePath(other).parent != pathlib.PurePath(path).parent:
                names = edges[str(pathlib.PurePath(path).parent)][str(pathlib.PurePath(other).parent)]
                names.add(f"{pathlib.PurePath(path).name} includes {included}")
    return edges


def reachable(edges, start):
    seen, todo = set(), [start]
    while todo:
        for other in edges.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def some(names):
    names = sorted(names)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def cycles(edges, what):
    reach = {start: reachable(edges, start) for start in list(edges)}
    told = set()
    for start in sorted(reach):
        if start not in reach[start] or start in told:
            continue
        cycle = sorted(other for other in reach[start] if start in reach.get(other, ()))
        told.update(cycle)
        ties = [f"{one} -> {other} ({some(edges[one][other])})"
                for one in cycle for other in cycle if one != other and other in edges[one]]
        yield f"{what}: " + "; ".join(ties)


def mutual_folders(files):
    edges = folder_edges(files)
    for one in sorted(edges):
        for other in sorted(edges[one]):
            if one < other and one in edges.get(other, ()):
                yield (f"folders that know each other: {one} -> {other} ({some(edges[one][other])}); "
                       f"{other} -> {one} ({some(edges[other][one])})")


def strangers(files):
    """Functions that a header of another folder declares. include/ is for all of them."""
    code = {path: COMMENT_OR_STRING.sub('""', text) for path, text in files.items()}
    places = collections.defaultdict(set)
    for path, text in code.items():
        if path.endswith(".h") and not path.startswith("include/"):
            for name in DECLARATION.findall(text):
                places[name].add(str(pathlib.PurePath(path).parent))
    for path, text in sorted(code.items()):
        if path.endswith(".c"):
            for name in DEFINITION.findall(text):
                if name in places and not any(pathlib.PurePath(path).is_relative_to(place) for place in places[name]):
                    yield f"{path}: {name}() is declared in {some(places[name])}"


def problems(files):
    found = [line for path, text in sorted(files.items()) for line in include_problems(path, text)]
    found += [line for path, text in sorted(files.items()) for line in open_problems(path, text)]
    found += header_problems(files)
    found += cycles(include_edges(files), "files that include each other")
    found += cycles(call_edges(files), "files that call each other")
    found += mutual_folders(files)
    found += strangers(files)
    return found


# Tests of the rules, so that a mistake above cannot make them accept everything.
for path, included, expected in [
    ("include/cdacq/target.h", "cdacq/error.h", True),
    ("include/cdacq/target.h", "util/base.h", False),
    ("util/error.c", "util/base.h", True),
    ("util/error.c", "cdacq/error.h", True),
    ("util/error.c", "formats/bytes.h", False),
    ("formats/elf.c", "target/reader.h", False),
    ("target/core.c", "formats/elf.h", True),
    ("target/core.c", "core.h", False),
    ("target/core.c", "descriptors/layout.h", False),
    ("contracts/loader.c", "descriptors/layout.h", True),
    ("contracts/loader.c", "src/lookup/opened_session.h", False),
    ("src/api/target.c", "contracts/loader.h", True),
    ("src/api/target.c", "src/perf/record_file.h", False),
    ("src/api/target.c", "src/cli/base/target.h", False),
    ("src/api/target.c", "mocktarget/mock.h", False),
    ("src/cli/main.c", "cdacq.h", True),
    ("src/cli/main.c", "util/text.h", True),
    ("src/cli/main.c", "formats/bytes.h", False),
    ("src/cli/main.c", "src/cli/base/help.h", True),
    ("src/cli/commands/cmd_report.c", "src/cli/report/report.h", True),
    ("src/cli/report/report.h", "src/cli/commands/follow.h", False),
    ("mocktarget/mock.c", "descriptors/layout.def", True),
    ("mocktarget/mock.c", "descriptors/layout.h", False),
    ("mocktarget/mock.c", "target/reader.h", False),
]:
    assert allowed(path, included) == expected, (path, included)

for call, expected in [("open(path, O_RDONLY)", 1), ("openat(fd, x, 0)", 1), ("fopen(p)", 1), ("stat (p, &st)", 1),
                       ("realpath(p, 0)", 1), ("access(p, 0)", 1), ("lstat(p, &st)", 1), ("fstatat(f, p, &st, 0)", 1),
                       ("opendir(p)", 1), ("file_open(p, &st)", 1), ("syscall(SYS_openat2)", 1), ("statfs(p, &s)", 1),
                       ("fstat(fd, &st)", 0), ("fdopen(fd)", 0), ("x_open(p)", 0), ("reopen(p)", 0), ('f("open(")', 0),
                       ("/* open(p) */", 0), ("struct stat st;", 0)]:
    body = f"static int f(void)\n{{\n    return {call};\n}}\n"
    assert len(list(open_problems("target/x.c", body))) == expected, call
    assert not list(open_problems("tests/x.c", body)), call
assert list(open_problems("target/core_file.c", "open(p)"))
assert not list(open_problems("target/core_file.c", "file_open(p)"))
assert list(open_problems("util/proc_file.c", "open(p)")) == [
    "util/proc_file.c: opendir() is no longer used: remove it from MAY_OPEN"]

TREE = {
    "util/a.h": '#include "util/b.h"\nint a_one(void);\n',
    "util/b.h": "int b_one(int x);\nint b_two(void);\n",
    "util/a.c": '#include "util/a.h"\n\nint a_one(void)\n{\n    return b_one(1);\n}\n',
    "util/b.c": '#include "util/b.h"\n\nstatic int own(void)\n{\n    return 1;\n}\n\nint b_one(int x)\n{\n    return own();\n}\n',
    "util/c.c": "/* a_one() in a comment */\nstatic int own(void)\n{\n    return a_one();\n}\n",
}
assert problems(TREE) == [], problems(TREE)
calls = problems({**TREE, "util/b.c": TREE["util/b.c"] + "\nint b_two(void)\n{\n    return a_one();\n}\n"})
assert calls == ["files that call each other: util/a -> util/b (b_one); util/b -> util/a (a_one)"], calls
includes = problems({**TREE, "util/b.h": '#include "util/a.h"\n'})
assert includes == ["files that include each other: util/a -> util/b (util/b.h); util/b -> util/a (util/a.h)"]
third = problems({**TREE, "util/b.c": TREE["util/b.c"].replace("own();", "c_one();"),
                  "util/c.c": "struct x *c_one(int a,\n                int b)\n{\n    return a_one;\n}\n"})
assert len(third) == 1 and "util/c -> util/a (a_one)" in third[0] and "util/b -> util/c (c_one)" in third[0], third
folders = problems({"contracts/a/x.h": '#include "contracts/b/y.h"\n', "contracts/b/y.h": "", "contracts/a/z.h": "",
                    "contracts/b/y.c": '#include "contracts/a/z.h"\n'})
assert len(folders) == 1 and folders[0].startswith("folders that know each other: contracts/a -> contracts/b"), folders

chain = {f"util/h{i}.h": f'#include "util/h{i + 1}.h"\n' for i in range(HEADERS_MAX - 1)}
chain[f"util/h{HEADERS_MAX - 1}.h"] = ""
assert problems({**chain, "util/x.c": '#include "util/h0.h"\n'}) == []
assert problems({**chain, "util/h.h": "", "util/x.c": '#include "util/h.h"\n#include "util/h0.h"\n'}) == [
    f"util/x.c sees {HEADERS_MAX + 1} headers, more than {HEADERS_MAX}"]

assert problems({**TREE, "formats/b.c": "\nint b_two(void)\n{\n    return 1;\n}\n"}) == [
    "formats/b.c: b_two() is declared in util"]

sources = {}
for folder in FOLDERS:
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix in (".c", ".h", ".def", ".inc"):
            sources[path.as_posix()] = path.read_text()
found = problems(sources)
print("\n".join(found) or f"{len(sources)} files")
sys.exit(bool(found) or not sources)
