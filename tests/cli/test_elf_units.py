"""test_elf_units.py: the debug information of `cdacq elf` is cheap for those who read it, as readelf shows it."""
import bisect
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOOL = os.environ["CDACQ_TOOL"]
CORE = os.path.join(os.environ["CDACQ_FIXTURES"], "hello-net10-x64", "core")


@unittest.skipIf(shutil.which("readelf") is None, "readelf is not installed")
class Units(unittest.TestCase):
    def test_units_have_few_ranges(self):
        """binutils takes time with the square of the ranges of a unit. Each function is in one, and units do not overlap."""
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "all.elf")
            subprocess.run([TOOL, "elf", CORE, "--r2r", "all", "-o", path], capture_output=True)
            aranges = subprocess.run(["readelf", "--debug-dump=aranges", path], capture_output=True, text=True).stdout
            symbols = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, errors="replace").stdout
            units = subprocess.run(["readelf", "--debug-dump=info", "--dwarf-depth=1", path], capture_output=True,
                                   text=True, errors="replace").stdout
        ranges = [[(int(start, 16), int(length, 16)) for start, length in re.findall(r"(?m)^ +([0-9a-f]{16}) ([0-9a-f]{16})$", unit)
                   if int(length, 16)] for unit in aranges.split("Length:")[1:]]
        functions = [(int(value, 16), int(size, 0)) for value, size in re.findall(
            r"(?m)^ *\d+: ([0-9a-f]+) +(\d+|0x[0-9a-f]+) FUNC ", symbols)]
        self.assertGreater(len(functions), 50000)
        self.assertEqual(units.count("DW_TAG_compile_unit"), len(ranges))
        self.assertGreaterEqual(len(ranges), len(functions) // 1024)
        self.assertLessEqual(max(map(len, ranges)), 1024)
        every = sorted(each for unit in ranges for each in unit)
        self.assertLess(len(every), len(functions) // 100)
        for (start, length), (after, _) in zip(every, every[1:]):
            self.assertLessEqual(start + length, after)
        for value, size in functions:
            start, length = every[bisect.bisect_right(every, (value, 1 << 64)) - 1]
            self.assertLessEqual((start, value + size), (value, start + length))


if __name__ == "__main__":
    unittest.main()
