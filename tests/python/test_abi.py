"""The declarations of cdacq/_abi.py are those of the public headers: every struct, field, constant and function."""
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

HEADERS = {path.name: path.read_text() for path in sorted((python_support.ROOT / "include").rglob("*.h"))}
PLAIN = re.sub(r"/\*.*?\*/", "", "\n".join(HEADERS.values()), flags=re.S)
# Of nested structs, which have no name: the class and the expression of C.
NESTED = {"opaque": _abi.JitdumpOpaque, "as": _abi.JitdumpAs}
# Exported functions that the package does not call, and what it does instead.
REPLACED: dict[str, str] = {
    f"cdacq_follower_{call}": "Target.refresh() and Session.methods() in a loop, compared with what is known"
    for call in ("create", "destroy", "visit_methods", "write_jitdump", "close_jitdump")}


def compiled(body, work):
    """The output of a C program of these statements."""
    source, program = work / "program.c", work / "program"
    source.write_text("#include <cdacq.h>\n#include <inttypes.h>\n#include <stdio.h>\nint main(void)\n{\n"
                      + "\n".join(body) + "\nreturn 0;\n}\n")
    subprocess.run([os.environ.get("CDACQ_CC", "cc"), "-std=c17", "-I", str(python_support.ROOT / "include"), "-o",
                    str(program), str(source)], check=True)
    runner = [os.environ["CDACQ_RUN"]] if "CDACQ_RUN" in os.environ else []  # for another machine's programs
    return [line.split() for line in subprocess.run([*runner, str(program)], check=True, capture_output=True,
                                                    text=True).stdout.splitlines()]


def body_of(kind, name):
    """What is between the braces of a struct or enum, without the bodies of nested ones."""
    start = re.search(rf"\b{kind} {name} \{{", PLAIN).end()
    depth, end = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(PLAIN[end], 0)
        end += 1
    inner = PLAIN[start:end - 1]
    return re.sub(r"\b(?:struct|union) \{.*?\} (\w+);", r"int \1;", inner, flags=re.S)


def fields_of(name):
    """The names of the fields of a struct, from the header."""
    found = []
    for declaration in body_of("struct", name).split(";"):
        declaration = re.sub(r"\[.*?\]", "", declaration.strip(), flags=re.S)
        if not declaration:
            continue
        if pointer := re.search(r"\(\*(\w+)\)", declaration):
            found.append(pointer[1])
        else:
            found += [part.split()[-1].lstrip("*") for part in declaration.split(",")]
    return found


def constants_of(name):
    """The constants of an enum, also of one that is made from a list of X(name, ...)."""
    body = body_of("enum", name)
    if generated := re.search(r"#define \w+\((?:name).*?\) (.*?)\s*[=,].*?\n\s*(CDACQ_\w+)\(", body, re.S):
        prefix = generated[1].replace("##name", "").replace("name", "")
        entries = re.search(rf"#define {generated[2]}\(X\)(.*?[^\\])\n", PLAIN, re.S)[1]
        return [prefix + entry for entry in re.findall(r"X\((\w+)", entries)]
    return [part.split("=")[0].strip() for part in body.split(",") if part.strip()]


class Declarations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_structs(self):
        declared = set(re.findall(r"^struct (cdacq_\w+) \{", PLAIN, re.M))
        self.assertGreater(len(declared), 40)
        self.assertEqual(declared, set(_abi.STRUCTS))
        body, expected = [], []
        for name, struct in _abi.STRUCTS.items():
            ours = [field for field, _ in struct._fields_]
            self.assertEqual(fields_of(name), ours, name)
            body.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
            expected.append([name, str(ctypes.sizeof(struct))])
            nested = [(field, inner, getattr(kind, inner), getattr(struct, field)) for field, kind in struct._fields_
                      if kind in NESTED.values() for inner, _ in kind._fields_]
            for path, field in [(field, getattr(struct, field)) for field in ours] + \
                    [(f"{outer}.{inner}", field) for outer, inner, field, _ in nested]:
                body.append(f'printf("{name}.{path} %zu %zu\\n", offsetof(struct {name}, {path}), '
                            f'sizeof ((struct {name} *)0)->{path});')
                base = next((o.offset for outer, inner, _, o in nested if path == f"{outer}.{inner}"), 0)
                expected.append([f"{name}.{path}", str(base + field.offset), str(field.size)])
        self.assertEqual(compiled(body, self.work), expected)

    def test_types_of_fields(self):
        """Sizes do not show signs and kinds: those are compared with the text of the header."""
        kinds = {"int": ctypes.c_int, "unsigned": ctypes.c_uint, "bool": ctypes.c_bool, "size_t": ctypes.c_size_t,
                 "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "uint32_t": ctypes.c_uint32,
                 "int32_t": ctypes.c_int32, "uint16_t": ctypes.c_uint16}
        compared = 0
        for name, struct in _abi.STRUCTS.items():
            types = dict(struct._fields_)
            for declaration in body_of("struct", name).split(";"):
                plain = re.fullmatch(r"(?:enum \w+|\w+) (\w+(?:, \w+)*)", " ".join(declaration.split()))
                if plain and not declaration.strip().startswith("int opaque") and "int as" not in declaration:
                    kind = declaration.split()[0]
                    for field in plain[1].split(", "):
                        self.assertIs(types[field], kinds["int" if kind == "enum" else kind], f"{name}.{field}")
                        compared += 1
        self.assertGreater(compared, 200)

    def test_enumerations(self):
        declared = set(re.findall(r"^enum (cdacq_\w+) \{", PLAIN, re.M))
        self.assertEqual(declared, set(_abi.ENUMS))
        body, expected = [], []
        for name, (members, prefix) in _abi.ENUMS.items():
            constants = [constant for constant in constants_of(name) if not constant.endswith("_COUNT")]
            self.assertEqual([prefix + member for member in members.__members__], constants, name)
            for constant, member in zip(constants, members.__members__.values()):
                body.append(f'printf("{constant} %d\\n", {constant});')
                expected.append([constant, str(int(member))])
        body += ['printf("MESSAGE %d\\n", CDACQ_ERROR_MESSAGE_SIZE);',
                 'printf("OFFSET %" PRId64 "\\n", (int64_t)CDACQ_OFFSET_UNKNOWN);']
        expected += [["MESSAGE", str(_abi.MESSAGE_SIZE)], ["OFFSET", str(_abi.OFFSET_UNKNOWN)]]
        self.assertEqual(compiled(body, self.work), expected)

    def test_functions(self):
        """Every exported function is declared, with its parameters, and called by the package or replaced."""
        headers = re.sub(r"#define .*(\\\n.*)*", "", PLAIN)
        declared = {name: parameters for name, parameters in re.findall(
            r"CDACQ_API\b[^;(]*?\b(\w+)\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*;", headers)}
        self.assertGreater(len(declared), 60)
        self.assertEqual(set(declared), set(_abi.FUNCTIONS) | set(REPLACED))
        package = "\n".join(path.read_text() for path in (python_support.ROOT / "python/cdacq").glob("*.py")
                            if path.name != "_abi.py") + "\n".join(
            re.findall(r'(?:static_text\("|library\(\)\.)\w+', pathlib.Path(_abi.__file__).read_text()))
        for name, (result, *parameters) in _abi.FUNCTIONS.items():
            self.assertTrue(re.search(rf"\b{name}\b", package), f"{name} is not called")
            text = " ".join(declared[name].split())
            while re.search(r"\([^()]*\)", text):  # parameters of function pointers
                text = re.sub(r"\(\*(\w+)\)|\([^()]*\)", r"\1", text)
            types = [] if text == "void" else [part.strip() for part in text.split(",")]
            self.assertEqual(len(parameters), len(types), name)
            for kind, parameter in zip(types, parameters):
                self.assertEqual("*" in kind or "visit" in kind or "write" in kind,
                                 parameter not in (ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint32,
                                                   ctypes.c_size_t), f"{name}: {kind}")
                if parameter is ctypes.c_size_t:  # which is one of those below
                    self.assertIn(kind.split()[0], ["size_t", f"uint{8 * ctypes.sizeof(parameter)}_t"] +
                                  ["unsigned"] * (ctypes.sizeof(parameter) == 4), name)
                elif parameter in (ctypes.c_uint64, ctypes.c_uint32):
                    wide = parameter is ctypes.c_uint64
                    self.assertIn(kind.split()[0], ["uint64_t", "size_t"] if wide else ["uint32_t", "unsigned"], name)

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
