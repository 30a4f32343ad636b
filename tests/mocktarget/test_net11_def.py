#!/usr/bin/env python3
"""mocktarget/net11.def is what make_descriptor.py makes of the bundled descriptor of .NET 11."""
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/fixtures"))

import make_descriptor  # noqa: E402


class Definition(unittest.TestCase):
    def test_it_is_of_the_bundled_descriptor(self):
        text = (SOURCE / "tests/fixtures/descriptors/11.0.json").read_bytes()
        self.assertEqual(make_descriptor.definition_of(text), (SOURCE / "mocktarget/net11.def").read_text("ascii"))

    def test_lists_are_sorted(self):
        rows = {}
        for line in (SOURCE / "mocktarget/net11.def").read_text("ascii").splitlines():
            if line.startswith("NET11_"):
                kind, _, rest = line.partition("(")
                words = [word.strip() for word in rest.rstrip(")").split(",")]
                rows.setdefault(kind, []).append(".".join(words[:2]) if kind == "NET11_FIELD" else words[0])
        self.assertEqual(len(rows), 6)
        for names in rows.values():
            self.assertEqual(names, sorted(set(names)))


if __name__ == "__main__":
    unittest.main()
