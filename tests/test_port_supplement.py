#!/usr/bin/env python3
"""The supplements of arm64 are what scripts/port-supplement makes of those of x86-64, and it guesses nothing."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts/port-supplement"


def load():
    loader = importlib.machinery.SourceFileLoader("port_supplement", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("port_supplement", loader))
    loader.exec_module(module)
    return module


class PortSupplement(unittest.TestCase):
    def test_files(self):
        result = subprocess.run([SCRIPT, "--check"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))

    def test_fields_move_as_their_neighbours(self):
        port = load()
        before = {"!": 64, "A": 0, "B": [16, "uint32"], "Gone": 20, "C": 32, "D": 48}
        after = {"!": 80, "A": 0, "B": [24, "uint32"], "C": 40, "D": 64}
        self.assertEqual(port.distance_between("T.x", 24, before, after), 8)
        self.assertEqual(port.distance_between("T.x", 56, before, after), 16)
        for unknown in (8, 40):  # between fields that move differently
            with self.assertRaises(SystemExit):
                port.distance_between("T.x", unknown, before, after)
        self.assertEqual(port.distance_between("T.x", 18, before, after, lock=10), 8)  # no lock is between B and it
        with self.assertRaises(SystemExit):  # nor between it and C
            port.distance_between("T.x", 24 + 1, before, before | {"C": 40}, lock=10)
        with self.assertRaises(SystemExit):  # in front of all fields
            port.distance_between("T.x", 8, {"C": 32}, {"C": 32})

    def test_a_type_without_a_reason(self):
        port = load()
        self.assertEqual(port.ported_fields("Thread", {"x": [4, "uint32"]}, {"Thread": {"a": 0, "b": 8}},
                                            {"Thread": {"a": 0, "b": 8}}), {"x": [4, "uint32"]})
        with self.assertRaises(SystemExit):
            port.ported_fields("Unknown", {"x": 8}, {}, {})

    def test_registers_of_another_type(self):
        port, added = load(), {"Args": {"Registers": 0}}
        port.check_added(added, {"Registers": {"!": 16, "X19": 8}, "Args": {"X0": 16, "X19": 8}})
        with self.assertRaises(SystemExit):
            port.check_added(added, {"Registers": {"!": 16, "X19": 8}, "Args": {"X0": 16, "X19": 0}})

    def test_what_the_next_release_publishes(self):
        port = load()
        later = {"T": {"a": 8, "b": 64}}, {"T": {"a": 16, "b": 56}}
        self.assertEqual(port.ported_fields("T", {"a": [8, "uint32"]}, {}, {}, "9.0", later), {"a": [16, "uint32"]})
        with self.assertRaises(SystemExit):  # it was elsewhere on x86-64
            port.ported_fields("T", {"a": 24}, {}, {}, "9.0", later)
        registers = {"R": {"R12": 0}}, {"R": {"!": 96, "X19": 16}}
        self.assertEqual(port.ported_fields("R", {"R12": 0}, {}, {}, "9.0", registers), {"!": 96, "X19": 16})


if __name__ == "__main__":
    unittest.main()
