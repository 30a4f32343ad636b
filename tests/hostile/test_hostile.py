"""
Inputs made to hurt (generators.py), through every command: each ends, by itself and with an exit code that says what
became of it, and with messages of whole lines. Limits of time and memory guard against hangs and do not measure speed.
"""
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import generators  # noqa: E402
from core_edit import Core, Runtime  # noqa: E402
from emulation import EMULATED, time_bound  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL")
FIXTURES = pathlib.Path(os.environ.get("CDACQ_FIXTURES", "tests/fixtures"))
MESSAGE = re.compile(rb"(cdacq: [^\x00-\x1f\x7f]+\n)*")
COMMANDS = [["info"], ["ip2method", "7fd6610a1000", "200000001000", "ffffffffffffffff"], ["inspect", "200000001000"],
            ["methods", "--r2r=all", "--stubs"], ["descriptor"], ["perfmap", "-o", "OUT"], ["jitdump", "--r2r=all", "-o", "OUT"],
            ["snapshot", "--stacks", "-o", "OUT"], ["stack"], ["stack", "--json"], ["report"]]
if os.environ.get("CDACQ_HOSTILE_ALL"):  # the rest, which shares its code with those above
    COMMANDS += [["elf", "--code", "-o", "OUT"], ["snapshot", "-o", "OUT"], ["methods", "--json"], ["stack", "--each"],
                 ["report", "--json"], ["report", "--signature"], ["filter"]]
BOUNDS = ["--work-max=1M", "--memory-max=64M"]  # so that slow builds pass, too
HANG = time_bound(120)  # seconds
MEMORY = 4 << 30  # of address space; the sparse files take some


def is_sanitized():
    with open(TOOL, "rb") as file:
        return b"__asan_init" in file.read()


class Context:
    """The cores that the generators start from."""

    def __init__(self):
        self.tool = TOOL
        self.plain, self.net8, self.crash, self.hello = (
            str(FIXTURES / name / "core") for name in ("net10-x64", "net8-x64", "crash-net10-x64", "hello-net10-x64"))
        note = next(n for n in Core(self.crash).notes() if n[0] == generators.NT_FILE)[2]
        count, page = struct.unpack_from("<QQ", note)
        places = [struct.unpack_from("<QQQ", note, 16 + i * 24) for i in range(count)]
        self.mappings = [(*place, path) for place, path in zip(places, note[16 + count * 24 :].split(b"\0"))]
        self.page = page
        libc = next(m for m in self.mappings if m[3].endswith(b"libc.so.6"))
        self.native_pc = libc[0] + 0x30000
        listed = subprocess.run([TOOL, "methods", self.hello], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        self.method = int(listed.stdout.split()[0], 16)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = Context()
        cls.limits = not is_sanitized() and not EMULATED  # both reserve address space

    def run_tool(self, *arguments, statuses=(0, 1, 2), **options):
        def limit():
            if self.limits:
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

        done = subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=HANG, check=False, preexec_fn=limit, **options)
        what = (arguments, done.stderr[-2000:])
        self.assertIn(done.returncode, statuses, what)
        self.assertTrue(MESSAGE.fullmatch(done.stderr), what)
        lines = done.stderr.count(b"\n")
        self.assertLessEqual(lines, 300, what)
        if done.returncode == 2:
            self.assertGreaterEqual(lines, 1, what)
        return done

    def all_commands(self, path, folder):
        out = os.path.join(folder, "out")
        for command in COMMANDS:
            with self.subTest(core=os.path.basename(path), command=command[0]):
                arguments = [out if a == "OUT" else a for a in command]
                done = self.run_tool(arguments[0], path, *arguments[1:], *BOUNDS)
                if done.returncode == 2 and not done.stdout:
                    self.assertEqual(done.stderr.count(b"\n"), 1, (command, done.stderr))
                if "OUT" in command and done.returncode == 2:
                    self.assertFalse(os.path.exists(out), command)
                if os.path.exists(out):
                    os.unlink(out)

    def test_written_code(self):
        """Methods may share their bytes, so that their code is larger than any core: what is written has a bound, too."""
        with tempfile.TemporaryDirectory() as folder:
            path, out = generators.code_shares_bytes(folder, self.context), os.path.join(folder, "out")
            listed = self.run_tool("methods", path, "--work-max=0").stdout
            self.assertEqual(len(re.findall(rb"(?m)^0x2000\w+ \+0xfff80 ", listed)), 500)
            done = self.run_tool("jitdump", path, "-o", out, *BOUNDS, statuses=(1,))
            self.assertIn(b"stopped at the bound on work", done.stderr)
            self.assertLess(os.path.getsize(out), 16 << 20)
            os.unlink(out)
            done = self.run_tool("elf", "--code", path, "-o", out, *BOUNDS, statuses=(2,))
            self.assertIn(b"the bound on work", done.stderr)
            self.assertFalse(os.path.exists(out))

    def test_perf_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for make in generators.PERF_FILES:
                path = make(folder, self.context)
                with self.subTest(make=make.__name__):
                    self.run_tool("verify", self.context.hello, path, *BOUNDS)
                    if path.endswith(".dump"):
                        self.run_tool("records", path)

    def test_one_bad_range(self):
        """What is wrong with one code range takes nothing from the others, and every listing tells of it."""
        runtime = Runtime(self.context.plain, TOOL)
        where = runtime.jit_section()
        begin, end = (runtime.at(where, "RangeSection", name) for name in ("RangeBegin", "RangeEndOpen"))
        fragment = next(f for f in runtime.fragments if runtime.at(f, "RangeSectionFragment", "RangeSection") == where)
        changes = {"empty": (where, "RangeSection", "RangeBegin", end), "overlaps all": (where, "RangeSection", "RangeBegin", 0),
                   "cycle": (fragment, "RangeSectionFragment", "Next", fragment),
                   "other section": (fragment, "RangeSectionFragment", "RangeSection", 0x28)}
        listings = [("methods",), ("perfmap", "-o", "/dev/stdout"), ("methods", "--json"), ("elf", "-o", "OUT")]

        def lines(path, listing, folder):
            out = os.path.join(folder, "elf")
            done = self.run_tool(listing[0], path, *(out if a == "OUT" else a for a in listing[1:]), statuses=(0, 1))
            told = b"there may be more code" in done.stderr
            found = pathlib.Path(out).read_bytes().split(b"\0") if "OUT" in listing else done.stdout.splitlines()
            return {line for line in found if b"(" in line}, told

        with tempfile.TemporaryDirectory() as folder:
            whole = {listing: lines(self.context.plain, listing, folder) for listing in listings}
            for what, (base, structure, name, value) in changes.items():
                at = base + runtime.field(structure, name)
                before = runtime.read(at, 8)
                runtime.poke(at, struct.pack("<Q", value))
                path = runtime.save(os.path.join(folder, "core"))
                runtime.poke(at, before)
                for listing in listings:
                    with self.subTest(what=what, listing=listing):
                        left, told = lines(path, listing, folder)
                        self.assertGreater(len(whole[listing][0] & left), len(whole[listing][0]) / 8)
                        self.assertEqual((told, whole[listing][1]), (True, False))
                symfs = ("symfs", path, os.path.join(folder, "symfs"))
                for command in (("info", path), symfs):
                    self.assertIn(b"there may be more code", self.run_tool(*command, statuses=(1,)).stderr)
                methods = {int(line.split()[0], 16) for line in lines(path, listings[0], folder)[0]}
                for line in whole[listings[0]][0]:
                    address = int(line.split()[0], 16)
                    self.assertTrue(address in methods or begin <= address < end, (what, line))

    def test_one_bad_return_address(self):
        """A return address of 0 ends a stack, and one that leads nowhere is a guess: neither takes a managed frame."""
        core = Core(self.context.crash)

        def frames(path):
            done = self.run_tool("stack", "--json", path, statuses=(0, 1))
            return [json.loads(line) for line in done.stdout.splitlines()], done.returncode

        whole = frames(self.context.crash)[0]
        whole = [frame for frame in whole if frame["tid"] == whole[0]["tid"]]
        managed = {frame["ip"] for frame in whole if frame["method"]}
        first = next(i for i, frame in enumerate(whole) if frame["method"])
        self.assertGreater(min(first, len(managed)), 4)
        with tempfile.TemporaryDirectory() as folder:
            for frame in whole[: first - 1]:
                at = int(frame["cfa"], 16) - 8
                before = core.read(at, 8)
                for address in (0, 0x4141414141414141):
                    core.poke(at, struct.pack("<Q", address))
                    left, status = frames(core.save(os.path.join(folder, "core")))
                    left = [f for f in left if f["tid"] == whole[0]["tid"]]
                    self.assertEqual({f["ip"] for f in left if f["method"]}, managed, frame)
                    self.assertIn("frame", {f["by"] for f in left if f["method"]}, frame)
                    wrong = [f for f in left if f["ip"] == hex(address)]
                    self.assertEqual([f["by"] for f in wrong], ["guess"] if address else [], frame)
                    self.assertEqual(status, 1, frame)
                core.poke(at, before)

    def test_no_silent_gap(self):
        """Wherever a return address is damaged, the text of the stack tells where frames may be missing."""
        core = Core(self.context.crash)
        frames = [json.loads(line) for line in self.run_tool("stack", "--json", self.context.crash).stdout.splitlines()]
        frames = [frame for frame in frames if frame["tid"] == frames[0]["tid"]]
        with tempfile.TemporaryDirectory() as folder:
            for frame in frames[:-1]:
                at = int(frame["cfa"], 16) - 8
                before = core.read(at, 8)
                for address in (0, 0x4141414141414141):
                    core.poke(at, struct.pack("<Q", address))
                    path = core.save(os.path.join(folder, "core"))
                    done = self.run_tool("stack", path, statuses=(0, 1))
                    first = done.stdout.split(b"\n\n")[0]
                    if not address and b"frames may be missing" in first:
                        managed = self.run_tool("stack", "--managed", path, statuses=(1,)).stdout.split(b"\n\n")[0]
                        self.assertIn(b"frames may be missing", managed, frame)
                    self.assertEqual(done.returncode, 1, frame)
                    self.assertRegex(first, rb"\n     \.\.\. (frames may be missing here|cannot unwind further: )|\n#\d+\? ", frame)
                core.poke(at, before)

    def test_doubts_are_told(self):
        """Whatever is shown of a damaged stack, messages say what is wrong with it: `report` has those of `stack`."""
        core = Core(self.context.crash)
        frames = [json.loads(line) for line in self.run_tool("stack", "--json", self.context.crash).stdout.splitlines()]
        frames = [frame for frame in frames if frame["tid"] == frames[0]["tid"]]
        mark, told = re.compile(rb"; each is marked with [^\n]*"), set()
        with tempfile.TemporaryDirectory() as folder:
            for frame in (frames[0], frames[len(frames) // 2], frames[-2]):
                at = int(frame["cfa"], 16) - 8
                before = core.read(at, 8)
                for address in (0, 0x4141414141414141):
                    core.poke(at, struct.pack("<Q", address))
                    path = core.save(os.path.join(folder, "core"))
                    expected = mark.sub(b"", self.run_tool("stack", path, statuses=(1,)).stderr)
                    told.update(re.findall(rb"on a guess|frames may be missing|before the outermost", expected))
                    self.assertTrue(expected, frame)
                    for options in ([], ["--brief"], ["--signature"], ["--json"], ["--signature", "--json"]):
                        done = self.run_tool("report", *options, path, statuses=(1,))
                        self.assertTrue(mark.sub(b"", done.stderr).startswith(expected), options)
                core.poke(at, before)
        self.assertEqual(len(told), 3)

    def test_many_stacks_that_end(self):
        """Of threads whose stacks end, the first 20 have a message in JSON; then there is one about all."""
        def end(status, i):
            struct.pack_into("<QQ", status, 112 + 19 * 8, 16 + 8 * i, 0)  # rsp
            struct.pack_into("<Q", status, 112 + 16 * 8, self.context.native_pc)
        for count, lines in ((20, 20), (21, 21)):
            with tempfile.TemporaryDirectory() as folder:
                path = generators.threads(os.path.join(folder, "core"), self.context, count, end)
                said = self.run_tool("stack", "--json", path, statuses=(1,)).stderr.splitlines()
            self.assertEqual(len(said), lines)
            self.assertEqual(sum(b": cannot unwind further: " in line for line in said), 20)
            self.assertEqual(sum(b" stacks end before the outermost frame" in line for line in said), count > 20)

    def test_libc_without_call_frame_information(self):
        """Managed code shows who ended the process where the native frames are missing, and the report says that it may be wrong."""
        for runtime in ("net8", "net9", "net10"):
            path = os.path.join(FIXTURES, f"crash-{runtime}-x64", "core")
            core = Core(path)
            first = json.loads(self.run_tool("stack", "--json", path).stdout.splitlines()[0])
            self.assertIn("/libc.so", first["native"]["module"])
            base = next(at for at in range(int(first["ip"], 16) & -4096, 0, -4096) if core.read(at, 4) == b"\x7fELF")
            headers, count = core.u64(base + 32), core.u32(base + 56) & 0xFFFF
            header = next(at for at in range(base + headers, base + headers + 56 * count, 56) if core.u32(at) == 0x6474E550)
            core.poke(base + core.u64(header + 16), b"\0")  # .eh_frame_hdr of no known version
            with tempfile.TemporaryDirectory() as folder:
                left = json.loads(self.run_tool("report", "--json", core.save(os.path.join(folder, "core")), statuses=(1,)).stdout)
            whole = json.loads(self.run_tool("report", "--json", path).stdout)
            # The core lacks what says whether the process has the framework's texts, so the whole text may be wrong, too.
            self.assertTrue(whole["last_words"]["inferred"], runtime)
            self.assertTrue(left["last_words"]["inferred"], runtime)
            self.assertEqual(left["last_words"]["text"], whole["last_words"]["text"], runtime)
            self.assertEqual(left["cause"], whole["cause"], runtime)

    def test_pipes(self):
        """Nothing waits for the writer of a pipe, or reads one that is not given as one."""
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            for command in COMMANDS:
                arguments = [os.path.join(folder, "out") if a == "OUT" else a for a in command]
                for target in (pipe, folder, "/dev/null", "/dev/zero"):
                    with self.subTest(command=command[0], target=target):
                        self.run_tool(arguments[0], target, *arguments[1:], statuses=(2,))
            self.run_tool("descriptor", self.context.plain, pipe, statuses=(2,))
            self.run_tool("descriptor", "--descriptor", pipe, self.context.plain, statuses=(2,))
            self.run_tool("records", pipe, statuses=(2,))
            self.run_tool("verify", self.context.plain, pipe, statuses=(2,))

    def test_sparse_images(self):
        with tempfile.TemporaryDirectory() as folder:
            image = generators.sparse_image(folder, self.context)
            self.run_tool("info", image)
            self.run_tool("descriptor", image)
            os.mkdir(os.path.join(folder, "modules"))
            for name in ("libcoreclr.so", "libc.so.6", "libclrjit.so", "System.Private.CoreLib.dll"):
                os.symlink(image, os.path.join(folder, "modules", name))
            for command in ("info", "stack", "report"):
                self.run_tool(command, self.context.crash, "--module-path", os.path.join(folder, "modules"))

    def test_bounds(self):
        """One line names the bound; what was found until then is there; without a bound all is."""
        core = self.context.hello
        all_methods = self.run_tool("methods", "--r2r=all", core, statuses=(0,)).stdout
        lines = all_methods.splitlines()
        for option, text in (("--work-max=300K", b"work, 300000 steps"), ("--memory-max=8M", b"memory, 8 MiB")):
            done = self.run_tool("methods", "--r2r=all", core, option, statuses=(1,))
            self.assertIn(b"stopped at the bound on %s: results are incomplete\n" % text, done.stderr)
            self.assertLessEqual(done.stderr.count(b"\n"), 2)
            found = [line for line in done.stdout.splitlines() if b"? [" not in line]  # what is in doubt is marked
            self.assertTrue(0 < len(found) < len(lines))
            self.assertTrue(set(found) <= set(lines))
        self.check_files_at_a_bound(core)
        done = self.run_tool("methods", "no.such.method", core, "--work-max=300K")
        self.assertEqual(done.stderr.count(b"no method is named"), 0, done.stderr)  # not all were seen
        none = self.run_tool("methods", "--r2r=all", core, "--work-max=0", "--memory-max=0", statuses=(0,))
        self.assertEqual(none.stdout, all_methods)
        for command in COMMANDS:
            arguments = ["/dev/null" if a == "OUT" else a for a in command]
            done = self.run_tool(arguments[0], core, *arguments[1:], "--work-max=1")
            self.assertLessEqual(done.stderr.count(b"stopped at the bound"), 1, command)

    def check_files_at_a_bound(self, core):
        """What was found until then is written, as whole lines, records and sections."""
        with tempfile.TemporaryDirectory() as folder:
            whole, out = os.path.join(folder, "whole"), os.path.join(folder, "out")
            for command in ("perfmap", "jitdump", "elf"):
                with self.subTest(command=command):
                    missing = b"is needed and was not found" in self.run_tool(command, "--r2r=all", core, "-o", whole).stderr
                    none = command == "jitdump" and missing  # the code of images is in files that are not on this machine
                    done = self.run_tool(command, "--r2r=all", core, "-o", out, "--work-max=300K", statuses=(2 if none else 1,))
                    self.assertEqual(done.stderr.count(b"stopped at the bound on work"), 1, done.stderr)
                    if none:
                        continue
                    self.assertTrue(0 < os.path.getsize(out) < os.path.getsize(whole))
                    if command == "perfmap":
                        self.assertTrue(set(pathlib.Path(out).read_bytes().splitlines()) <= set(pathlib.Path(whole).read_bytes().splitlines()))
                    if command == "jitdump":
                        self.run_tool("records", out, statuses=(0,))


def add_core(make):
    def test(self):
        with tempfile.TemporaryDirectory() as folder:
            self.all_commands(make(folder, self.context), folder)

    setattr(Hostile, f"test_core_{make.__name__}", test)


for generator in generators.CORES:
    add_core(generator)

if __name__ == "__main__":
    if not TOOL:
        sys.exit(77)
    unittest.main()
