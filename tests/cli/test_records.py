"""`cdacq records`: files of random records in both byte orders against what their writer expects; damaged records,
cut files, and a file that is followed while it grows, is truncated and is replaced."""
import json
import os
import pathlib
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "support"), os.path.join(TESTS, "dotnet")]

import jitdump as judge  # noqa: E402
import jitdump_writer  # noqa: E402
from jitdump_writer import Jitdump  # noqa: E402

TOOL = os.environ["CDACQ_TOOL"]
ANSWERED, PARTLY, FAILED, USAGE = 0, 1, 2, 64


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name) / "jit-1.dump"

    def run_tool(self, status, *arguments, lines=0):
        done = subprocess.run([TOOL, "records", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), lines, done.stderr)
        self.assertTrue(all(line.startswith(b"cdacq: ") for line in done.stderr.splitlines()), done.stderr)
        return done

    def records(self, data, status=ANSWERED, lines=0):
        self.path.write_bytes(data)
        done = self.run_tool(status, "--json", self.path, lines=lines)
        return [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()], done.stderr.decode()

    def assert_text(self, data, status=ANSWERED, lines=0):
        """Printable, and one line a record but for indented ones."""
        self.path.write_bytes(data)
        text = self.run_tool(status, self.path, lines=lines).stdout.decode("utf-8")
        self.assertFalse([c for c in text if c != "\n" and not (" " <= c < "\x7f" or c >= "\xa0")])
        return [line for line in text.splitlines() if not line.startswith("  ")]


class Decoding(Case):
    def test_random_files(self):
        for seed in range(40):
            dump = jitdump_writer.random_jitdump(random.Random(seed), 60)
            with self.subTest(seed=seed):
                found, _ = self.records(dump.data)
                self.assertEqual(len(found), len(dump.expected))
                for mine, theirs in zip(found, dump.expected):
                    self.assertEqual(mine, theirs)
                lines = self.assert_text(dump.data)
                self.assertEqual([line.split(" ")[0] for line in lines],
                                 [str(record.get("offset", 0)) for record in dump.expected])
                loads = judge.read_loads(self.path)
                self.assertEqual([(hex(load.address), load.size) for load in loads],
                                 [(r["code_addr"], r["code_size"]) for r in found if r["type"] == "load"])

    def test_key_order_of_the_header(self):
        self.path.write_bytes(Jitdump(pid=7, timestamp=9).data)
        self.assertEqual(self.run_tool(ANSWERED, "--json", self.path).stdout,
                         b'{"type":"header","version":1,"total_size":40,"elf_mach":62,"pid":7,"timestamp":9,"flags":0,'
                         b'"endian":"little"}\n')

    def test_all_numbers_are_exact(self):
        dump = Jitdump(timestamp=(1 << 64) - 1, flags=1)
        dump.load((1 << 64) - 2, 0xFFFFFFFF, 0, (1 << 64) - 1, b"", (1 << 53) + 1, b"")
        found, _ = self.records(dump.data)
        self.assertEqual(found, dump.expected)
        self.assertEqual(found[1]["vma"], "0xffffffffffffffff")
        self.assertEqual(found[1]["code_index"], 9007199254740993)

    def test_short_header(self):
        """Fields beyond total_size do not exist: records begin there."""
        dump = Jitdump(total_size=32, timestamp=5)
        dump.close(1)
        found, _ = self.records(dump.data)
        self.assertEqual(found, dump.expected)

    def test_arch_timestamp(self):
        self.assertIn("ticks", self.assert_text(Jitdump(flags=1).data)[0])
        self.assertNotIn("ticks", self.assert_text(Jitdump(flags=2).data, PARTLY, 1)[0])

    def test_long_names(self):
        """Of any length, also beyond every block; characters are not cut where output is."""
        for big in (False, True):
            for length in [400, 511, 512, 4095, 65000, 70000, 700001]:
                dump = Jitdump(big)
                name = ("é" * length + "x").encode() + b"\xbf" * 9 + "日".encode() * 9000
                dump.debug_info(1, 5, [(5, 1, 0, name)])
                dump.load(1, 1, 1, 5, b"code", 1, name)
                dump.close(2)
                self.assertEqual(self.records(dump.data)[0], dump.expected)

    def test_large_code_is_passed_over(self):
        dump = Jitdump()
        for i in range(1, 5):
            dump.load(i, 1, 1, 0x1000 * i, bytes(1 << 20), i, b"n")
        self.assertEqual(self.records(dump.data)[0], dump.expected)


class Binding(Case):
    def test_the_last_of_a_kind_counts(self):
        dump = Jitdump()
        first = dump.debug_info(1, 0x10, [])
        second = dump.debug_info(1, 0x10, [(0x10, 1, 0, b"f")])
        dump.load(1, 1, 1, 0x10, b"", 1, b"a")
        dump.load(1, 1, 1, 0x10, b"", 2, b"b")
        found, stderr = self.records(dump.data, PARTLY, 1)
        self.assertNotEqual(first, second)
        self.assertEqual([r["debug_info"] for r in found if r["type"] == "load"], [second, None])
        self.assertIn(f"at offset {first}, of 0x10, has no JIT_CODE_LOAD", found[2]["error"])
        self.assertIn(str(first), stderr)

    def test_several_functions_at_once(self):
        """DEBUG(A) UNWIND DEBUG(B) UNWIND SAMPLY LOAD(A) LOAD(B), and an UNWIND before the next one."""
        dump = Jitdump()
        debug_a, unwind_a = dump.debug_info(1, 0x10, []), dump.unwinding_info(1, b"a", 0, 0)
        debug_b, unwind_b = dump.debug_info(1, 0x20, []), dump.unwinding_info(1, b"b", 0, 0)
        samply_b = dump.samply(1, [], [], [], [], [], [])
        dump.load(1, 1, 1, 0x10, b"", 1, b"a")
        dump.load(1, 1, 1, 0x20, b"", 2, b"b")
        unwind_c = dump.unwinding_info(1, b"c", 0, 0)
        dump.load(1, 1, 1, 0x30, b"", 3, b"c")
        loads = [r for r in self.records(dump.data)[0] if r["type"] == "load"]
        self.assertEqual([(r["debug_info"], r["unwinding_info"], r["samply_debug_info2"]) for r in loads],
                         [(debug_a, unwind_a, None), (debug_b, unwind_b, samply_b), (None, unwind_c, None)])

    def test_a_name_as_before(self):
        dump = Jitdump()
        dump.debug_info(1, 0x10, [(0x10, 1, 0, b"\xff"), (0x11, 2, 0, b"/a b\xff"), (0x12, 3, 0, b"\xff"), (0x13, 4, 0, b"\xff"),
                                  (0x14, 5, 0, b"c"), (0x15, 6, 0, b"\xff")])
        dump.load(2, 1, 2, 0x10, b"code", 3, b"g")
        self.path.write_bytes(dump.data)
        expected = ["\\xff", "/a b\\xff", "/a b\\xff", "/a b\\xff", "c", "c"]
        text = self.run_tool(ANSWERED, self.path).stdout.decode()
        self.assertEqual([line.split(maxsplit=1)[1].rsplit(":", 2)[0] for line in text.splitlines() if line.startswith("  0x")],
                         expected)
        lines = self.run_tool(ANSWERED, "--json", self.path).stdout.splitlines()
        names = [entry["name"] for entry in json.loads(lines[1])["entries"]]
        self.assertEqual((names[0] != names[1], names[1:4], names[4:]), (True, [names[1]] * 3, ["c", "c"]))

    def test_blocks_of_stubs_without_code(self):
        """.NET 11 writes them while their pages do not exist yet. No other record may lack its code."""
        for name, status in (("stub ReportStubBlock<Unknown>", ANSWERED), ("stub ReportStubBlock", PARTLY), ("f", PARTLY)):
            dump = Jitdump()
            dump.record(0, 1, dump.pack("IIQQQQ", 1, 2, 0x1000, 0x1000, 0x400, 1) + name.encode() + b"\0")
            dump.load(2, 1, 2, 0x4000, b"code", 3, b"g")
            self.path.write_bytes(dump.data)
            done = self.run_tool(status, self.path, lines=1)
            self.assertIn(b"1 block of stubs without code, as .NET 11 writes it" if status == ANSWERED else b"0 bytes are left",
                          done.stderr)
            self.assertIn(b"g +0x0", self.run_tool(status, self.path, "--at", "0x4000", lines=int(status != ANSWERED)).stdout)

    def test_debug_info_of_another_function(self):
        """At the end of the file, or where it is closed."""
        for closed in (False, True):
            dump = Jitdump()
            dump.debug_info(1, 0x10, [])
            dump.load(1, 1, 1, 0x20, b"", 1, b"a")
            if closed:
                dump.close(2)
            found, stderr = self.records(dump.data, PARTLY, 1)
            self.assertIsNone(found[2]["debug_info"])
            self.assertIn("0x10", stderr)
            if closed:
                self.assertIn("0x10", found[3]["error"])

    def test_a_code_index_twice(self):
        dump = Jitdump()
        for index in (5, 6, 4):
            dump.load(1, 1, 1, 0x10 * index, b"", index, b"a" * 90000)
        first = dump.loads[4]
        dump.load(1, 1, 1, 0x80, b"", 4, b"second")
        dump.load(1, 1, 1, 0x90, b"", 9, b"third")
        found, stderr = self.records(dump.data, PARTLY, 1)
        self.assertEqual([r["error"] is None for r in found[1:]], [True, True, True, False, True])
        self.assertEqual(found[4]["name"], "second")
        self.assertIn(str(first), found[4]["error"])
        self.assertIn("code_index", stderr)

    def test_after_the_end(self):
        dump = Jitdump()
        end = dump.close(1)
        dump.load(1, 1, 1, 0x10, b"", 1, b"a")
        found, _ = self.records(dump.data, PARTLY, 1)
        self.assertIn(f"offset {end}", found[2]["error"])

    def test_a_close_with_a_payload(self):
        dump = Jitdump()
        dump.record(3, 1, b"12345678")
        self.assertIn("8 bytes", self.records(dump.data, PARTLY, 1)[0][1]["error"])

    def test_unknown_flags(self):
        found, stderr = self.records(Jitdump(flags=6).data, PARTLY, 1)
        self.assertIn("0x6", found[0]["error"])
        self.assertIn("0x6", stderr)

    def test_eh_frame_hdr(self):
        for fdes, damage, word in [([(0, 4), (8, 0)], None, None), ([(8, 4), (0, 0)], None, "not in order"),
                                   ([(0, 99)], None, "no FDE"), ([(0, 0)], (8, 2), "entries"),
                                   ([(0, 0)], (0, 2), "damaged"), ([(0, 0)], (4, 4096), "eh_frame")]:
            dump = Jitdump()
            data, header = dump.eh_frame(b"12345678", fdes)
            data = bytearray(data)
            if damage:
                at = 8 + damage[0]
                data[at:at + (1 if not damage[0] else 4)] = dump.pack("B" if not damage[0] else "I", damage[1])
            dump.unwinding_info(1, bytes(data), header, 0)
            dump.load(1, 1, 1, 0x10, b"", 1, b"a")
            found, _ = self.records(dump.data, PARTLY if word else ANSWERED, 1 if word else 0)
            if word:
                self.assertIn(word, found[1]["error"])
            else:
                self.assertEqual(found[1]["fde_count"], 2)

    def test_eh_frame_hdr_before_eh_frame(self):
        """As the specification has it. The address that LLVM writes is one of the process."""
        for big in (False, True):
            dump = Jitdump(big)
            frame = b"12345678" * 3
            absolute = bytes([1, 0x0c, 0xff, 0xff]) + dump.pack("Q", 0x7f0012345678)
            for form, entries, word in [("before", [(0, 4), (8, 0)], None), ("before", [(0, 99)], "no FDE"),
                                        ("before", [(8, 4), (0, 0)], "not in order"), ("absolute", None, None)]:
                size = 12 + 8 * len(entries or [])
                header = absolute if not entries else bytes([1, 0x1b, 3, 0x3b]) + dump.pack(
                    "iI", size - 4, len(entries)) + b"".join(dump.pack("ii", begin, size + fde) for begin, fde in entries)
                dump = Jitdump(big)
                dump.unwinding_info(1, header + frame, len(header), 0)
                dump.load(1, 1, 1, 0x10, b"", 1, b"a")
                found, _ = self.records(dump.data, PARTLY if word else ANSWERED, 1 if word else 0)
                self.assertIn(word or "None", str(found[1]["error"]), form)
                self.assertEqual(found[1]["fde_count"] or 0, len(entries or []), form)

    def test_eh_frame_hdr_of_a_function_without_unwinding_data(self):
        """What V8 writes; and an .eh_frame_hdr without entries and .eh_frame."""
        for header in (b"\x01\xff\xff\xff" + bytes(16), b"\x01\x1b\xff\xff" + bytes(4)):
            dump = Jitdump()
            dump.unwinding_info(1, header, len(header), 0)
            dump.load(1, 1, 1, 0x10, b"", 1, b"a")
            self.assertIsNone(self.records(dump.data)[0][1]["error"])

    def test_counts_of_eh_frame_hdr(self):
        """A count of 8 bytes, whose product with the size of an entry is less than the count."""
        for count in (1, 1 << 61, (1 << 61) + 1, (1 << 64) - 1):
            dump = Jitdump()
            frame = bytes(16)
            header = bytes([1, 0x1b, 4, 0x3b]) + dump.pack("iQ", -len(frame) - 4, count)
            dump.unwinding_info(1, frame + header, len(header), 0)
            dump.load(1, 1, 1, 0x10, b"", 1, b"a")
            found, _ = self.records(dump.data, PARTLY, 1)
            self.assertIn(f"has {count} entries, and 0 bytes", found[1]["error"])

    def test_ranges_of_samply(self):
        lists = [[b"f"], [b"n"], [(0, 0, 1, 0, 0)], [(0, 1, 0, 1, 0), (1, 1, 0, 1, 0)], [(0, 8), (2, 4)], [(0, 0, 1, 0)]]
        for index, value, word, where in [(0, [b"f"], None, 1), (4, [(0, 8), (2, 7)], "outside", 1),
                                          (4, [(0, 17), (2, 4)], "goes up to 17", 2),
                                          (5, [(0, 0, 0, 0)], "line_number is 0", 1), (5, [(20, 0, 1, 0)], "20", 2)]:
            dump = Jitdump()
            dump.samply(1, *lists[:index], value, *lists[index + 1:])
            dump.load(1, 1, 1, 0x10, bytes(16), 1, b"a")
            found, _ = self.records(dump.data, PARTLY if word else ANSWERED, 1 if word else 0)
            if word:
                self.assertIn(word, found[where]["error"])

    def test_many_ranges_of_samply(self):
        """Sorted, as they mostly are: the last one of 1,000 is found to be outside. Adjoining ranges count as one."""
        parent = [(2 * i, 2) for i in range(1000)]
        for last, word in [((1996, 4), None), ((1999, 2), "range_list[1999]")]:
            dump = Jitdump()
            dump.samply(1, [b"f"], [b"n"], [(0, 0, 1, 0, 0)], [(0, 1000, 0, 1, 0), (1, 1000, 0, 1, 0)],
                        parent + parent[:-1] + [last], [(0, 0, 1, 0)])
            dump.load(1, 1, 1, 0x10, bytes(4000), 1, b"a")
            found, _ = self.records(dump.data, PARTLY if word else ANSWERED, 1 if word else 0)
            self.assertIn(word or "None", str(found[1]["error"]))

    def test_positions_of_samply(self):
        """The record that samply reads; what it could not use is reported, and another body of its id is a tier."""
        good = [[(0, 0), (4, 1)], [(-1, 0, 1, 1, 2, 3, 4), (0, 0, -1, 0, 0, 5, 6)], [b"n", b"f"]]
        for big in (False, True):
            for index, value, word, where in [
                    (0, good[0], None, 1), (0, [(0, 0), (0, 1)], "code_offset[1]", 1), (0, [(0, 2)], "source_position", 1),
                    (0, [(17, 0)], "goes up to 17", 2), (1, [(0, 0, 1, 0, 0, 0, 0)] * 2, "caller_index", 1),
                    (1, [(-1, 2, 1, 0, 0, 0, 0)] * 2, "function_name", 1), (1, [(-1, 0, 2, 0, 0, 0, 0)] * 2, "file", 1)]:
                dump = Jitdump(big)
                dump.samply_positions(1, 0x10, *good[:index], value, *good[index + 1:])
                dump.load(1, 1, 1, 0x10, bytes(16), 1, b"a")
                found, _ = self.records(dump.data, PARTLY if word else ANSWERED, 1 if word else 0)
                if word:
                    self.assertIn(word, found[where]["error"])
                else:
                    self.assertEqual(found, dump.expected)
            body = bytes(dump.data[56:56 + 32 + 16 + 56 + 4])
            for other in (body[:-1], body + b"\0", body + b"x", body[:31], b""):
                tier = Jitdump(big)
                tier.record(jitdump_writer.SAMPLY_TIER, 1, other)
                found, _ = self.records(tier.data)
                self.assertEqual(found[1]["type"], "samply_tier")

    def test_moves(self):
        dump = Jitdump()
        dump.load(1, 1, 1, 0x10, b"12", 7, b"a")
        dump.move(2, 1, 1, 0x20, 0x10, 0x20, 2, 7)
        dump.move(3, 1, 1, 0x30, 0x20, 0x30, 2, 7)
        dump.load(1, 1, 1, 0x10, b"123", 8, b"b")
        dump.move(3, 1, 1, 0x40, 0x10, 0x40, 3, 8)
        found, _ = self.records(dump.data)
        self.assertEqual(found, dump.expected)

    def test_moves_that_contradict(self):
        for arguments, word in [((0x20, 0x11, 0x20, 2, 7), "old_code_addr"), ((0x20, 0x10, 0x20, 3, 7), "code_size"),
                                ((0x20, 0x10, 0x20, 2, 6), "code_index")]:
            dump = Jitdump()
            dump.load(1, 1, 1, 0x10, b"12", 7, b"a")
            dump.move(2, 1, 1, *arguments)
            dump.close(3)
            found, stderr = self.records(dump.data, PARTLY, 1)
            self.assertIn(word, found[2]["error"])
            self.assertIn(word, stderr)
            self.assertEqual(found[3], dump.expected[3])


class Damage(Case):
    """A bad record is reported and does not affect the others."""

    def assert_damaged(self, dump, word, **fields):
        """The record at index 1 is bad, as `word` says; `fields` are its remaining values."""
        dump.load(9, 1, 1, 0x77, b"x", 1 << 40, b"after")
        found, stderr = self.records(dump.data, PARTLY, 1)
        self.assertIn(word, found[1]["error"] or "")
        self.assertIn(word, stderr)
        self.assertIn(str(found[1]["offset"]), stderr)
        for key, value in fields.items():
            self.assertEqual(found[1][key], value, key)
        self.assertEqual(found[2]["name"], "after")
        self.assertEqual(len(self.assert_text(dump.data, PARTLY, 1)), 3)
        return found[1]

    def test_short_records(self):
        for kind in (0, 1, 2, 4, jitdump_writer.SAMPLY_DEBUG_INFO2):
            for size in (0, 1, 15):
                dump = Jitdump()
                dump.record(kind, 1, bytes(size))
                record = self.assert_damaged(dump, "bytes")
                self.assertTrue(all(value is None for key, value in record.items()
                                    if key not in ("type", "id", "offset", "size", "timestamp", "error")), record)

    def test_name_without_an_end(self):
        dump = Jitdump()
        dump.record(0, 1, dump.pack("IIQQQQ", 1, 2, 3, 4, 0, 5) + b"abc")
        self.assert_damaged(dump, "name", name=None, vma="0x3", code_index=5)

    def test_code_size(self):
        for size in (4, 1 << 63, (1 << 64) - 1):
            dump = Jitdump()
            dump.record(0, 1, dump.pack("IIQQQQ", 1, 2, 0, 4, size, 5) + b"abc\0xyz")
            self.assert_damaged(dump, "code_size", name="abc", code_size=size)

    def test_entries(self):
        for count, body, left in [(1, b"", 0), (2, bytes(17), 1), ((1 << 64) - 1, bytes(17 * 3), 3), (1, bytes(16), 0),
                                  (1, bytes(16) + b"abc", 0)]:
            dump = Jitdump()
            dump.record(2, 1, dump.pack("QQ", 0, count) + body)
            record = self.assert_damaged(dump, "nr_entry", nr_entry=count)
            self.assertEqual(len(record["entries"]), left)

    def test_entries_of_wrong_memory(self):
        """Node.js 20 writes such entries for scripts with a sourceURL."""
        for address in (0x7da07d29a2000000, 0x5fff, 0x6000 + (1 << 32)):
            dump = Jitdump()
            dump.debug_info(1, 0x6000, [(0x6040, 4, 18, b"a.js"), (address, 1, 2, b"x")])
            record = self.assert_damaged(dump, "1 of 2 entries are not in the function at 0x6000: number 2", nr_entry=2)
            self.assertIn("Node.js 20", record["error"])

    def test_unwinding_info(self):
        for sizes, word in [((4, 0, 0), "unwind_data_size"), (((1 << 64) - 1, 0, 0), "unwind_data_size"),
                            ((3, 4, 0), "eh_frame_hdr_size")]:
            dump = Jitdump()
            dump.record(4, 1, dump.pack("QQQ", *sizes) + b"abc")
            self.assert_damaged(dump, word, unwind_data_size=sizes[0])

    def test_samply(self):
        files, names, functions = [b"f"], [b"n", b"m"], [(0, 0, 1, 0, 0), (1, 0, 2, 0, 0)]
        calls, ranges, lines = [(0, 1, 1, 1, 0), (1, 2, 1, 1, 0)], [(0, 1), (2, 1), (4, 1)], [(0, 0, 1, 0)]
        good = [files, names, functions, calls, ranges, lines]
        for index, value, word in [
                (2, [(2, 0, 1, 0, 0)] * 2, "function_name_index"), (2, [(0, 1, 1, 0, 0)] * 2, "file_index"),
                (3, [(1, 3, 1, 1, 0)], "depth"), (3, [(0, 1, 1, 1, 0), (2, 2, 1, 1, 0)], "depth"),
                (3, [(0, 3, 2, 1, 0)], "function_index"), (3, [(0, 0, 1, 1, 0), (0, 3, 1, 1, 0)], "range_count"),
                (3, [(0, 2, 1, 1, 0)], "range_count"), (4, [], "range_count"), (5, [(0, 1, 1, 0)], "file_index")]:
            lists = good[:index] + [value] + good[index + 1:]
            dump = Jitdump()
            dump.samply(1, *lists)
            expected = {key: value for key, value in dump.expected[1].items() if key != "error"}
            self.assert_damaged(dump, word, **expected)

    def test_samply_sizes(self):
        """Every count and size wrong, and every cut: each is reported, and none hides the next."""
        whole = Jitdump()
        whole.samply(1, [b"f", b"g"], [b"n"], [(0, 0, 1, 0, 0)], [(0, 1, 0, 1, 0)], [(0, 1)], [(0, 0, 1, 0)])
        body = bytes(whole.data[56:])
        dump = Jitdump()
        for field in range(8):
            for value in (0, 1, 3, 5, 100, 0x7FFFFFFF, 0xFFFFFFFF):
                right = struct.unpack_from(whole.order + "I", body, 4 * field)[0]
                if value == right or (field, value) in ((0, 1), (2, 3)):  # what is a string might be padding
                    continue
                dump.record(jitdump_writer.SAMPLY_DEBUG_INFO2, 1,
                            body[:4 * field] + dump.pack("I", value) + body[4 * field + 4:])
        for cut in range(32, len(body)):
            dump.record(jitdump_writer.SAMPLY_DEBUG_INFO2, 1, body[:cut])
        found, _ = self.records(dump.data, PARTLY, 21)
        self.assertEqual([record["offset"] for record in found[1:]], [record["offset"] for record in dump.expected[1:]])
        for record in found[1:]:
            self.assertIsNotNone(record["error"], record)
        self.assert_text(dump.data, PARTLY, 21)

    def test_many_problems_are_counted(self):
        dump = Jitdump()
        dump.samply(1, [b"f"], [b"n"], [(1, 1, 0, 0, 0)] * 5, [], [], [])
        self.assert_damaged(dump, "and 9 more")

    def test_complaints_end(self):
        dump = Jitdump()
        for _ in range(50):
            dump.record(1, 1, b"")
        found, stderr = self.records(dump.data, PARTLY, 21)
        self.assertEqual(len(found), 51)
        self.assertIn("30 more", stderr)


class Cut(Case):
    def test_every_cut(self):
        for big in (False, True):
            dump = Jitdump(big)
            ends = [len(dump.data)]
            dump.load(1, 1, 1, 0x10, b"code", 1, b"a")
            ends.append(len(dump.data))
            dump.close(2)
            ends.append(len(dump.data))
            for size in range(0, len(dump.data) + 1, 3 if big else 1):
                if size < 40:
                    found, stderr = self.records(dump.data[:size], FAILED, 1)
                    self.assertEqual(found, [])
                elif size in ends:
                    found, _ = self.records(dump.data[:size])
                    self.assertEqual(found, dump.expected[:ends.index(size) + 1])
                else:
                    found, stderr = self.records(dump.data[:size], PARTLY, 1)
                    whole = sum(end < size for end in ends)
                    self.assertEqual(found, dump.expected[:whole])
                    self.assertIn(f"offset {ends[whole - 1]},", stderr)

    def test_sizes_that_lead_nowhere(self):
        for size in (0, 1, 15):
            dump = Jitdump()
            dump.close(1)
            found, stderr = self.records(dump.data + dump.pack("IIQ", 0, size, 0), PARTLY, 1)
            self.assertEqual(found, dump.expected)
            self.assertIn("56", stderr)
        dump = Jitdump()
        self.records(dump.data + dump.pack("IIQ", 0, 0xFFFFFFFF, 0) + bytes(100), PARTLY, 1)

    def test_not_a_jitdump(self):
        good = bytes(Jitdump().data)
        for data in [b"\x7fELF" + good[4:], good[:4] + b"\3" + good[5:], good[:4] + bytes(4) + good[8:],
                     good[:8] + b"\x0b" + good[9:], bytes(100)]:
            found, _ = self.records(data, FAILED, 1)
            self.assertEqual(found, [])

    def test_no_file(self):
        self.run_tool(FAILED, "/nowhere/at/all", lines=1)
        self.run_tool(FAILED, self.path.parent, lines=1)
        self.run_tool(FAILED, "/dev/null", lines=1)

    def test_usage(self):
        self.run_tool(USAGE, lines=1)
        self.run_tool(USAGE, self.path, "x", lines=1)
        self.run_tool(USAGE, self.path, "--stop", lines=1)

    def test_the_file_is_not_overwritten(self):
        data = bytes(Jitdump().data)
        self.path.write_bytes(data)
        self.run_tool(FAILED, self.path, "-o", self.path, lines=1)
        self.assertEqual(self.path.read_bytes(), data)


class Follow(Case):
    """A writer and a reader at the same time."""

    def start(self, *arguments):
        self.process = subprocess.Popen([TOOL, "records", "--follow", "--json", *map(str, arguments or [self.path])],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.buffer = b""
        self.addCleanup(self.stop)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def line(self, seconds=20):
        """The next line that the tool prints; None where none comes."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    def assert_ends(self, status, lines=0):
        stdout, stderr = self.process.communicate(timeout=20)
        self.assertEqual(self.process.returncode, status, stderr)
        self.assertEqual(stderr.count(b"\n"), lines, stderr)
        self.assertEqual(stdout, b"")
        return stderr.decode()

    def append(self, data):
        with open(self.path, "ab") as file:
            file.write(data)

    def test_small_writes(self):
        """From an empty file, some bytes at a time: each record is printed once it is whole, and not before."""
        source = random.Random(1)
        dump = jitdump_writer.random_jitdump(source, 25)
        while any(record["type"] == "close" for record in dump.expected):
            dump = jitdump_writer.random_jitdump(source, 25)
        dump.close(1)
        self.path.write_bytes(b"")
        self.start()
        begins = [0] + [record["offset"] for record in dump.expected[1:]] + [len(dump.data)]
        for expected, begin, end in zip(dump.expected, begins, begins[1:]):
            cut = source.randrange(begin, end)
            self.append(dump.data[begin:cut])
            if source.random() < 0.1:
                self.assertIsNone(self.line(0.3))
            self.append(dump.data[cut:end])
            self.assertEqual(self.line(), expected)
        self.assert_ends(ANSWERED)

    def test_room_that_is_not_filled_yet(self):
        dump = Jitdump()
        self.path.write_bytes(dump.data + bytes(4096))
        self.start()
        self.assertEqual(self.line(), dump.expected[0])
        self.assertIsNone(self.line(0.3))
        dump.load(1, 1, 1, 0x10, b"code", 1, b"a")
        with open(self.path, "r+b") as file:
            file.write(dump.data)
        self.assertEqual(self.line(), dump.expected[1])
        self.process.send_signal(signal.SIGINT)
        self.assert_ends(ANSWERED)

    def test_truncated(self):
        first, second = Jitdump(pid=1), Jitdump(pid=2)
        first.load(1, 1, 1, 0x10, bytes(5000), 1, b"first")
        second.load(1, 1, 1, 0x20, b"code", 1, b"second")
        second.close(1)
        self.path.write_bytes(first.data)
        self.start()
        self.assertEqual([self.line(), self.line()], first.expected)
        os.truncate(self.path, 0)
        self.assertIsNone(self.line(0.3))
        self.append(second.data)
        self.assertEqual([self.line() for _ in second.expected], second.expected)
        self.assertIn("truncated", self.assert_ends(ANSWERED, 1))

    def test_rewritten(self):
        """Truncated and longer than before again, when it is looked at next."""
        first, second = Jitdump(pid=1), Jitdump(pid=2)
        second.load(1, 1, 1, 0x20, bytes(500), 1, b"second")
        second.close(1)
        self.path.write_bytes(first.data)
        self.start()
        self.assertEqual(self.line(), first.expected[0])
        with open(self.path, "r+b") as file:
            file.write(second.data)
        self.assertEqual([self.line() for _ in second.expected], second.expected)
        self.assertIn("rewritten", self.assert_ends(ANSWERED, 1))

    def test_replaced(self):
        """The records of the old file are read first; moves are those of the new one."""
        first, second = Jitdump(pid=1), Jitdump(True, pid=2)
        first.load(1, 1, 1, 0x10, b"code", 1, b"first")
        second.load(1, 1, 1, 0x20, b"12345", 1, b"second")
        second.move(1, 1, 1, 0x30, 0x20, 0x30, 5, 1)
        second.close(1)
        self.path.write_bytes(first.data[:50])
        self.start()
        self.assertEqual(self.line(), first.expected[0])
        self.append(first.data[50:])
        other = self.path.with_name("new")
        other.write_bytes(second.data)
        os.rename(other, self.path)
        self.assertEqual(self.line(), first.expected[1])
        self.assertEqual([self.line() for _ in second.expected], second.expected)
        self.assertIn("took its place", self.assert_ends(ANSWERED, 1))

    def test_removed(self):
        dump = Jitdump()
        self.path.write_bytes(dump.data)
        self.start()
        self.assertEqual(self.line(), dump.expected[0])
        dump.close(1)
        with open(self.path, "ab") as file:
            os.unlink(self.path)
            time.sleep(0.3)
            file.write(dump.data[40:])
        self.assertEqual(self.line(), dump.expected[1])
        self.assert_ends(ANSWERED)

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.path.write_bytes(Jitdump().data)
            self.start()
            self.assertIsNotNone(self.line())
            self.process.send_signal(number)
            self.assert_ends(ANSWERED)

    def test_damage_shows_in_the_exit_code(self):
        dump = Jitdump()
        dump.record(1, 1, b"")
        dump.close(1)
        self.path.write_bytes(dump.data)
        self.start()
        self.assertEqual([self.line()["type"] for _ in range(3)], ["header", "move", "close"])
        self.assert_ends(PARTLY, 1)

    def test_a_reader_that_leaves(self):
        """Also while there is nothing to write."""
        self.path.write_bytes(Jitdump().data)
        self.start()
        self.assertIsNotNone(self.line())
        self.process.stdout.close()
        self.process.wait(timeout=20)
        self.assertEqual(self.process.stderr.read(), b"")

    def test_not_a_jitdump(self):
        self.path.write_bytes(b"x" * 100)
        self.start()
        self.assert_ends(FAILED, 1)

    def test_a_header_that_is_not_written_yet(self):
        """Nothing of it, its first field, or its first two."""
        for written in (0, 4, 8):
            dump = Jitdump()
            dump.close(1)
            self.path.write_bytes(dump.data[:written] + bytes(len(dump.data) - written))
            self.start()
            time.sleep(0.3)
            with open(self.path, "r+b") as file:
                file.write(dump.data)
            self.assertEqual([self.line() for _ in dump.expected], dump.expected)
            self.assert_ends(ANSWERED)

    def rewrite(self, seconds, add):
        """A file with one function is read, then written over with another file of the same header and length, and what
        `add` adds to it."""
        first, second = Jitdump(), Jitdump()
        for dump, name in [(first, b"first!"), (second, b"second")]:
            dump.load(1, 1, 1, 0x20, bytes(500), 1, name)
        self.path.write_bytes(first.data)
        self.start()
        self.assertEqual([self.line() for _ in first.expected], first.expected)
        time.sleep(seconds)
        add(second)
        with open(self.path, "r+b") as file:
            file.write(second.data)
        self.assertEqual([self.line() for _ in second.expected], second.expected)
        return second

    def test_rewritten_with_the_same_length_and_header(self):
        second = self.rewrite(0.3, lambda dump: None)
        second.close(1)
        self.append(second.data[-16:])
        self.assertEqual(self.line(), second.expected[-1])
        self.assertIn("rewritten", self.assert_ends(ANSWERED, 1))

    def test_rewritten_and_longer_with_the_same_header(self):
        self.rewrite(0, lambda dump: dump.close(1))
        self.assertIn("rewritten", self.assert_ends(ANSWERED, 1))

    def test_cut_after_the_close(self):
        dump = Jitdump()
        dump.close(1)
        self.path.write_bytes(dump.data + b"x")
        self.start()
        self.assertEqual([self.line() for _ in dump.expected], dump.expected)
        self.assertIn("is cut", self.assert_ends(PARTLY, 1))


class At(Case):
    """The function that has an address, from the file alone."""

    def ask(self, address, *more):
        done = self.run_tool(ANSWERED, "--json", self.path, "--at", hex(address), *more)
        found = json.loads(done.stdout)
        self.assertEqual(found["ip"], hex(address))
        return found["name"], found["start"], found["offset"]

    def test_moves_and_times(self):
        dump = Jitdump()
        dump.load(10, 1, 1, 0x1000, bytes(16), 1, b"one")
        dump.load(20, 1, 1, 0x2000, bytes(16), 2, b"two")
        dump.move(30, 1, 1, 0x3000, 0x1000, 0x3000, 16, 1)
        dump.load(40, 1, 1, 0x1008, bytes(16), 3, b"three")
        dump.load(50, 1, 1, 0x2008, bytes(16), 4, b"four")
        self.path.write_bytes(dump.data)
        none = (None, None, None)
        for address, time_, expected in [
                (0x1004, None, none), (0x1004, 9, none), (0x1004, 10, ("one", "0x1000", 4)),
                (0x1004, 29, ("one", "0x1000", 4)), (0x1004, 30, none), (0x3004, 29, none),
                (0x3004, 30, ("one", "0x3000", 4)), (0x3004, None, ("one", "0x3000", 4)),
                (0x100c, None, ("three", "0x1008", 4)), (0x2004, 49, ("two", "0x2000", 4)), (0x2004, None, none),
                (0x200c, None, ("four", "0x2008", 4)), (0x3010, None, none)]:
            more = ["--time", time_] if time_ else []
            self.assertEqual(self.ask(address, *more), expected, (hex(address), time_))
        text = self.run_tool(ANSWERED, self.path, "--at", "3004").stdout
        self.assertEqual(text, b"0x3004 one +0x4 [0x3000 +0x10, index 1]\n")
        self.assertEqual(self.run_tool(ANSWERED, self.path, "--at", "1").stdout, b"0x1 [none]\n")

    def test_damage(self):
        """The answer is given, but what is wrong with the file may make it wrong."""
        good, short, contradicted = Jitdump(), Jitdump(), Jitdump()
        for dump in (good, short, contradicted):
            dump.load(10, 1, 1, 0x1000, bytes(16), 1, b"one")
        contradicted.move(20, 1, 1, 0x3000, 0x1000, 0x3000, 64, 1)
        short.record(0, 20, bytes(8))
        endless = good.data + bytes(16)
        for data, word, address, expected in [
                (good.data[:-1], "is cut", 0x1004, (None, None, None)), (short.data, "fields take", 0x1004, ("one", "0x1000", 4)),
                (endless, "cannot be found", 0x1004, ("one", "0x1000", 4)),
                (contradicted.data, "code_size", 0x3004, ("one", "0x3000", 4)),
                (contradicted.data, "code_size", 0x3010, (None, None, None))]:
            self.path.write_bytes(data)
            done = self.run_tool(PARTLY, "--json", self.path, "--at", hex(address), lines=1)
            found = json.loads(done.stdout)
            self.assertEqual((found["name"], found["start"], found["offset"]), expected)
            self.assertEqual(found["damaged"], 1)
            self.assertIn(word, found["problem"])
            self.assertIn(word.encode(), done.stderr)

    def test_ends_of_the_address_space(self):
        dump = Jitdump()
        dump.load(10, 1, 1, 2**64 - 16, bytes(16), 1, b"last")
        dump.load(10, 1, 1, 0x1000, bytes(16), 2, b"one")
        dump.load(10, 1, 1, 0x1008, b"", 3, b"empty")
        self.path.write_bytes(dump.data)
        self.assertEqual(self.ask(2**64 - 1), ("last", hex(2**64 - 16), 15))
        self.assertEqual(self.ask(0x100f), ("one", "0x1000", 15))
        self.assertEqual(self.records(dump.data)[0], dump.expected)

    def test_usage(self):
        self.path.write_bytes(Jitdump().data)
        self.run_tool(USAGE, self.path, "--time", "1", lines=1)
        self.run_tool(USAGE, self.path, "--at", "x", lines=1)
        self.run_tool(USAGE, self.path, "--at", "1", "--time", "x", lines=1)


class OfAProcess(Case):
    """`records PID`: the file that the process maps, or that its environment leads to."""

    def start(self, program, **variables):
        process = subprocess.Popen([sys.executable, "-c", program, str(self.path.parent)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env={**os.environ, **variables})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        return process, int(process.stdout.readline())

    def test_mapped(self):
        program = ("import mmap, os, sys; name = f'{sys.argv[1]}/jit-{os.getpid()}.dump';"
                   "data = open(name.replace(str(os.getpid()), '1'), 'rb').read(); open(name, 'wb').write(data);"
                   "m = mmap.mmap(os.open(name, os.O_RDWR), len(data)); print(os.getpid(), flush=True); input()")
        self.path.write_bytes(Jitdump(pid=77).data)
        process, pid = self.start(program)
        found = json.loads(self.run_tool(ANSWERED, "--json", pid).stdout)
        self.assertEqual(found["pid"], 77)
        self.assertEqual(process.poll(), None)

    def test_two_are_mapped(self):
        """The one of this process, and of several the one that is where a .NET runtime writes, in whatever order they are
        mapped."""
        program = ("import mmap, os, sys; maps = []\n"
                   "for folder, pid in (line.split() for line in sys.argv[2].split(',')):\n"
                   "    name = f'{sys.argv[1]}/{folder}/jit-{os.getpid()}.dump'; own = os.getpid() if pid == 'own' else int(pid)\n"
                   "    os.makedirs(os.path.dirname(name), exist_ok=True)\n"
                   "    data = open(f'{sys.argv[1]}/jit-1.dump', 'rb').read()\n"
                   "    data = data[:20] + own.to_bytes(4, 'little') + bytes([len(folder)]) + data[25:]\n"
                   "    open(name, 'wb').write(data); maps.append(mmap.mmap(os.open(name, os.O_RDWR), len(data)))\n"
                   "print(os.getpid(), flush=True); input()")
        self.path.write_bytes(Jitdump(pid=77).data)
        for order, expected in (("a own,bb own", 1), ("bb own,a own", 1), ("a 5,bb own", 2), ("bb own,a 5", 2), ("a 5,bb 6", 1)):
            process = subprocess.Popen([sys.executable, "-c", program, str(self.path.parent), order], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env={**os.environ, "DOTNET_PerfMapJitDumpPath": f"{self.path.parent}/a/"})
            pid = int(process.stdout.readline())
            found = json.loads(self.run_tool(ANSWERED, "--json", pid).stdout.splitlines()[0])
            process.communicate(b"\n")
            with self.subTest(order):
                self.assertEqual(found["timestamp"] & 0xFF if "timestamp" in found else found, expected)

    def test_deleted(self):
        """What is old in /tmp is deleted on many systems. The process still has the file open."""
        program = ("import mmap, os, sys; name = f'{sys.argv[1]}/jit-{os.getpid()}.dump';"
                   "data = open(name.replace(str(os.getpid()), '1'), 'rb').read(); open(name, 'wb').write(data);"
                   "m = mmap.mmap(os.open(name, os.O_RDWR), len(data)); os.unlink(name); print(os.getpid(), flush=True); input()")
        dump = Jitdump(pid=77)
        dump.close(1)
        self.path.write_bytes(dump.data)
        process, pid = self.start(program)
        found = json.loads(self.run_tool(ANSWERED, "--json", pid).stdout.splitlines()[0])
        self.assertEqual(found["pid"], 77)
        follower = subprocess.Popen([TOOL, "records", "--json", "--follow", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(json.loads(follower.stdout.readline())["pid"], 77)
        process.kill()
        _, stderr = follower.communicate(timeout=20)
        self.assertEqual((follower.returncode, stderr), (ANSWERED, b""))

    def test_it_ends(self):
        """A .NET runtime does not close its jitdump. What it wrote last is read, too."""
        process, pid = self.start("import os; print(os.getpid(), flush=True); input()", JITDUMPDIR=str(self.path.parent))
        dump, place = Jitdump(pid=pid), self.path.with_name(f"jit-{pid}.dump")
        place.write_bytes(dump.data)
        follower = subprocess.Popen([TOOL, "records", "--json", "--follow", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(json.loads(follower.stdout.readline())["pid"], pid)
        with open(place, "ab") as file:
            file.write(b"x")
        process.kill()
        stdout, stderr = follower.communicate(timeout=20)
        self.assertEqual((follower.returncode, stdout), (PARTLY, b""))
        self.assertIn(b"is cut", stderr)

    def test_its_file_is_not_overwritten(self):
        _, pid = self.start("import os; print(os.getpid(), flush=True); input()", JITDUMPDIR=str(self.path.parent))
        dump, place = Jitdump(pid=pid), self.path.with_name(f"jit-{pid}.dump")
        dump.close(1)
        place.write_bytes(dump.data)
        for follow in [[], ["--follow"]]:
            self.assertIn(b"will not be overwritten", self.run_tool(FAILED, pid, "-o", place, *follow, lines=1).stderr)
            self.assertEqual(place.read_bytes(), dump.data)

    def test_by_the_environment_and_not_yet(self):
        _, pid = self.start("import os; print(os.getpid(), flush=True); input()", JITDUMPDIR=str(self.path.parent))
        self.run_tool(FAILED, pid, lines=1)
        waiting = subprocess.Popen([TOOL, "records", "--json", "--follow", str(pid)], stdout=subprocess.PIPE)
        self.addCleanup(waiting.stdout.close)
        dump = Jitdump(pid=pid)
        dump.close(1)
        time.sleep(0.3)
        self.assertIsNone(waiting.poll())
        other = self.path.with_name("other")
        other.write_bytes(dump.data)
        os.rename(other, self.path.with_name(f"jit-{pid}.dump"))
        self.assertEqual(json.loads(waiting.stdout.readline())["pid"], pid)
        self.assertEqual(waiting.wait(timeout=20), ANSWERED)

    def test_of_an_earlier_process(self):
        """A file that the process does not map is not its own if it is older, or of another pid."""
        _, pid = self.start("import os; print(os.getpid(), flush=True); input()", JITDUMPDIR=str(self.path.parent))
        place, dump = self.path.with_name(f"jit-{pid}.dump"), Jitdump(pid=pid)
        dump.close(1)
        place.write_bytes(Jitdump(pid=77).data)
        self.assertIn(b"is of process 77", self.run_tool(FAILED, pid, lines=1).stderr)
        place.write_bytes(dump.data)
        os.utime(place, (time.time() - 3600,) * 2)
        self.assertIn(b"is older than the process", self.run_tool(FAILED, pid, lines=1).stderr)
        waiting = subprocess.Popen([TOOL, "records", "--json", "--follow", str(pid)], stdout=subprocess.PIPE)
        self.addCleanup(waiting.stdout.close)
        time.sleep(0.3)
        self.assertIsNone(waiting.poll())
        os.utime(place)
        self.assertEqual(json.loads(waiting.stdout.readline())["pid"], pid)
        self.assertEqual(waiting.wait(timeout=20), ANSWERED)


if __name__ == "__main__":
    unittest.main()
