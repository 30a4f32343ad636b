"""What the documents name exists: files, functions, tests; and the bounds that docs/limits.md states are those that
tests/contracts/test_fuel.c holds the library to."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parent.parent))
DOCUMENTS = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")])
FOLDERS = "contracts|descriptors|docs|formats|include|mocktarget|scripts|src|target|tests|util"
THEIRS = ("src/coreclr/", "src/native/", "docs/design/")  # of dotnet/runtime
HEADERS = {path.name: path.read_text() for path in ROOT.glob("include/**/*.h")}


def text_of(document):
    return (ROOT / document).read_text()


def columns(line):
    return [column.strip() for column in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows_of(document, heading):
    """The rows of the tables below a heading, without the first two lines."""
    below = text_of(document).split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    return [columns(line) for i, line in enumerate(lines)
            if not re.fullmatch(r"[|\- ]+", line) and not (i + 1 < len(lines) and re.fullmatch(r"[|\- ]+", lines[i + 1]))]


def execution_manager_functions():
    return re.findall(r"\b(cdacq_[a-z0-9_]+)\(([^;]*?)\)?;", HEADERS["block.h"], re.DOTALL)


def test_exists(program, name):
    for source in ROOT.glob(f"tests/*/{program}.c"):  # it is there, and it runs
        text = source.read_text()
        return f"START_TEST({name})" in text and len(re.findall(rf"\b{name}\b", text)) > 1
    return any(f"def {name}(self" in script.read_text() for script in ROOT.glob(f"tests/**/{program}.py"))


class Documents(unittest.TestCase):
    def test_files_exist(self):
        named = 0
        for document in DOCUMENTS:
            for path in re.findall(rf"`((?:{FOLDERS})/[\w./*-]*[\w*])`", document.read_text()):
                if path.startswith(THEIRS) or "NAME" in path:
                    continue
                named += 1
                places = [path, path + ".c", path + ".h"] if "." not in path.rsplit("/", 1)[-1] else [path]
                self.assertTrue(any(list(ROOT.glob(place)) for place in places), f"{document.name}: {path}")
        self.assertGreater(named, 60)

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
                self.assertTrue((document.parent / target).exists(), f"{document.name}: {target}")

    def test_functions_exist(self):
        for document in DOCUMENTS:
            if document.name == "CHANGELOG.md":  # names of the past, too
                continue
            for name in re.findall(r"`(cdacq_[a-z0-9_]+)(?:\(\))?`", document.read_text()):
                self.assertRegex("\n".join(HEADERS.values()), rf"\b{name}\b", document.name)

    def test_the_api_page_has_every_function(self):
        functions = set(re.findall(r"^(?:CDACQ_API )?[^/*\n]*?\b(cdacq_[a-z0-9_]+)\(", "\n".join(
            text for name, text in HEADERS.items() if name != "mocktarget.h"), re.MULTILINE))
        page = text_of("docs/api.md")
        self.assertEqual(functions - set(re.findall(r"\b(cdacq_[a-z0-9_]+)\b", page)), set())
        self.assertGreater(len(functions), 50)

    def test_tests_exist(self):
        named = re.findall(r"`(test_\w+): (\w+)`", text_of("docs/contracts.md"))
        self.assertGreater(len(named), 80)
        for program, name in named:
            self.assertTrue(test_exists(program, name), f"{program}: {name}")

    def test_a_test_that_is_none(self):
        self.assertFalse(test_exists("test_nibble_map", "shift"))
        self.assertFalse(test_exists("test_nothing", "shifts"))
        self.assertFalse(test_exists("test_cli", "test_nothing"))


class Contracts(unittest.TestCase):
    def test_every_version_is_listed(self):
        """Each row of contracts.c, by contract, schema and version."""
        rows = re.findall(r'^    \{"(\w+)", (\d), "([\w.]+)"', text_of("contracts/contracts.c"), re.MULTILINE)
        self.assertGreater(len(rows), 20)
        listed = {name: (row[1], row[2]) for row in rows_of("docs/contracts.md", "Which versions")
                  for name in row[0].split(", ")}
        for name, schema, version in rows:
            self.assertIn(version, re.findall(r"[\w.]+", listed[name][schema == "2"]), (name, schema))
        self.assertEqual(set(listed), {name for name, _, _ in rows})

    def test_every_function_of_the_contract_is_described(self):
        functions = execution_manager_functions()
        self.assertGreaterEqual(len(functions), 19)
        described = [cell for row in rows_of("docs/contracts.md", "ExecutionManager, call by call")
                     for cell in re.findall(r"`(\w+)`", row[1])]
        self.assertEqual(sorted(described), sorted(name for name, _ in functions))

    def test_every_rule_has_a_file(self):
        for row in rows_of("docs/contracts.md", "ExecutionManager, call by call"):
            self.assertEqual(len(row), 4, row)
            self.assertEqual(bool(row[1]), bool(re.search(r"`contracts/[\w/]+\.[ch]`", row[2])), row)

    def test_every_test_of_theirs_has_an_answer(self):
        rows = rows_of("docs/contracts.md", "Microsoft's tests, and ours")
        self.assertGreater(len(rows), 50)
        for row in rows:
            self.assertEqual(len(row), 2, row)
            self.assertTrue(row[0] and row[1], row)


class Limits(unittest.TestCase):
    def test_costs_are_those_that_are_tested(self):
        tested = {name: (int(most), int(usual)) for name, most, usual in
                  re.findall(r"BOUND\((cdacq_\w+), (\d+), (\d+)\)", text_of("tests/contracts/test_fuel.c"))}
        stated = {name: (int(row[1].replace(",", "")), int(row[2].replace(",", "")))
                  for row in rows_of("docs/limits.md", "Work") for name in re.findall(r"`(cdacq_\w+)`", row[0])}
        self.assertEqual(stated, tested)
        asking = {name for name, parameters in execution_manager_functions() if "session" in parameters}
        self.assertEqual(set(stated), asking)

    def test_fuel_is_that_of_the_code(self):
        code = text_of("target/reader.h")
        rows = {row[0]: int(row[1].replace(",", "")) for row in rows_of("docs/limits.md", "Work") if len(row) == 2}
        for name, task in [("FUEL_LOOKUP", "one address to its method"), ("FUEL_NAME", "one method to its name"),
                           ("FUEL_INDEX", "indexing a code range, or opening a ReadyToRun image"),
                           ("FUEL_OPEN", "reading the descriptor"),
                           ("FUEL_HEAP", "every object of the GC heap; 256 bytes of it are a unit")]:
            product = re.search(rf"{name} = ([\d *]+),", code).group(1)
            value = 1
            for factor in product.split("*"):
                value *= int(factor)
            self.assertEqual(rows[task], value, name)


if __name__ == "__main__":
    unittest.main()
