"""
Cores with a forged field that something else in them contradicts. The answer must not be wrong without a mark. (A value
that nothing contradicts is believed: docs/limits.md.)
"""
import bisect
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from core_edit import Core, Runtime  # noqa: E402
from emulation import time_bound  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
CRASHES = ["crash-net8-x64", "crash-net9-x64", "crash-net10-x64"]
FRAME_SIZE = 32  # of a stack trace: address, stack pointer, method, flags


def ask(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=time_bound(60), check=False)
    return done.returncode, done.stdout, done.stderr


def rows(*arguments):
    return [json.loads(line) for line in ask(*arguments)[1].splitlines()]


def frame_descriptions(core, addresses):
    """Where the call-frame information of each of these return addresses is: FDEs (LSB, .eh_frame)."""
    for base, _, _ in core.segments:
        if core.u32(base) != 0x464C457F:
            continue
        table, = struct.unpack("<Q", core.read(base + 32, 8))
        headers = [core.read(base + table + 56 * i, 56) for i in range(struct.unpack("<H", core.read(base + 56, 2))[0])]
        found = [struct.unpack_from("<Q", header, 16)[0] for header in headers if header and header[:4] == b"\x50\xe5\x74\x64"]
        for index in (base + address for address in found if core.read(base + address, 12)):
            places = (core.read(index + 12 + 8 * i, 8) for i in range(core.u32(index + 8)))  # those that the core has
            rows = sorted(struct.unpack("<ii", place) for place in places if place)
            for address in addresses:
                i = bisect.bisect_right(rows, (address - 1 - index, 1 << 31)) - 1
                at = index + rows[i][1] if i >= 0 else 0
                if core.read(at, 16) and 0 <= address - 1 - index - rows[i][0] < core.u32(at + 12):
                    yield at


def traced_frames(runtime, methods):
    """(address, instruction pointer, MethodDesc) of each frame of the stack traces of exceptions: where an address in the
    code of a method is followed by a stack pointer and the method."""
    for begin, size, offset in runtime.segments:
        for at in range(offset, offset + size - FRAME_SIZE, 8):
            ip, stack, desc, _ = struct.unpack_from("<4Q", runtime.bytes, at)
            method = methods.get(desc)
            if method and stack >> 40 == 0x7F and 0 < ip - int(method["code_start"], 16) <= method["code_size"]:
                yield begin + at - offset, ip, desc


class Contradictions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def forge(self, runtime, *changes):
        """A core with these (address, bytes)."""
        before = [(at, runtime.read(at, len(data))) for at, data in changes]
        for at, data in changes:
            runtime.poke(at, data)
        path = runtime.save(os.path.join(self.folder.name, "core"))
        for at, data in before:
            runtime.poke(at, data)
        return path

    def test_traces(self):
        """A frame of an exception has the method of its code: with another one, it has no line, and the text is marked."""
        for name in CRASHES:
            path = FIXTURES / name / "core"
            runtime = Runtime(path, TOOL)
            methods = {int(m["method_desc"], 16): m for m in rows("methods", "--json", "--r2r=all", path)
                       if m["method_desc"] and m["code_size"] and m["method"]}
            frames = list(traced_frames(runtime, methods))
            self.assertGreaterEqual(len(frames), 3, name)
            whole, = rows("report", "--json", path)
            self.assertEqual([nested["inferred"] for nested in whole["nested_exceptions"]], [False])
            changed = 0
            for at, _, desc in frames:
                other = next(d for d in methods if methods[d]["token"] != methods[desc]["token"])
                with self.subTest(core=name, frame=methods[desc]["method"]):
                    report, = rows("report", "--json", self.forge(runtime, (at + 16, struct.pack("<Q", other))))
                    changed += self.judge_traces(whole, report, methods[other]["method"])
            self.assertGreaterEqual(changed, 1, name)

    def judge_traces(self, whole, forged, other):
        """Whether the trace of the nested exception changed, which is not marked in the whole core. A frame may be of an
        array that is no longer used."""
        short = other.partition("(")[0].rpartition(".")[2]
        texts = [(report["last_words"], *report["nested_exceptions"]) for report in (whole, forged)]
        for before, after in zip(*texts, strict=True):
            added = set(after["text"].splitlines()) - set(before["text"].splitlines())
            self.assertFalse([line for line in added if f".{short}(" in line and " in " in line], after["text"])
            self.assertTrue(after["inferred"] or after["missing"] or after["text"] == before["text"], after["text"])
        return texts[0][1]["text"] != texts[1][1]["text"]

    def test_call_frame_information(self):
        """A stack that forged rules lead through other places is marked, but for the few that come upon another true
        return address (docs/limits.md)."""
        def stacks(path):
            code, out, said = ask("stack", "--json", path)
            found = {}
            for frame in map(json.loads, out.splitlines()):
                found.setdefault(frame["tid"], []).append((frame["ip"], frame["method"]))
            return code == 1 or bool(said), found

        path = FIXTURES / "crash-net10-x64" / "core"
        core = Core(path)
        marked, right = stacks(path)
        self.assertFalse(marked)
        counts = {True: 0, False: 0}
        for at in sorted(set(frame_descriptions(core, {int(ip, 16) for frames in right.values() for ip, _ in frames}))):
            rules = core.read(at + 20, core.u32(at) - 16)
            for i in (i for i in range(1, len(rules) - 1) if rules[i] == 0x0E):  # DW_CFA_def_cfa_offset
                for delta in (8, -8):
                    marked, found = stacks(self.forge(core, (at + 20 + i + 1, bytes([rules[i + 1] + delta & 0x7F]))))
                    if found != right:
                        counts[marked] += 1
        self.assertGreater(counts[True], 50, counts)
        self.assertLessEqual(counts[False] * 20, counts[True], counts)

    def test_threads(self):
        """A list of threads that lacks some of those that the runtime counts is reported, and one in a cycle ends."""
        for name in CRASHES:
            path = FIXTURES / name / "core"
            runtime = Runtime(path, TOOL)
            fields = runtime.descriptor["types"]["Thread"]
            store = runtime.u64(int(runtime.descriptor["globals"]["ThreadStore"]["value"], 16))
            link = runtime.at(store, "ThreadStore", "FirstThreadLink")
            following = runtime.u64(link)
            self.assertTrue(link and following, name)
            for what, target in (("cut", 0), ("cycle", link)):
                with self.subTest(core=name, what=what, next=hex(fields["LinkNext"]["offset"])):
                    code, _, said = ask("stack", self.forge(runtime, (link, struct.pack("<Q", target))))
                    self.assertTrue(code == 1 or said, "no mark")

    def test_nested_exceptions_in_a_cycle(self):
        """The exceptions that a thread handles lead from one to the next, and never back."""
        path = FIXTURES / "crash-net10-x64" / "core"
        runtime = Runtime(path, TOOL)
        report, = rows("report", "--json", path)
        nested = [int(item["address"], 16) for item in report["nested_exceptions"]]
        self.assertTrue(nested)
        previous = runtime.field("ExceptionInfo", "PreviousNestedInfo")
        thrown = runtime.field("ExceptionInfo", "ThrownObject")
        infos = [begin + at - offset - thrown for begin, size, offset in runtime.segments
                 for at in range(offset, offset + size - 8, 8)
                 if struct.unpack_from("<Q", runtime.bytes, at)[0] in nested and runtime.read(begin + at - offset - thrown, 64)]
        self.assertTrue(infos)
        for info in infos:
            forged = self.forge(runtime, (info + previous, struct.pack("<Q", info)))
            code, out, said = ask("report", "--json", forged)
            self.assertIn(code, (0, 1))
            found = json.loads(out)["nested_exceptions"]
            self.assertLessEqual(len(found), len(nested) + 1, said)

    def test_hot_and_cold_code(self):
        """Cold code has the method that a hot/cold map in order gives it, or none, with an error."""
        folder = FIXTURES / "net10-hot-cold-x64"
        runtime = Runtime(folder / "core", TOOL)
        ips = [line.split()[0] for line in (folder / "expected.txt").read_text().splitlines() if line[0] != "#"]
        info = next(i for i in runtime.infos() if runtime.u32(i + runtime.field("ReadyToRunInfo", "NumHotColdMap")))
        count = runtime.u32(info + runtime.field("ReadyToRunInfo", "NumHotColdMap"))
        table = runtime.at(info, "ReadyToRunInfo", "HotColdMap")
        hot = list(struct.unpack(f"<{count}I", runtime.read(table, 4 * count)))[1::2]
        whole = rows("ip2method", "--json", folder / "core", *ips)
        self.assertGreaterEqual(sum(bool(answer["cold"]) for answer in whole), len(hot))
        for what, forged in (("exchanged", [hot[1], hot[0], *hot[2:]]), ("reversed", hot[::-1]),
                             ("one method", hot[:1] * len(hot)), ("no method", [0] * len(hot))):
            core = self.forge(runtime, *((table + 8 * i + 4, struct.pack("<I", n)) for i, n in enumerate(forged)))
            code, out, said = ask("ip2method", "--json", core, *ips)
            with self.subTest(what=what):
                answers = [json.loads(line) for line in out.splitlines()]
                changed = [after for before, after in zip(whole, answers, strict=True) if before != after]
                self.assertEqual(code, 1, said)
                self.assertGreaterEqual(len(changed), 2)
                self.assertEqual({(answer["status"], answer["method"]) for answer in changed}, {("error", None)})

    def test_runtime_functions(self):
        """The functions of a ReadyToRun image are in order and do not overlap, and are those that its header has: what
        an address between others is of cannot be known, one by one or with many."""
        path = FIXTURES / "hello-net10-x64" / "core"
        runtime = Runtime(path, TOOL)
        number, table_of = (runtime.field("ReadyToRunInfo", name) for name in ("NumRuntimeFunctions", "RuntimeFunctions"))
        info = min(runtime.infos(), key=lambda at: runtime.u32(at + number))
        count, table = runtime.u32(info + number), runtime.u64(info + table_of)
        functions = [struct.unpack("<III", runtime.read(table + 12 * i, 12)) for i in range(count)]
        section = next(s for s in runtime.sections if (module := runtime.at(s, "RangeSection", "R2RModule")) and
                       runtime.at(module, "Module", "ReadyToRunInfo") == info)
        base = runtime.at(section, "RangeSection", "RangeBegin")
        i = count // 2
        (begin, end, unwind), following = functions[i:i + 2]
        near = [f"{base + at:x}" for row in functions[i - 2:i + 4] for at in (row[0], (row[0] + row[1]) // 2)]
        every = [f"{base + row[0]:x}" for row in functions]
        whole = {ip: answer["method"] for ip, answer in zip(near + every, rows("ip2method", "--json", path, *near, *every), strict=True)}
        self.assertNotIn(None, whole.values())
        place = table + 12 * i
        forged = {"exchanged": (place, struct.pack("<6I", *following, begin, end, unwind)),
                  "twice": (place + 12, struct.pack("<3I", begin, end, unwind)),
                  "too early": (place, struct.pack("<I", functions[i - 1][0] + 1)),
                  "first": (place, struct.pack("<I", 0)),
                  "too late": (place, struct.pack("<I", 0x7FFFFFFF)),
                  "too long": (place + 4, struct.pack("<I", functions[i + 2][1])),
                  "reversed": (table, b"".join(struct.pack("<3I", *row) for row in reversed(functions))),
                  "another table": (info + table_of, struct.pack("<Q", table + 12)),
                  "more": (info + number, struct.pack("<I", count + 2))}
        for what, change in forged.items():
            core = self.forge(runtime, change)
            for ips in ([near[4]], near, every + near):
                with self.subTest(what=what, addresses=len(ips)):
                    code, out, said = ask("ip2method", "--json", core, *ips)
                    answers = [json.loads(line) for line in out.splitlines()]
                    self.assertEqual((code, len(answers)), (1, len(ips)), said)
                    for ip, answer in zip(ips, answers):
                        self.assertIn(answer["method"], (whole[ip], None))


if __name__ == "__main__":
    unittest.main()
