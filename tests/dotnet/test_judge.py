#!/usr/bin/env python3
"""Tests judge.py: every kind of wrong answer must be found.

Uses an invented jitdump, and a program in place of cdacq that answers from a table. Needs neither .NET nor the real
cdacq.
"""

import json
import os
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

import judge
from jitdump import live_records, read_loads
from runtime_names import Name

HERE = os.path.dirname(os.path.abspath(__file__))

ADD = "int32 [Demo] Demo.Calc::Add(int32,int32)[QuickJitted]"
ECHO = "instance !1 [Demo] Demo.Outer`1+Inner`1[System.__Canon,System.Int32]::Echo(!0,!1)[PreJIT]"
COLD = f"{ECHO}{ECHO.removesuffix('[PreJIT]')}[PreJit-cold]"
GONE = "int32 [Anonymously Hosted DynamicMethods Assembly] dynamicClass::Gone(int32)[Optimized]"
STUB = "stub Allocate<FixupPrecode>"
RECORDS = [(0x1000, 0x20, ADD), (0x2000, 0x30, ECHO), (0x3000, 0x10, COLD), (0x4000, 0x10, GONE), (0x5000, 24, STUB)]

FAKE = """#!{python}
import json, sys
table = json.load(open({table!r}))
for line in sys.stdin:
    ip = int(line, 16)
    answer = {{"ip": hex(ip), "status": "none"}}
    for start, end, found in table:
        if start <= ip < end:
            answer.update(found)
    if "--names" in sys.argv:
        answer["method"] = answer.get(sys.argv[sys.argv.index("--names") + 1])
    print(json.dumps(answer))
"""


def write_jitdump(path, records, cut=0):
    """A jitdump with these (address, size, name) records, without its last `cut` bytes."""
    data = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 1, 0, 0)
    for index, (address, size, name) in enumerate(records):
        body = name.encode() + b"\0" + bytes(size)
        data += struct.pack("<IIQIIQQQQ", 0, 56 + len(body), index, 1, 1, address, address, size, index) + body
    with open(path, "wb") as file:
        file.write(data[:len(data) - cut])


def managed(start, size, kind, method, cold=False):
    return {"status": "managed", "kind": kind, "method": method, "code_start": hex(start), "code_size": size, "cold": cold}


def right_answers():
    """[begin, end, answer] as a correct cdacq gives them."""
    echo = managed(0x2000, 0x30, "r2r", "Demo.Outer<T>.Inner<int>.Echo(T, int)")
    return [[0x1000, 0x1020, managed(0x1000, 0x20, "jit", "Demo.Calc.Add(int, int)")],
            [0x2000, 0x2030, echo], [0x3000, 0x3010, {**echo, "cold": True}], [0x5000, 0x5018, {"status": "stub"}]]


class JudgeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)
        write_jitdump(self.path("jitdump"), RECORDS)
        with open(self.path("released"), "w", encoding="utf-8") as file:
            file.write("dynamicClass::Gone\n")

    def judge(self, table, *arguments):
        """(exit code, output) of judge.py for a cdacq with this table."""
        with open(self.path("table"), "w", encoding="utf-8") as file:
            json.dump(table, file)
        fake = self.path("cdacq")
        with open(fake, "w", encoding="utf-8") as file:
            file.write(FAKE.format(python=sys.executable, table=self.path("table")))
        os.chmod(fake, stat.S_IRWXU)
        arguments = arguments or ("--jitdump", self.path("jitdump"), "--released", self.path("released"))
        done = subprocess.run([sys.executable, os.path.join(HERE, "judge.py"), fake, "1", *arguments],
                              stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout

    def assert_fault(self, label, row, **changes):
        table = right_answers()
        table[row][2].update(changes)
        code, output = self.judge(table)
        self.assertEqual(code, 1, output)
        self.assertIn(label, output)

    def test_right_answers_pass(self):
        code, output = self.judge(right_answers())
        self.assertEqual(code, 0, output)
        self.assertIn("3 jit: ok", output)
        self.assertIn("3 freed: none", output)

    def test_wrong_answers_inside_are_found(self):
        self.assert_fault("jit: not-managed (none)", 0, status="none")
        self.assert_fault("jit: wrong-start", 0, code_start="0x1004")
        self.assert_fault("jit: wrong-size", 0, code_size=0x1f)
        self.assert_fault("jit: wrong-kind", 0, kind="r2r")
        self.assert_fault("jit: wrong-tier", 0, tier="Tier1")
        self.assert_fault("jit: wrong-name", 0, method="Demo.Calc.Sub(int, int)")
        self.assert_fault("jit: wrong-parameters", 0, method="Demo.Calc.Add(int)")
        self.assert_fault("r2r: wrong-name", 1, method="Demo.Outer.Inner<U>.Echo(T, U)")
        self.assert_fault("r2r-cold: wrong-cold", 2, cold=False)
        self.assert_fault("r2r-cold: wrong-start", 2, code_start="0x3000")

    def test_spelling_is_compared_to_the_last_byte(self):
        arguments = ("--jitdump", self.path("jitdump"), "--released", self.path("released"), "--spelling")
        table = right_answers()
        for row, name in enumerate([ADD, ECHO, ECHO]):
            table[row][2]["il"] = name[:name.rindex("[")]
        code, output = self.judge(table, *arguments)
        self.assertEqual(code, 0, output)
        self.assertIn("3 il: equal", output)
        table[1][2]["il"] += " "
        code, output = self.judge(table, *arguments)
        self.assertEqual(code, 1, output)
        self.assertIn("1 il: differs", output)

    def test_perf_map_lines_of_living_code_alone_are_read(self):
        lines = [f"0x1000 20 {ADD}", f"0x1000 21 {ADD}x", f"0x2000 30 {ECHO}", "0x9000 10 int32 [D] D::E()[Optimized]",
                 "0x1000 20 stub<1> GenerateStub<X>", f"\xd8\x01{ADD}"]
        with open(self.path("map"), "w", encoding="latin-1") as file:
            file.write("\n".join(lines) + f"\n0x2000 30 {ECHO[:9]}")
        expected = judge.as_expected(live_records(read_loads(self.path("jitdump"))))
        self.assertEqual(judge.read_perf_map(self.path("map"), expected), {0x1000: ADD[:ADD.rindex("[")]})

    def test_wrong_answers_outside_are_found(self):
        add = managed(0x1000, 0x20, "jit", "Demo.Calc.Add(int, int)")
        for extra, label in [([0x1020, 0x1030, add], "gap: ip outside of the claimed range"),
                             ([0x1020, 0x1030, {**add, "code_size": 0x40}], "gap: claims a range of another method"),
                             ([0x4000, 0x4010, managed(0x4000, 0x10, "jit", "x()")], "freed: names what is freed or a stub"),
                             ([0x5000, 0x5018, managed(0x5000, 24, "jit", "x()")], "stub: names what is freed or a stub"),
                             ([0x1020, 0x1030, {"status": "error"}], "gap: error")]:
            code, output = self.judge(right_answers() + [extra])
            self.assertEqual(code, 1, output)
            self.assertIn(label, output)

    def test_method_in_no_record_is_no_fault(self):
        code, output = self.judge(right_answers() + [[0x1020, 0x1030, managed(0x1020, 0x10, "r2r", "Not.Prepared()")]])
        self.assertEqual(code, 0, output)

    def test_expected_file_replaces_the_jitdump(self):
        self.judge(right_answers(), "--jitdump", self.path("jitdump"), "--released", self.path("released"),
                   "--expected", self.path("expected"))
        self.assertEqual(self.judge(right_answers(), "--from-expected", self.path("expected"))[0], 0)
        self.assertEqual(self.judge([], "--from-expected", self.path("expected"))[0], 1)


class JitdumpTest(unittest.TestCase):
    def loads(self, records, cut=0):
        with tempfile.NamedTemporaryFile() as file:
            write_jitdump(file.name, records, cut)
            return read_loads(file.name)

    def test_cut_record_ends_the_list(self):
        self.assertEqual(len(self.loads(RECORDS, cut=1)), len(RECORDS) - 1)

    def test_later_method_replaces_but_stub_does_not(self):
        other = ADD.replace("Add", "Other")
        live = live_records(self.loads([(0x1000, 32, ADD), (0x1010, 32, other), (0x1010, 32, STUB)]))
        self.assertEqual([load.name for load in live], [other])


class NameTest(unittest.TestCase):
    def test_names(self):
        for runtime, cdacq in [
                (ADD, "Demo.Calc.Add(int, int)"),
                (COLD, "Demo.Outer<T>.Inner<int>.Echo(T, int)"),
                ("void [Demo] Demo.P+<>c__1`2[System.__Canon,System.__Canon]::.cctor()[Optimized]", "Demo.P.<>c__1<A, B>..cctor()"),
                ("!!0 [Demo] Demo.G::Swap(!!0,!!0)[QuickJitted]", "Demo.G.Swap<T>(T, T)"),
                ("instance int32 [Demo] Demo.C::Demo.IBox<System.Int32>.Get()[QuickJitted]", "Demo.C.Demo.IBox<System.Int32>.Get()"),
                ("void [Demo] Demo.B`1[System.Nullable`1[System.ValueTuple`2[System.Int32,System.__Canon[]]][]]::M()[Optimized]", "Demo.B<(int, T2[])?[]>.M()"),
                ("instance void [Demo] Demo.C::set_Item(int32,string)[Optimized]", "Demo.C.this[int].set(int, string)"),
                ("instance int32 [Demo] Demo.C::get_Name()[Optimized]", "Demo.C.Name.get()"),
                ("int32 [Demo] Demo.C::op_CheckedExplicit(class Demo.C)[Optimized]", "Demo.C.explicit operator checked int(Demo.C)"),
                ("valuetype S`1<!0> [Demo] S`1[System.ValueTuple`2[System.__Canon,System.__Canon]]::op_Implicit(!0[])[PreJIT]",
                 "S<(T1, T2)>.implicit operator S<(T1, T2)>((T1, T2)[])"),
                ("int32 [Demo] dynamicClass::Odd (name)(string)[Optimized]", "dynamicClass.Odd (name)(...)"),
                ("void [M] N.T::F(method int32 *(int32,int32),int32[0...,0...]&)[PreJIT]", "N.T.F(delegate*<int, int, int>, ref int[,])"),
                ("instance void [M] <>f__AnonymousType0`1[System.__Canon]::.ctor(!0)[QuickJitted]", "<>f__AnonymousType0<<K>j__TPar>..ctor(<K>j__TPar)")]:
            self.assertIsNone(Name.parse(runtime).fault(cdacq), runtime)

    def test_wrong_arguments_are_found(self):
        for runtime, cdacq in [(ECHO, "Demo.Outer<T>.Inner<long>.Echo(T, long)"), (ECHO, "Demo.Outer<T>.Inner.Echo(T, int)"),
                               ("void [D] D.B`1[System.Int32[]]::M()[Optimized]", "D.B<int>.M()"),
                               ("instance int32 [D] D.C::get_Name()[Optimized]", "D.C.Name.set()")]:
            self.assertEqual(Name.parse(runtime).fault(cdacq), "name", cdacq)

    def test_generic_method_needs_its_parameters(self):
        self.assertEqual(Name.parse("!!0 [Demo] Demo.G::Swap(!!0,!!0)[QuickJitted]").fault("Demo.G.Swap(T, T)"), "name")

    def test_stubs_are_no_methods(self):
        self.assertIsNone(Name.parse(STUB))
        self.assertIsNone(Name.parse("stub<3> GenerateDispatchStub<GenerateDispatchStub>"))


if __name__ == "__main__":
    unittest.main()
