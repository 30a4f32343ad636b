"""The declarations that scripts/make-python-abi makes are those that the compiler sees in the public headers."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import python_support

python_support.use_package()
from cdacq import _abi  # noqa: E402

PLAIN = re.sub(r"/\*.*?\*/", "", "\n".join(
    path.read_text() for path in sorted((python_support.ROOT / "include").rglob("*.h"))), flags=re.S)
# Exported functions that the package does not call, and what it does instead.
REPLACED: dict[str, str] = {
    f"cdacq_follower_{call}": "Target.refresh() and Session.methods() in a loop, compared with what is known"
    for call in ("create", "destroy", "visit_methods", "write_jitdump", "close_jitdump")}
REPLACED |= {f"cdacq_sampler_{call}": "Target.stop() and Session.threads() in a loop" for call in ("create", "destroy", "visit", "let_go")}
REPLACED["cdacq_local_file_open"] = "nothing: its argument is valid during a visit, and the package lists all items"


def compiled(body, work):
    """The output of a C program of these statements."""
    source, program = work / "program.c", work / "program"
    source.write_text("#include <cdacq.h>\n#include <inttypes.h>\n#include <stdio.h>\nint main(void)\n{\n"
                      + "\n".join(body) + "\nreturn 0;\n}\n")
    subprocess.run([os.environ.get("CDACQ_CC", "cc"), "-std=gnu17", "-Werror", "-I",
                    str(python_support.ROOT / "include"), "-o", str(program), str(source)], check=True)
    runner = [os.environ["CDACQ_RUN"]] if "CDACQ_RUN" in os.environ else []  # for another machine's programs
    return [line.split() for line in subprocess.run([*runner, str(program)], check=True, capture_output=True,
                                                    text=True).stdout.splitlines()]


def type_in_c(kind):
    """The type in C of a scalar or string of ctypes; None for any other type."""
    code = getattr(kind, "_type_", None)
    if code in ("?", "z"):
        return {"?": "bool", "z": "const char *"}[code]
    if isinstance(code, str) and code in "hHiIlLqQ":
        return f"{'u' * code.isupper()}int{8 * ctypes.sizeof(kind)}_t"
    return None


class Declarations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_the_file_is_that_of_the_headers(self):
        script = python_support.ROOT / "scripts/make-python-abi"
        subprocess.run([sys.executable, "-B", str(script), "--check"], check=True)

    def test_structs(self):
        """The size of each struct, and the offset, size and type of each field."""
        self.assertEqual(set(re.findall(r"^struct (cdacq_\w+) \{", PLAIN, re.M)), set(_abi.STRUCTS))
        body, expected = [], []

        def compare(name, struct, outer="", base=0):
            for field, kind in struct._fields_:
                path, place = outer + field, getattr(struct, field)
                body.append(f'printf("{name}.{path} %zu %zu\\n", offsetof(struct {name}, {path}), '
                            f'sizeof ((struct {name} *)0)->{path});')
                expected.append([f"{name}.{path}", str(base + place.offset), str(place.size)])
                if wanted := type_in_c(kind):
                    either = "unsigned: 1, " if kind is ctypes.c_int else ""  # the compiler chooses that of an enum
                    body.append(f"_Static_assert(_Generic(((struct {name} *)0)->{path}, {wanted}: 1, {either}"
                                f'default: 0), "{name}.{path}");')
                if issubclass(kind, (ctypes.Structure, ctypes.Union)) and kind not in _abi.STRUCTS.values():
                    compare(name, kind, f"{path}.", base + place.offset)

        for name, struct in _abi.STRUCTS.items():
            body.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            expected.append([name, str(ctypes.sizeof(struct))])
            compare(name, struct)
        self.assertGreater(len(expected), 400)
        self.assertEqual(compiled(body, self.work), expected)

    def test_constants(self):
        self.assertEqual(set(re.findall(r"^enum (cdacq_\w+) \{", PLAIN, re.M)), set(_abi.ENUMS))
        values = {f"CDACQ_{name}": getattr(_abi, name) for name in
                  ("ERROR_MESSAGE_SIZE", "OFFSET_UNKNOWN", "BOUND_BY_SIZE", "JITDUMP_LAST")}
        # every constant in braces, and every entry of the lists X(name, ...) that enumerations are made from
        written = re.findall(r"\bX\(\w+, |(?<!X\()\bCDACQ_[A-Z0-9_]+(?: = [^,]*)?(?:,| \})", PLAIN)
        for members, prefix in _abi.ENUMS.values():
            values.update({prefix + name: int(member) for name, member in members.__members__.items()})
        self.assertEqual(len(values) - 4, len(written))
        body = [f'printf("{name} %" PRIu64 "\\n", (uint64_t){name});' for name in values]
        self.assertEqual(compiled(body, self.work), [[name, str(value % 2**64)] for name, value in values.items()])

    def test_functions(self):
        """Every exported function is declared with parameters that the compiler takes, and called or replaced."""
        exported = set(re.findall(r"CDACQ_API\b[^;(]*?\b(\w+)\s*\(", re.sub(r"#define .*(\\\n.*)*", "", PLAIN)))
        self.assertEqual(exported, set(_abi.FUNCTIONS))
        package = "\n".join(re.sub(r"^FUNCTIONS.*", "", path.read_text(), flags=re.M | re.S)
                            for path in (python_support.ROOT / "python/cdacq").glob("*.py"))
        body, expected = [], []
        for name, (result, *parameters) in _abi.FUNCTIONS.items():
            self.assertNotEqual(bool(re.search(rf"\b{name}\b", package)), name in REPLACED, name)
            values = ["1" if kind is ctypes.c_int else "(char *){0}" if kind is ctypes.c_char_p else
                      f"({type_in_c(kind) or 'void *'}){{0}}" for kind in parameters]
            body.append(f'printf("{name} %zu\\n", sizeof({name}({", ".join(values)})));')
            expected.append([name, str(ctypes.sizeof(result) if result else 1)])
        self.assertEqual(compiled(body, self.work), expected)

    def test_the_library_has_them(self):
        for name in _abi.FUNCTIONS:
            self.assertTrue(hasattr(ctypes.CDLL(os.environ.get("CDACQ_LIBRARY", _abi.SONAME)), name), name)

    def test_version(self):
        project = (python_support.ROOT / "python/pyproject.toml").read_text()
        cmake = (python_support.ROOT / "CMakeLists.txt").read_text()
        self.assertEqual(re.search(r'^version = "(.*)"', project, re.M)[1],
                         re.search(r"project\(cdacq VERSION (\S+)", cmake)[1])


if __name__ == "__main__":
    sys.exit(unittest.main())
