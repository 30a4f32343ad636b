"""Objects of a core, read through cdacq/object.h: the runtime's own debugger services (DAC) are the judge."""

import json
import os
import subprocess

from core_memory import CoreMemory

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
OBJECTS = os.environ.get("CDACQ_OBJECTS", "objects")
BOOLEAN, CHARACTER, SIGNED, UNSIGNED, REAL, REFERENCE, POINTER, STRUCT = range(8)  # enum cdacq_value_kind
LEAST_OBJECTS, LEAST_FIELDS = 500, 2000
SHOWN = 5


class Tally:
    """What was compared, and what differs."""

    def __init__(self):
        self.objects = self.fields = self.strings = self.elements = 0
        self.wrong = []

    def expect(self, equal, what):
        if not equal:
            self.wrong.append(what)


def compare_value(tally, memory, what, address, width, text):
    """Where a value is stored, and what it is. `width` is 0 where the judge does not say it: of a struct or an enum."""
    if text in ("none", "error"):
        tally.expect(False, f"{what}: {text}")
        return
    kind, found_width, found, bits = (int(word, base) for word, base in zip(text.split(":"), (10, 10, 16, 16)))
    tally.expect(found == address, f"{what} is at {found:x}, not {address:x}")
    if kind == STRUCT:
        tally.expect(not width, f"{what} is no struct")
        return
    tally.expect(not width or found_width == width, f"{what} has {found_width} bytes, not {width}")
    value = int.from_bytes(memory.at(address, found_width), "little", signed=kind == SIGNED) & (1 << 64) - 1
    tally.expect(bits == value, f"{what} is {bits:x}, not {value:x}")


def compare(tally, memory, expected, line):
    address, table, size, kind, *rest = line.split(" ")
    what = f"{expected['address']} ({kind})"
    tally.objects += 1
    tally.expect((address, table) == (expected["address"], expected["table"]), f"{what}: {line[:100]}")
    tally.expect(kind == ("string" if expected["string"] is not None else "array" if expected["array"] else "fields"), f"{what}: {line[:100]}")
    # The judge rounds sizes up to those of allocations.
    tally.expect(size.isdigit() and 0 <= int(expected["size"]) - int(size) < 8, f"{what} has {size} bytes, not {expected['size']}")
    if expected["string"] is not None:
        tally.strings += 1
        utf16 = expected["string"].encode("utf-16-le", "surrogatepass")
        tally.expect(bytes.fromhex(rest[1]) == utf16.decode("utf-16-le", "replace").encode(), f"{what} has another text")
    elif expected["array"]:
        array = expected["array"]
        tally.expect(rest[0] == f"{array['rank']}:{array['length']}:{array['element_size']}", f"{what} is {rest[0]}, not {array}")
        values = rest[1].split(";")[:-1]
        tally.expect(len(values) == len(array["elements"]), f"{what} has {len(values)} elements")
        for place, value in zip(array["elements"], values):
            tally.elements += 1
            compare_value(tally, memory, f"{what}, an element", int(place, 16), 0, value)
    else:
        values = rest[0].split(";")[:-1]
        tally.expect(len(values) == len(expected["fields"]), f"{what} has {len(values)} fields")
        for (name, place, is_reference, width), value in zip(expected["fields"], values):
            tally.fields += 1
            compare_value(tally, memory, f"{what}.{name}", int(place, 16), 8 if is_reference else width, value)
            tally.expect(not is_reference or value.startswith(f"{REFERENCE}:"), f"{what}.{name} is a reference")


def judge(services, core):
    """One line on what was compared, and what is wrong. `services` is a stack_run.Services."""
    info = json.loads(subprocess.run([TOOL, "info", "--json", core], stdout=subprocess.PIPE, check=True).stdout)
    answer = services.walk(core, os.path.dirname(info["runtime_path"]), "objects")
    if "error" in answer:
        return "the services", [answer["error"]]
    expected, memory, tally = answer["objects"], CoreMemory(core), Tally()
    names = [";".join(field[0] for field in item["fields"]) for item in expected]
    expected = [item for item, text in zip(expected, names) if " " not in text and len(text) < 50000]
    questions = "".join(f"{item['address']} {';'.join(field[0] for field in item['fields'])}\n" for item in expected)
    done = subprocess.run([OBJECTS, core, "values"], input=questions, stdout=subprocess.PIPE, text=True, check=True)
    for item, line in zip(expected, done.stdout.splitlines(), strict=True):
        compare(tally, memory, item, line)
    threads = subprocess.run([OBJECTS, core, "threads"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    tally.expect(sorted(threads) == sorted(answer["threads"]) and threads, f"the threads {threads}, not {answer['threads']}")
    tally.expect(tally.objects >= LEAST_OBJECTS and tally.fields >= LEAST_FIELDS, "too few objects")
    for text in tally.wrong[:SHOWN]:
        print(f"    {text}")
    said = f"{tally.objects} objects of the services: {tally.fields} fields, {tally.strings} strings, {tally.elements} elements; {len(threads)} threads"
    return said, [f"{len(tally.wrong)} differ"] if tally.wrong else []
