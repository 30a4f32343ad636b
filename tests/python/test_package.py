"""The Python package on bundled cores of real processes: what it returns, what it raises, and that nothing outlives."""
import gc
import importlib
import importlib.util
import json
import os
import pathlib
import pkgutil
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import python_support

python_support.use_package()
import cdacq  # noqa: E402
from cdacq import _debugger, buckets  # noqa: E402

sys.path.insert(0, str(python_support.ROOT / "tests/support"))
from jitdump_writer import Jitdump as JitdumpWriter  # noqa: E402

CORE = python_support.fixture("net10-x64")
CRASH = python_support.fixture("crash-net10-x64")
HELLO = python_support.fixture("hello-net10-x64")
JIT, R2R = (int(line, 16) for line in (python_support.FIXTURES / "net10-x64/first-light.ips").read_text().split())
TOOL = os.environ.get("CDACQ_TOOL")


def tool(*arguments, **options):
    """The lines of JSON that the command line prints."""
    out = subprocess.run([TOOL, *arguments], capture_output=True, text=True, **options).stdout
    return [json.loads(line) for line in out.splitlines()]


class Package(unittest.TestCase):
    def test_everything_is_documented(self):
        documented = 0
        for name in cdacq.__all__:
            value = getattr(cdacq, name)
            if name == "BOUND_BY_SIZE":
                continue
            self.assertTrue(value.__doc__, name)
            for member, kind in vars(value).items() if isinstance(value, type) else ():
                if not member.startswith("_") and (callable(kind) or isinstance(kind, property)):
                    self.assertTrue(getattr(kind, "__doc__", None), f"{name}.{member}")
                    documented += 1
        self.assertGreater(documented, 50)

    def test_version(self):
        self.assertRegex(cdacq.version(), r"^\d+\.\d+\.\d+$")

    def test_texts(self):
        self.assertEqual(cdacq.Status.ERR_MEMORY.text, "memory is not in the target")
        self.assertEqual(cdacq.CodeKind.READY_TO_RUN.text, "r2r")
        self.assertEqual(cdacq.JitdumpKind.LOAD.text, "load")
        self.assertEqual(cdacq.Verdict.NAME_DIFFERS.text, "name-differs")
        self.assertIn("has another name", cdacq.Verdict.NAME_DIFFERS.meaning)
        self.assertEqual([v for v in cdacq.Verdict if v.is_contradiction],
                         [cdacq.Verdict.UNKNOWN_TO_TARGET, cdacq.Verdict.NAME_DIFFERS, cdacq.Verdict.RANGE_DIFFERS,
                          cdacq.Verdict.BYTES_DIFFER])


class Processes(unittest.TestCase):
    def test_thread_times(self):
        times = {time.tid: time.processor_time_ns for time in cdacq.thread_times(os.getpid())}
        self.assertGreater(times[threading.get_native_id()], 0)
        with self.assertRaises(cdacq.Error) as caught:
            cdacq.thread_times(4194999)  # no kernel gives a process this id
        self.assertEqual(caught.exception.status, cdacq.Status.ERR_IO)

    def test_processor_limit(self):
        limit = cdacq.processor_limit(os.getpid())
        self.assertEqual(limit.quota_ns > 0, limit.period_ns > 0)
        self.assertLessEqual(limit.throttled_periods, limit.periods)
        with self.assertRaises(cdacq.Error) as caught:
            cdacq.processor_limit(4194999)
        self.assertEqual(caught.exception.status, cdacq.Status.ERR_IO)

    def test_memory_limit(self):
        limit = cdacq.memory_limit(os.getpid())
        self.assertLessEqual(limit.used, limit.limit)
        with self.assertRaises(cdacq.Error) as caught:
            cdacq.memory_limit(4194999)
        self.assertEqual(caught.exception.status, cdacq.Status.ERR_IO)

    def test_a_process_that_is_not_dotnet(self):
        self.assertEqual(list(cdacq.processes(os.getpid())), [])
        self.assertRaises(ValueError, cdacq.processes, 0)


class Methods(unittest.TestCase):
    def setUp(self):
        self.target = cdacq.open(CORE)
        self.addCleanup(self.target.close)

    def test_method_at(self):
        method = self.target.method_at(JIT)
        self.assertTrue(method.is_managed)
        self.assertEqual((method.answer, method.kind), (cdacq.Answer.MANAGED, cdacq.CodeKind.JITTED))
        self.assertEqual(method.name, "Demo.Outer<T>.Inner<int>..ctor()")
        self.assertEqual(method.offset, 0xF)
        self.assertEqual(method.il_offset, 0)
        self.assertTrue(method.module.endswith("Demo.dll"))
        self.assertTrue(method.code_start <= JIT < method.code_end)
        self.assertEqual(self.target.method_at(R2R).kind, cdacq.CodeKind.READY_TO_RUN)
        nobody = self.target.method_at(1)
        self.assertEqual((nobody.answer, nobody.name, nobody.il_offset), (cdacq.Answer.NONE, None, None))

    def test_addresses(self):
        """Any type of integer, as numpy's. What is no address is refused, not cut."""
        class Integer:
            def __index__(self):
                return JIT

        self.assertEqual(self.target.method_at(Integer()), self.target.method_at(JIT))
        self.assertEqual(self.target.methods_at([Integer()]), self.target.methods_at([JIT]))
        for call in (self.target.method_at, self.target.block_at, self.target.source_at, self.target.object_at,
                     self.target.function_table_entries, lambda ip: self.target.methods_at([ip])):
            for address in (-1, 1 << 64):
                self.assertRaisesRegex(OverflowError, "is not an address", call, address)
            for address in (1.0, "1", None):
                self.assertRaisesRegex(TypeError, "integer", call, address)

    def test_numbers_that_do_not_fit(self):
        for options in ({"runtime": 1 << 32}, {"work_max": 1 << 64}, {"memory_max": -1}, {"store_max": -1},
                        {"descriptor_address": 1 << 64}):
            with self.subTest(options), self.assertRaises(OverflowError):
                cdacq.open(CORE, **options)

    def test_methods_at(self):
        ips = [JIT, 1, R2R, 0, (1 << 64) - 1]
        self.assertEqual(self.target.methods_at(ips), [self.target.method_at(ip) for ip in ips])
        self.assertEqual(self.target.methods_at([]), [])
        self.assertEqual(len(self.target.methods_at(iter([JIT] * 1000))), 1000)

    @unittest.skipUnless(TOOL, "no command line")
    def test_as_the_command_line(self):
        ips = [line.split()[0] for line in (python_support.FIXTURES / "net10-x64/expected.txt").read_text().splitlines()
               if not line.startswith("#")]
        answers = tool("ip2method", "--json", CORE, input="\n".join(ips))
        self.assertGreater(len(answers), 10)
        for answer, method in zip(answers, self.target.methods_at(int(ip, 16) for ip in ips), strict=True):
            self.assertEqual((answer["ip"], answer["method"]), (hex(method.ip), method.name))
            self.assertEqual(answer["error"] and answer["error"].partition(": give --")[0], method.error)

    def test_methods(self):
        methods = self.target.methods()
        managed = [method for method in methods if method.is_managed]
        self.assertGreater(len(managed), 10)
        self.assertEqual([m.code_start for m in managed], sorted(m.code_start for m in managed))
        failed = [method for method in methods if method.answer == cdacq.Answer.ERROR]
        if failed[-1].code_start == 0:  # the runtime's images are here, and the core lacks what belongs to them
            self.assertEqual(failed.pop().error[:36], "there may be more prepared methods: ")
        self.assertGreater(len({method.error for method in failed}), 10)  # each has its own
        for method in failed:
            self.assertIn("no memory", method.error)
        self.assertGreaterEqual(len(self.target.methods(stubs=True)), len(methods))
        with cdacq.open(HELLO) as target:
            methods = [method for method in target.methods() if method.is_managed]
            self.assertGreater(len(methods), 100)
            self.assertEqual([m._replace(il_offset=None) for m in target.methods_at(m.code_start for m in methods)],
                             [m._replace(il_offset=None) for m in methods])
            self.assertTrue(all(target.check_code_range(method.code_start) for method in methods))
        self.assertTrue(all(m.kind != cdacq.CodeKind.READY_TO_RUN for m in self.target.methods(r2r="none")))
        with self.assertRaises(ValueError):
            self.target.methods(r2r="some")

    def test_names(self):
        with cdacq.open(CORE, names=cdacq.NameStyle.IL) as target:
            self.assertIn("[Demo] Demo.Outer`1+Inner`1", target.method_at(JIT).name)

    def test_block(self):
        method = self.target.method_at(JIT)
        block = self.target.block_at(JIT)
        self.assertEqual(block.start_address, method.code_start)
        self.assertEqual(block.method_desc, method.method_desc)
        self.assertEqual(block.relative_offset, method.offset)
        self.assertEqual(block.jit_type, cdacq.JitType.JIT)
        self.assertEqual(block.method_region_info(), (method.code_size, 0, 0))
        self.assertEqual(block.funclet_start_address(), method.code_start)
        self.assertGreater(block.unwind_info(), block.unwind_info_base_address)
        self.assertIs(block.is_funclet(), False)
        self.assertIs(block.is_filter_funclet(), False)
        self.assertEqual(block.gc_info().version, 4)
        self.assertGreater(block.debug_info().address, 0)
        self.assertEqual(list(block.exception_clauses()), [])
        self.assertIsNone(self.target.block_at(1))

    def test_contract_calls(self):
        self.assertEqual(self.target.code_kind(JIT), cdacq.CodeKind.JITTED)
        self.assertIsNone(self.target.code_kind(1))
        self.assertGreater(self.target.find_ready_to_run_module(R2R), 0)
        self.assertIsNone(self.target.find_ready_to_run_module(JIT))
        self.assertEqual(self.target.non_virtual_entry_to_method_desc(self.target.method_at(JIT).code_start),
                         self.target.method_at(JIT).method_desc)
        self.assertEqual(self.target.jit_manager_info().kind, cdacq.CodeKind.JITTED)
        self.assertIsNone(self.target.jit_manager_info(cdacq.CodeKind.INTERPRETER))
        heaps = self.target.code_heaps()
        self.assertTrue(any(heap.begin <= JIT < heap.end for heap in heaps.items))
        self.assertTrue(any(r.begin <= JIT < r.end and r.kind == "jit" for r in self.target.code_ranges()))
        self.assertIs(self.target.check_code_range(1), False)

    def test_source(self):
        self.assertEqual(self.target.il_offset(JIT), 0)
        self.assertIsNone(self.target.il_offset(1))
        source = self.target.source_at(JIT)
        self.assertTrue(source.line or source.problem)
        self.assertIsNone(self.target.source_at(1))
        self.assertIsInstance(self.target.pdbs().items, list)

    def test_target(self):
        info = self.target.info
        self.assertEqual((info.kind, info.pointer_size, info.runtime_release),
                         (cdacq.TargetKind.CORE, 8, "10.0"))
        self.assertEqual(info.problem_status, cdacq.Status.OK)
        self.assertTrue(any(runtime.in_use for runtime in self.target.runtimes()))
        self.assertTrue(all(contract.name for contract in self.target.contracts()))
        self.assertTrue(any(module.path.endswith("libcoreclr.so") for module in self.target.mapped_files()))
        kinds = {item.kind for item in self.target.descriptor()}
        self.assertEqual(kinds, set(cdacq.DescriptorItemKind))
        self.assertIsNone(self.target.truncation)
        self.assertEqual(self.target.process.pid, info.pid)

    def test_runtimes(self):
        self.assertEqual(self.target.runtime_count, 1)
        for all_runtimes in (False, True):
            with cdacq.open(python_support.fixture("net10-x64"), all_runtimes=all_runtimes) as target:
                one = target.of_runtime(0)
                self.assertEqual((one.info.runtime, one.info.runtime_release), (0, "10.0"))
                self.assertEqual(one.method_at(JIT), target.method_at(JIT))
                self.assertEqual(one.method_at(JIT).runtime, 0)
                for number in (1, 2**32 - 1):
                    self.assertRaises(LookupError, target.of_runtime, number)
                self.assertRaises(OverflowError, target.of_runtime, -1)
            self.assertRaises(cdacq.ClosedError, one.method_at, JIT)


class Stacks(unittest.TestCase):
    @unittest.skipUnless(TOOL, "no command line")
    def test_frames(self):
        for name in ("crash-net8-x64", "crash-net9-x64", "crash-net10-x64"):
            core = python_support.fixture(name)
            shown = tool("stack", "--json", core)
            self.assertGreater(len(shown), 10)
            with cdacq.open(core) as target:
                found = [(thread, frame) for thread in target.threads() for frame in thread.frames().items]
                for line, (thread, frame) in zip(shown, found, strict=True):
                    self.assertEqual((line["tid"], line["frame"], int(line["ip"], 16), line["by"]),
                                     (thread.tid, frame.index, frame.pc, frame.by.name.lower()))
                    self.assertEqual(line["status"] == "managed", frame.is_managed)
                    self.assertEqual(line["cfa"] and int(line["cfa"], 16), frame.cfa or None)
                    if frame.is_managed:
                        self.assertEqual((line["method"], line["file"], line["line"]),
                                         (frame.name, frame.method.file, frame.method.line or None))
                    else:
                        self.assertEqual(line["native"]["symbol"], frame.symbol)
                self.assertTrue(any(frame.is_managed for _, frame in found))
                for thread in target.threads():
                    self.assertEqual(thread.registers[16], thread.frames()[0].pc)

    def test_variables(self):
        for name in ("crash-net8-x64", "crash-net9-x64", "crash-net10-x64"):
            core = python_support.fixture(name)
            shown = [line.get("variables") or [] for line in tool("stack", "--json", "--variables", core)]
            with cdacq.open(core) as target:
                frames = [frame for thread in target.threads() for frame in thread.frames(variables=True).items]
                for line, frame in zip(shown, frames, strict=True):
                    self.assertEqual([(item["name"], item["kind"], item["type"], item["state"]) for item in line],
                                     [(item.name, item.kind.name.lower(), item.type, item.state.name.lower().replace("_", " "))
                                      for item in frame.variables or []])
                    for item in frame.variables or []:
                        self.assertEqual(item.value is None, item.state != cdacq.VariableState.KNOWN)
                        if item.value and item.value.kind == cdacq.ValueKind.STRUCT and item.value.method_table:
                            self.assertGreater(len(target.value_fields(item.value)), 0)
                        elif item.value:
                            with self.assertRaises(cdacq.Error):
                                target.value_fields(item.value)
            self.assertGreater(sum(len(line) for line in shown), 5)
            self.assertTrue(all(frame.variables is None for frame in frames if not frame.is_managed))

    def test_variable_places(self):
        core = python_support.fixture("crash-net10-x64")
        ips = [line["ip"] for line in tool("stack", "--json", "--managed", core) if line["status"] == "managed"]
        shown = {line["ip"]: line["variables"] for line in tool("inspect", "--json", core, *ips)}
        with cdacq.open(core) as target:
            for ip, expected in shown.items():
                found = target.variable_places(int(ip, 16))
                self.assertEqual([(place.name, place.number, place.type, place.location, place.problem) for place in found],
                                 [(one["name"], one["number"], one["type"], one["location"], one.get("problem"))
                                  for one in expected])
            self.assertTrue(any(shown.values()))
            self.assertIsNone(target.variable_places(1))

    def test_debugger_report(self):
        """The report of gdb and lldb marks guesses, and says where a stack ends early."""
        class OfACore(_debugger.Debugger):
            def target(self):
                return target

            def frames(self, tid):
                frames = next(thread for thread in target.threads() if thread.tid == tid).frames().items
                for frame in frames:
                    frame.by = guess or frame.by
                return frames, error

        with cdacq.open(python_support.fixture("crash-net10-x64")) as target:
            guess = error = None
            sure = list(OfACore().report([]))
            guess, error = cdacq.FrameSource.GUESS, cdacq.Error(cdacq.Status.ERR_MEMORY, "no memory")
            doubtful = list(OfACore().report([]))
        self.assertFalse([line for line in sure if line.startswith("  ? ") or "cannot unwind" in line])
        managed = [line for line in sure if line.startswith("  0x")]
        self.assertTrue(managed)
        self.assertTrue(set("  ? " + line[2:] for line in managed) <= set(doubtful))
        self.assertIn("  ... cannot unwind further: no memory", doubtful)

    def test_debugger_report_of_the_end(self):
        """With the registers of the thread that died, the report has what the runtime wrote."""
        class OfACore(_debugger.Debugger):
            opened = None

            def target(self):
                return target

            def died(self):
                return target.threads()[0].tid, 6

            def registers(self, tid):
                return target.threads()[0].registers

            def _open(self, threads):
                self.opened = threads
                return cdacq.open(core)

            def frames(self, tid):
                return [], None

        core = python_support.fixture("crash-net10-x64")
        with cdacq.open(core) as target:
            shown = OfACore()
            lines = list(shown.report([]))
            self.assertEqual([(thread.tid, thread.signal, thread.died, thread.registers) for thread in shown.opened],
                             [(target.threads()[0].tid, 6, True, target.threads()[0].registers)])
            self.assertEqual(lines[1:3], ["", "The runtime ended the process and wrote:"])
            self.assertEqual("\n".join(lines[3:])[:len(target.last_words().rstrip())], target.last_words().rstrip())

    def test_stress_log(self):
        """.NET 9 publishes none, and this core of .NET 10 lacks it. tests/dotnet/stress_log.py reads real ones."""
        for name, status in (("crash-net9-x64", cdacq.Status.ERR_CONTRACT), ("crash-net10-x64", cdacq.Status.ERR_MEMORY)):
            with cdacq.open(python_support.fixture(name)) as target:
                for call in (target.stress_log, target.stress_messages):
                    with self.assertRaises(cdacq.Error) as raised:
                        list(call())
                    self.assertEqual(raised.exception.status, status)
        self.assertEqual(cdacq.stress_facilities(0x80000101), ["GC", "GCALLOC", "ALWAYS"])

    def test_frames_from_registers(self):
        with cdacq.open(CRASH) as target:
            thread = target.threads()[0]
            frames = thread.frames()
            managed = next(frame for frame in frames if frame.is_managed)
            two = target.frames(managed.registers, limit=2)
            self.assertEqual([frame.pc for frame in two], [frame.pc for frame in frames[managed.index:][:2]])
            self.assertTrue(any(f.frame_name for f in thread.frames(explicit=True)))
            with self.assertRaises(cdacq.Error) as raised:
                target.frames({16: 1})
            self.assertEqual(raised.exception.status, cdacq.Status.ERR_ARGUMENT)
            with self.assertRaises(ValueError):
                target.frames({64: 1})

    def test_a_walk_that_ends_early(self):
        """The frames are there, and the reason is not lost."""
        with cdacq.open(CRASH) as target:
            registers = next(f.registers for f in target.threads()[0].frames() if f.is_managed)
            listing = target.frames({**registers, 7: 0x1000, 6: 0x1000})
            self.assertGreaterEqual(len(listing), 1)
            self.assertIsInstance(listing.error, cdacq.Error)
            seen = []
            with self.assertRaises(cdacq.Error):
                for frame in listing:
                    seen.append(frame)
            self.assertEqual(seen, listing.items)

    def test_exceptions(self):
        expected = (python_support.FIXTURES / "crash-net10-x64/stderr.txt").read_text()
        expected = expected.removeprefix("Unhandled exception. ").rstrip("\n")
        with cdacq.open(CRASH) as target:
            thread = target.threads()[0]
            found = thread.exception or thread.last_thrown
            self.assertEqual(found.type, "System.Reflection.TargetInvocationException")
            self.assertEqual(found.inner.type, "System.InvalidOperationException")
            self.assertIsNone(found.inner.inner)
            self.assertTrue(found.thrown)
            self.assertEqual(len(list(found.frames())), found.frame_count)
            text, flaws = found.text_and_flaws()
            self.assertEqual(found.text(), text)
            self.assertIsInstance(flaws, cdacq.ExceptionFlaw if hasattr(cdacq, "ExceptionFlaw") else int)
            self.assertEqual([line.split(" in ")[0] for line in text.splitlines()],
                             [line.split(" in ")[0] for line in expected.splitlines()])
            with self.assertRaises(cdacq.Error):
                target.exception(8)

    def test_end(self):
        with cdacq.open(CRASH) as target:
            end = target.end()
            self.assertEqual((end.kind, end.tid), (cdacq.EndKind.UNHANDLED, target.threads()[0].tid))
            self.assertTrue(target.last_words().startswith("Unhandled exception. " + target.exception(
                end.exception).type))
        with cdacq.open(HELLO) as target, self.assertRaises(cdacq.Error):
            target.end()

    def test_waits(self):
        with cdacq.open(CRASH) as target:
            graph = target.waits()
            self.assertTrue(all(wait.tid in [t.tid for t in target.threads()] for wait in graph.waits))
            self.assertEqual(graph.deadlocks, [])
            found = target.threads()[0].exception_address or target.threads()[0].last_thrown_address
            lock = target.lock_at(found)
            self.assertEqual((lock.object, lock.held, lock.kind), (found, False, cdacq.LockKind.MONITOR))

    def test_objects(self):
        with cdacq.open(CRASH) as target:
            thread = target.threads()[0]
            found = target.object_at(thread.exception_address or thread.last_thrown_address)
            self.assertEqual(found.type, "System.Reflection.TargetInvocationException")
            for call in (lambda: target.field(found.address, "_message"), lambda: target.element(found.address, 0),
                         lambda: target.string(found.address), lambda: target.fields(found.address),
                         lambda: target.is_object(found.address), lambda: target.items(found.address)):  # the snapshot lacks what they need, or they are none
                with self.assertRaises(cdacq.Error):
                    call()
            self.assertFalse(target.is_object(found.address + 4))
            self.assertIsNone(target.boxed(found.address))
            number = cdacq.Value(cdacq.ValueKind.SIGNED, 8, 8, 2**64 - 5, 0)
            self.assertEqual((target.value_text(number), target.unwrap(number)), ("-5", number))
            self.assertIsNone(target.value_text(number._replace(kind=cdacq.ValueKind.STRUCT)))
            for kind, width, bits, value in (("BOOLEAN", 1, 1, True), ("CHARACTER", 2, 65, "A"), ("STRUCT", 4, 0, None),
                                             ("REAL", 4, 0x3FC00000, 1.5), ("UNSIGNED", 8, 2**64 - 1, 2**64 - 1)):
                self.assertEqual(cdacq.Value(cdacq.ValueKind[kind], width, 8, bits, 0).value, value)

    def test_bounds(self):
        with cdacq.open(CRASH, work_max=2000) as target:
            with self.assertRaises(cdacq.Error) as raised:
                for thread in target.threads():
                    list(thread.frames())
            self.assertEqual(raised.exception.status, cdacq.Status.ERR_FUEL)
            self.assertTrue(target.bound_reached)
        with cdacq.open(CRASH, memory_max=cdacq.BOUND_BY_SIZE) as target:
            self.assertIsNone(target.bound_reached)
            target.refresh()

    def test_no_threads(self):
        with cdacq.open(CORE) as target:
            with self.assertRaises(cdacq.Error) as raised:
                target.threads()
            self.assertEqual(raised.exception.status, cdacq.Status.ERR_ARGUMENT)


class Failures(unittest.TestCase):
    def without_files(self, **options):
        """A target that lacks memory which no file on this machine supplies."""
        segments, mappings, _ = python_support.load_segments(CORE)

        def read(address, size):
            begin, data = python_support.segment_at(segments, address)
            return data[address - begin:][:size]
        return cdacq.open(callbacks=cdacq.Memory(read=read, mappings=[cdacq.Mapping(*m) for m in mappings]), **options)

    def test_open(self):
        with self.assertRaises(cdacq.Error) as raised:
            cdacq.open("/nonexistent")
        self.assertEqual(raised.exception.status, cdacq.Status.ERR_IO)
        self.assertIn("/nonexistent", raised.exception.message)
        self.assertEqual(str(raised.exception), raised.exception.message)
        with self.assertRaises(cdacq.Error):
            cdacq.open(os.getpid(), stop=False)  # no runtime
        for wrong in (0, -1, True, 1 << 40):
            with self.assertRaises(ValueError):
                cdacq.open(wrong)
        with self.assertRaises(TypeError):
            cdacq.open()
        with self.assertRaises(ValueError):
            cdacq.open("a\0b")

    def test_wrong_types(self):
        """A TypeError says what was expected. Other exceptions would look like mistakes of the package."""
        def memory(**fields):
            return cdacq.open(callbacks=cdacq.Memory(**{"read": lambda address, size: b"", **fields}))

        def option(name):
            return lambda value: cdacq.open(CORE, **{name: value})

        def thread(*fields, **named):
            return memory(threads=[cdacq.MemoryThread(*fields, **named)])

        def nothing(_value):
            return None
        values = [None, 1, "x", b"x", 1.5, object(), [1], {1: "x"}, nothing]
        number, path, function = (int,), (str, bytes), (type(nothing), type(None))
        optional_text = (*path, type(None))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        target = cdacq.open(CORE, record=True)
        self.addCleanup(target.close)
        file = os.path.join(folder.name, "jitdump")
        target.write_jitdump(file)
        jitdump = cdacq.Jitdump(file)
        self.addCleanup(jitdump.close)
        writers = (target.write_perf_map, target.write_jitdump, target.write_elf)
        calls = [  # and the types that are right, or fail otherwise
            (cdacq.open, (*number, *path)), (lambda v: cdacq.open(callbacks=v), ()),
            *((option(name), function)
              for name in ("find_file", "describe_need", "progress", "fetching", "fetch_failed")),
            *((option(name), number)
              for name in ("runtime", "descriptor_address", "names", "store_max", "work_max", "memory_max")),
            *((option(name), (*path, dict)) for name in ("sysroots", "module_paths", "descriptors", "symbol_servers")),
            (option("symbol_cache"), optional_text),
            (lambda v: memory(read=v), function), (lambda v: memory(span_at=v), function),
            (lambda v: memory(pid=v), number), (lambda v: memory(held=[v]), (*path, list, dict)),
            (lambda v: memory(mappings=v), ()), (lambda v: memory(mappings=[v]), ()),
            (lambda v: memory(mappings=[cdacq.Mapping(v, 1)]), number),
            (lambda v: memory(mappings=[cdacq.Mapping(0, 1, 0, v)]), optional_text),
            (lambda v: memory(threads=v), ()), (lambda v: memory(threads=[v]), ()),
            (thread, number), (lambda v: thread(1, v), (dict, type(None))),
            (lambda v: thread(1, name=v), optional_text),
            (lambda v: thread(1, {0: v}), number), (lambda v: thread(1, {v: 0}), number),
            *((call, number) for call in (
                target.method_at, target.check_code_range, target.code_kind, target.block_at, target.code_heaps,
                target.jit_manager_info, target.find_ready_to_run_module, target.non_virtual_entry_to_method_desc,
                target.function_table_entries, target.il_offset, target.source_at, target.exception, target.object_at,
                target.lock_at, target.string, target.fields, target.is_object, target.boxed, target.delegate,
                target.items)),
            (target.unwrap, ()), (target.value_text, ()),
            (target.methods_at, (bytes, list, dict)), (lambda v: target.string(1, v), number),
            (lambda v: target.element(v, 0), number), (lambda v: target.element(1, v), number),
            (lambda v: target.field(v, "x"), number), (lambda v: target.field(1, v), path),
            (target.frames, (dict,)), (lambda v: target.frames({}, thread=v), number),
            (lambda v: target.frames({}, limit=v), number),
            (target.verify, path), (lambda v: target.verify(file, v), function), (target.write_snapshot, path),
            (target.write_complete_core, path), (lambda v: target.record_memory(v, 1), number), (lambda v: target.record_memory(1, v), number),
            *((call, path) for call in writers),
            *((lambda v, call=call: call(os.devnull, left_out=v), function) for call in writers),
            (lambda v: target.write_elf_of_file(v, os.devnull), path),
            (lambda v: target.write_elf_of_file("x", v), path),
            (cdacq.find_perf_map, number), (cdacq.thread_times, number), (cdacq.Jitdump.find_file, number),
            (cdacq.Jitdump, path), (jitdump.find, number), (lambda v: jitdump.find(1, v), (*number, type(None))),
            (buckets.row, (str,)), (lambda v: buckets.row("x", options=v), (dict,)), (buckets.read_rows, (dict,)),
            (buckets.buckets, ()), (lambda v: buckets.buckets([v]), (dict,)), (buckets.flat, (dict,)),
        ]
        for i, (call, right) in enumerate(calls):
            for value in values:
                if type(value) not in right:
                    with self.subTest(i, value=value):
                        self.assertRaises(TypeError, call, value)
        self.assertRaisesRegex(TypeError, "expected a Memory, not int", cdacq.open, callbacks=1)
        self.assertRaisesRegex(TypeError, "expected str or bytes, not NoneType", target.field, 1, None)
        for call in (cdacq.find_perf_map, cdacq.thread_times, cdacq.Jitdump.find_file):
            for pid in (-1, 1 << 32):
                self.assertRaisesRegex(ValueError, "is not the id of a process", call, pid)

    def test_partial(self):
        with cdacq.open(os.environ.get("CDACQ_LIBRARY", sys.executable), image=True, partial=True) as target:
            self.assertEqual(target.info.problem_status, cdacq.Status.ERR_NO_RUNTIME)
            with self.assertRaises(cdacq.Error):
                target.method_at(1)

    def test_open_file(self):
        with open(CORE, "rb") as file, cdacq.open(file) as target:
            self.assertTrue(target.method_at(JIT).is_managed)
        pipe = subprocess.Popen(["cat", CORE], stdout=subprocess.PIPE)
        with pipe.stdout, cdacq.open(pipe.stdout) as target:
            self.assertTrue(target.method_at(JIT).is_managed)
        pipe.wait()

    def test_callbacks_of_options(self):
        needs, shown = [], []

        def find_file(need):
            needs.append(need)

        def describe_need(need):
            shown.append(need)
            return "; here is how"
        with self.without_files(find_file=find_file, describe_need=describe_need) as target:
            errors = [method.error for method in target.methods(r2r="all") if method.error]
        self.assertTrue(needs and shown)
        self.assertIsInstance(needs[0].kind, cdacq.NeedKind)
        self.assertTrue(any(error.endswith("; here is how") for error in errors))

        class Stop(BaseException):
            pass

        def fail(need):
            if not raised:
                raised.append(need)
                raise Stop
        raised = []
        with self.without_files(find_file=fail) as target:
            with self.assertRaises(Stop):
                target.methods(r2r="all")
            self.assertTrue(target.method_at(JIT).is_managed)  # it can still be used

    def test_symbol_servers(self):
        """Each failure is reported, by a Need with the key that the URL ends with."""
        failures, fetches = [], []
        with tempfile.TemporaryDirectory() as folder, self.without_files(
                symbol_servers="http://127.0.0.1:1/symbols", symbol_cache=os.path.join(folder, "cache"),
                fetching=lambda *event: fetches.append(event),
                fetch_failed=lambda *failure: failures.append(failure)) as target:
            target.methods(r2r="all")
            missing = {module.path for module in target.mapped_files() if module.problem}
        self.assertTrue(failures)
        need, url, absent, why = failures[0]
        self.assertIn(need.path, missing)
        self.assertEqual(url.lower(), f"http://127.0.0.1:1/symbols/{need.symbol_key.lower()}")
        self.assertIs(absent, False)
        self.assertTrue(why and "\n" not in why)
        self.assertEqual(fetches[-1][0], None)
        with self.assertRaisesRegex(cdacq.Error, "symbol server 'file:///': expected a URL"):
            cdacq.open(CORE, symbol_servers="file:///")

    @unittest.skipUnless(TOOL, "no command line")
    def test_report(self):
        """The JSON of the command line; with the options by which the target was opened."""
        [expected] = tool("report", "--json", CRASH)
        with cdacq.open(CRASH, sysroots=iter(["/nowhere"])) as target, target.session() as session:
            report = target.report()
            self.assertEqual(report["verdict"]["kind"], "unhandled")
            self.assertEqual({**report, "target": None, "verdict": None}, {**expected, "target": None, "verdict": None})
            self.assertEqual(session.report(), report)
        with self.assertRaises(cdacq.ClosedError):
            target.report()
        with open(CRASH, "rb") as file, cdacq.open(file) as target, self.assertRaisesRegex(ValueError, "path or a pid"):
            target.report()
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "4242")  # not a pid
            shutil.copy(CRASH, copy)
            with cdacq.open(copy) as target:
                self.assertEqual(target.report()["pid"], expected["pid"])
                os.remove(copy)
                with self.assertRaisesRegex(cdacq.Error, "4242"):
                    target.report()

    def test_representations(self):
        with cdacq.open(CORE) as target:
            self.assertEqual(repr(target), f"<cdacq.Target of core {CORE!r}>")
            session = target.session()
            self.assertEqual(repr(session), f"<cdacq.Session of core {CORE!r}>")
            self.assertEqual(repr(target.of_runtime(0)), f"<cdacq.RuntimeSession of runtime 0 of core {CORE!r}>")
        self.assertEqual(repr(target), f"<cdacq.Target of core {CORE!r}, closed>")
        self.assertEqual(repr(session), f"<cdacq.Session of core {CORE!r}, closed>")

    def test_a_callback_that_uses_the_target(self):
        box, raised = [], []

        def find_file(need):
            for use in (box[0].methods, box[0].close, lambda: box[0].info):
                try:
                    use()
                except RuntimeError as error:
                    raised.append(error)
        with self.without_files(find_file=find_file) as target:
            box.append(target)
            target.methods(r2r="all")
        self.assertGreaterEqual(len(raised), 3)
        self.assertEqual(len(raised) % 3, 0)


class Lifetimes(unittest.TestCase):
    def test_closed(self):
        target = cdacq.open(CRASH)
        session = target.session()
        thread = target.threads()[0]
        found = thread.exception or thread.last_thrown
        block = session.block_at(next(f for f in thread.frames() if f.is_managed).pc)
        self.assertFalse(target.closed)
        target.close()
        target.close()
        session.close()
        self.assertTrue(target.closed)
        for use in (lambda: target.method_at(1), lambda: session.method_at(1), lambda: target.info,
                    lambda: target.truncation, target.threads, thread.frames, found.text, found.frames, target.session,
                    lambda: block.start_address, block.unwind_info, target.methods, target.mapped_files):
            with self.assertRaises(cdacq.ClosedError):
                use()

    def test_a_closed_session(self):
        with cdacq.open(CORE) as target:
            with target.session() as session:
                block = session.block_at(JIT)
            with self.assertRaises(cdacq.ClosedError):
                session.method_at(JIT)
            with self.assertRaises(cdacq.ClosedError):
                block.unwind_info()
            self.assertTrue(target.method_at(JIT).is_managed)

    def test_not_closed(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            target = cdacq.open(CORE)
            names = [method.name for method in target.methods()]
            del target
            gc.collect()
        self.assertTrue(any(issubclass(w.category, ResourceWarning) for w in caught))
        self.assertTrue(names)

    def test_what_was_returned_outlives_the_target(self):
        with cdacq.open(CRASH) as target:
            frames = target.threads()[0].frames().items
        gc.collect()
        self.assertTrue(any("Dying.Program.Main" in (frame.name or "") for frame in frames))

    def test_threads(self):
        """Sessions of several threads, one session of several threads, and a target closed under them."""
        with cdacq.open(CORE) as target:
            expected = [method.name for method in target.methods()]
            results = []

            def work(lookups):
                try:
                    while True:
                        self.assertEqual([m.name for m in lookups.methods()], expected)
                        results.append(True)
                except cdacq.ClosedError:
                    results.append(None)
            threads = [threading.Thread(target=work, args=(lookups,))
                       for lookups in (target, target, target.session(), target.session())]
            for thread in threads:
                thread.start()
            while len(results) < 8:
                threads[0].join(0.01)
            target.close()
            for thread in threads:
                thread.join()
        self.assertEqual(results.count(None), 4)


class Memory(unittest.TestCase):
    def setUp(self):
        self.segments, mappings, self.machine = python_support.load_segments(HELLO)
        self.mappings = [cdacq.Mapping(*mapping) for mapping in mappings]

    def read(self, address, size):
        begin, data = python_support.segment_at(self.segments, address)
        return data[address - begin:][:size]

    def span_at(self, address):
        begin, data = python_support.segment_at(self.segments, address)
        return (begin, data) if address < begin + len(data) else None

    def check(self, target):
        with cdacq.open(HELLO) as core:
            expected = core.methods().items
        self.assertGreater(sum(method.is_managed for method in expected), 100)
        key = [(method.code_start, method.code_size, method.kind, method.method_desc) for method in expected]
        self.assertEqual([(m.code_start, m.code_size, m.kind, m.method_desc) for m in target.methods()], key)
        at = next(method for method in expected if method.is_managed).code_start + 1
        self.assertTrue(target.method_at(at).is_managed)

    def test_read(self):
        with cdacq.open(callbacks=cdacq.Memory(read=self.read, mappings=self.mappings, pid=7)) as target:
            self.assertEqual(target.info.kind, cdacq.TargetKind.MEMORY)
            self.assertEqual(target.info.pid, 7)
            self.check(target)

    def test_span_at(self):
        kinds = [bytes, bytearray, lambda data: memoryview(bytearray(data)).toreadonly()]
        self.segments = [(begin, kinds[i % 3](data)) for i, (begin, data) in enumerate(self.segments)]
        with cdacq.open(callbacks=cdacq.Memory(span_at=self.span_at, mappings=self.mappings)) as target:
            self.check(target)

    def test_threads(self):
        """A core's stacks are the same through callbacks, when these list its threads with their registers."""
        segments, mappings, machine = python_support.load_segments(CRASH)
        self.segments = segments
        with cdacq.open(CRASH) as core:
            expected = [(thread, thread.frames().items) for thread in core.threads()]
            threads = [cdacq.MemoryThread(thread.tid, thread.registers, "named", thread.signal, thread.died)
                       for thread, _ in expected]
        memory = cdacq.Memory(read=self.read, mappings=[cdacq.Mapping(*m) for m in mappings], elf_machine=machine,
                              threads=threads)
        compared = 0
        with cdacq.open(callbacks=memory) as target:
            for (known, frames), thread in zip(expected, target.threads(), strict=True):
                self.assertEqual((thread.tid, thread.thread, thread.managed_id, thread.registers, thread.died),
                                 (known.tid, known.thread, known.managed_id, known.registers, known.died))
                self.assertEqual(thread.name, "named")
                managed = [frame.pc for frame in frames if frame.is_managed]
                if not managed:
                    continue
                self.assertEqual([frame.pc for frame in thread.frames().items if frame.is_managed], managed)
                caller = next(frame for frame in frames if frame.is_managed and frame.is_call)
                again = target.frames(caller.registers, thread=thread.thread, caller=True)
                self.assertEqual([f.pc for f in again.items if f.is_managed],
                                 [f.pc for f in frames[caller.index:] if f.is_managed])
                self.assertTrue(again[0].is_call)
                compared += 1
        self.assertGreater(compared, 0)

    def test_errors(self):
        def fail(address, size):
            raise KeyError(address)
        with self.assertRaises(KeyError):
            cdacq.open(callbacks=cdacq.Memory(read=fail, mappings=self.mappings))
        with self.assertRaises(ValueError):  # more than was asked for
            cdacq.open(callbacks=cdacq.Memory(read=lambda a, size: bytes(size + 1), mappings=self.mappings))
        with self.assertRaises(cdacq.Error):
            cdacq.open(callbacks=cdacq.Memory(mappings=self.mappings))

        calls = []

        def sometimes(address, size):
            if calls:
                raise KeyboardInterrupt
            return self.read(address, size)
        with cdacq.open(callbacks=cdacq.Memory(read=sometimes, mappings=self.mappings)) as target:
            calls.append(True)
            with self.assertRaises(KeyboardInterrupt):
                target.methods()


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def test_snapshot(self):
        with cdacq.open(CRASH, record=True) as target:
            names = [frame.name for frame in target.threads()[0].frames()]
            size = target.write_snapshot(self.work / "snapshot")
        self.assertEqual(size, (self.work / "snapshot").stat().st_size)
        with cdacq.open(self.work / "snapshot") as target:
            self.assertEqual([frame.name for frame in target.threads()[0].frames()], names)
        with cdacq.open(CRASH) as target, self.assertRaises(cdacq.Error):
            target.write_snapshot(self.work / "none")

    def test_snapshot_of_scattered_memory(self):
        """Every other line of a core's stack: the gaps are filled, so that there are fewer than 10,000 segments."""
        data, core = bytes(at % 251 for at in range(64 * 40000)), bytearray(pathlib.Path(CRASH).read_bytes())
        table, count = struct.unpack_from("<Q", core, 32)[0], struct.unpack_from("<H", core, 56)[0]
        added = struct.pack("<IIQQQQQQ", 1, 4, len(core), 0x10000000, 0, len(data), len(data), 1)
        struct.pack_into("<Q", core, 32, len(core) + len(data))  # the program headers are now at the end
        struct.pack_into("<H", core, 56, count + 1)
        (self.work / "core").write_bytes(bytes(core) + data + core[table:table + 56 * count] + added)
        with cdacq.open(self.work / "core", record=True) as target:
            for at in range(0, len(data), 128):
                target.record_memory(0x10000000 + at, 1)
            target.write_snapshot(self.work / "snapshot")
            with self.assertRaises(cdacq.Error):
                target.record_memory(2**64 - 1, 2)
        segments = python_support.load_segments(self.work / "snapshot")[0]
        self.assertLess(len(segments), 9999)
        self.assertEqual([segment for segment in segments if segment[0] < 0x20000000], [(0x10000000, data[:len(data) - 64])])
        with cdacq.open(CRASH) as target, self.assertRaises(cdacq.Error):
            target.record_memory(1, 1)

    def test_complete_core(self):
        with cdacq.open(CRASH) as target:
            made = target.write_complete_core(self.work / "full")
            memory = target.memory()
        self.assertEqual(made.file_size, (self.work / "full").stat().st_size)
        self.assertEqual(made.unverified_size, 0)
        self.assertGreater(made.missing_size, 0)
        self.assertTrue(all(file.problem and file.path for file in made.files))
        with cdacq.open(self.work / "full") as target, cdacq.open(CRASH) as whole:
            self.assertEqual([frame.name for frame in target.threads()[0].frames()],
                             [frame.name for frame in whole.threads()[0].frames()])
        self.assertFalse(memory.is_resident)
        self.assertGreater(memory.files, 0)
        self.assertGreater(memory.stacks, 0)
        for ask in ["strings"], ["heap"], ["heap", False], ["heap", True, True]:  # it has no heap
            with cdacq.open(CRASH) as target, self.assertRaises(cdacq.Error):
                getattr(target, ask[0])(*ask[1:])

    def test_perf_map_and_verify(self):
        left_out = []
        with cdacq.open(CORE, names=cdacq.NameStyle.IL) as target:
            written = target.write_perf_map(self.work / "map", left_out=left_out.append)
            data = (self.work / "map").read_bytes()
            self.assertEqual((written.bytes, written.methods), (len(data), data.count(b"\n")))
            self.assertEqual(written.left_out, len(left_out))
            self.assertTrue(all(method.error for method in left_out))
            comparisons = []
            totals = target.verify(self.work / "map", comparisons.append)
            self.assertTrue(totals.perf_map)
            self.assertEqual(sum(totals.counts.values()) - totals.counts[cdacq.Verdict.MISSING_FROM_FILE],
                             totals.records)
            self.assertEqual(len(comparisons), sum(totals.counts.values()))
            self.assertEqual(totals.counts[cdacq.Verdict.MATCH], totals.records)
            matched = next(c for c in comparisons if c.verdict == cdacq.Verdict.MATCH)
            self.assertEqual(matched.method.code_start, matched.address)
            self.assertEqual(target.verify(self.work / "map").records, totals.records)
            with self.assertRaises(ZeroDivisionError):
                target.verify(self.work / "map", lambda comparison: 1 // 0)
            (self.work / "wrong").write_bytes(b"\n".join(line.rsplit(b" ", 1)[0] + b" ELSE"
                                                         for line in data.splitlines()) + b"\n")
            self.assertEqual(target.verify(self.work / "wrong").contradictions, written.methods)

    def test_write_jitdump(self):
        with cdacq.open(HELLO) as target:
            with open(self.work / "dump", "wb") as file:
                written = target.write_jitdump(file, stubs=True)
            with cdacq.Jitdump(self.work / "dump", code=True) as jitdump:
                loads = [record for record in jitdump if record.kind == cdacq.JitdumpKind.LOAD]
            self.assertEqual(len(loads), written.methods + written.stubs)
            self.assertGreater(len(loads), 0)
            self.assertTrue(all(len(record.fields.code) == record.fields.code_size for record in loads))

            class Full:
                def write(self, data):
                    raise OSError(28, "no space")
            with self.assertRaises(OSError) as raised:
                target.write_jitdump(Full())
            self.assertEqual(raised.exception.errno, 28)

    def test_write_elf(self):
        with cdacq.open(HELLO) as target:
            written = target.write_elf(self.work / "elf")
            coded = target.write_elf(self.work / "coded", code=True)
            files = {file.path: file for file in target.code_files()}
            image = next(path for path, file in files.items() if path and file.has_code and path.endswith("CoreLib.dll"))
            of_file = target.write_elf_of_file(image, self.work / "image")
            lines = target.write_jitdump(self.work / "lines", debug=True)
        self.assertGreater(of_file.methods, 0)
        self.assertGreater(lines.bytes, 0)
        data = (self.work / "elf").read_bytes()
        self.assertEqual((data[:4], len(data)), (b"\x7fELF", written.bytes))
        self.assertGreater(written.functions, 100)
        self.assertGreater(coded.bytes, written.bytes)

    def test_jitdump(self):
        writer = JitdumpWriter()
        writer.debug_info(1, 0x1000, [(0x1000, 7, 0, b"a.cs"), (0x1002, 8, 1, b"\xff")])
        writer.unwinding_info(1, b"unwind", 2, 3)
        writer.samply(1, [b"f.cs"], [b"F", b"G"], [(0, 0, 1, 2, 3)], [(0, 1, 0, 5, 6)], [(0, 4)], [(1, 0, 9, 10)])
        writer.load(2, 3, 4, 0x1000, b"code", 5, b"void [A] A::A()")
        writer.move(3, 3, 4, 0x2000, 0x1000, 0x2000, 4, 5)
        writer.close(6)
        (self.work / "dump").write_bytes(writer.data)
        with cdacq.Jitdump(self.work / "dump", code=True) as jitdump:
            header = jitdump.next()
            self.assertEqual((header.kind, header.fields.version), (cdacq.JitdumpKind.HEADER, 1))
            debug = jitdump.next()
            self.assertEqual(debug.entries(), [(0x1000, 7, 0, "a.cs"), (0x1002, 8, 1, "a.cs")])
            self.assertEqual(debug.functions(), [])
            self.assertEqual(jitdump.next().fields.unwinding_data, b"unwind")
            with self.assertRaises(ValueError):
                debug.entries()
            samply = jitdump.next()
            self.assertEqual((samply.files(), samply.function_names()), (["f.cs"], ["F", "G"]))
            self.assertEqual((samply.functions(), samply.inline_calls(), samply.ranges(), samply.line_records()),
                             ([(0, 0, 1, 2, 3)], [(0, 1, 0, 5, 6)], [(0, 4)], [(1, 0, 9, 10)]))
            load = jitdump.next().fields
            self.assertEqual((load.name, load.code, load.code_index), ("void [A] A::A()", b"code", 5))
            self.assertEqual(jitdump.next().fields.new_code_addr, 0x2000)
            self.assertEqual([place.code_addr for place in jitdump.places()], [0x2000])
            self.assertIsNone(jitdump.next().fields)
            self.assertIsNone(jitdump.next())
            record, place = jitdump.find(0x2001)
            self.assertEqual((record.fields.name, place.code_addr), ("void [A] A::A()", 0x2000))
            self.assertEqual((place.damaged, place.problem, jitdump.find_problem), (0, None, None))
            self.assertIsNone(jitdump.find(0x1001))
            self.assertRaises(OverflowError, jitdump.find, (1 << 64) + 0x2001)
            jitdump.check_end()
            self.assertEqual(jitdump.find(0x1001, time=2)[1].code_addr, 0x1000)
        self.assertIsNone(cdacq.Jitdump.find_file(os.getpid()))
        for use in (jitdump.next, jitdump.places, samply.files):
            with self.assertRaises(ValueError):
                use()
        (self.work / "none").write_bytes(b"none")
        with cdacq.Jitdump(self.work / "none") as jitdump, self.assertRaises(cdacq.Error) as raised:
            next(iter(jitdump))
        self.assertEqual(raised.exception.status, cdacq.Status.ERR_FORMAT)

    def test_follow(self):
        writer = JitdumpWriter()
        path = self.work / "dump"
        path.write_bytes(writer.data)
        with cdacq.Jitdump(path, follow=True) as jitdump:
            self.assertEqual(len(list(jitdump)), 1)
            writer.load(2, 3, 4, 0x1000, b"code", 5, b"A")
            path.write_bytes(writer.data)
            self.assertEqual([record.fields.name for record in jitdump], ["A"])


class Library(unittest.TestCase):
    def test_it_is_found_or_named(self):
        environment = {**os.environ, "CDACQ_LIBRARY": "/nonexistent.so", "PYTHONPATH": os.pathsep.join(sys.path)}
        failed = subprocess.run([sys.executable, "-B", "-c", "import cdacq; cdacq.version()"], env=environment,
                                capture_output=True, text=True)
        self.assertIn("OSError: /nonexistent.so", failed.stderr)

    def test_modules(self):
        for module in pkgutil.iter_modules(cdacq.__path__):
            if module.name not in ("gdb", "lldb"):
                self.assertTrue(importlib.import_module(f"cdacq.{module.name}").__doc__, module.name)


def buckets_environment():
    return {**os.environ, "PYTHONPATH": str(python_support.ROOT / "python"), "CDACQ_TOOL": TOOL}


NEEDS_P = unittest.skipIf(sys.version_info < (3, 11), "Python has no -P")


class Buckets(unittest.TestCase):
    """Rows of many cores, and what becomes of those that cannot be read."""

    @NEEDS_P
    def test_rows_and_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            damaged = os.path.join(folder, "damaged.core")
            pathlib.Path(damaged).write_bytes(b"\x7fELF" + bytes(100))
            rows = [buckets.row(str(core), tool=TOOL) for core in (CRASH, CRASH, damaged, HELLO)]
            self.assertEqual(rows[0], tool("report", "--signature", "--json", str(CRASH))[0])
            self.assertEqual(rows[2]["target"], damaged)
            self.assertTrue(rows[2]["error"])
            self.assertNotIn("signature", rows[2])
            number = buckets.row(str(os.getpid()), tool=TOOL)  # a file that is not there, and not this process
            self.assertEqual(number, {"target": str(os.getpid()), "error": f"{os.getpid()}: No such file or directory"})
            path = os.path.join(folder, "rows.jsonl")
            text = "".join(json.dumps(row) + "\n" for row in rows)
            pathlib.Path(path).write_text(text + text[:40] + "\n[1]\n")  # a line that was cut, and one that is no row
            read = buckets.read_rows([path])
            self.assertEqual(read, rows[1:])  # one for each core
            found = buckets.buckets(rows)
            self.assertEqual([bucket.count for bucket in found], [2, 1, 1])
            self.assertEqual(found[0].signature, rows[0]["signature"])
            self.assertEqual((found[0].first_seen, found[0].example), (rows[0]["time"], str(CRASH)))
            self.assertIn("[error] CORE", "".join(bucket.signature for bucket in found))
            command = [sys.executable, "-P", "-m", "cdacq.buckets"]
            options = {"capture_output": True, "text": True, "check": True, "env": buckets_environment()}
            table = subprocess.run([*command, "csv", path], **options).stdout.splitlines()
            self.assertEqual(table[0].split(",")[:2], ["target", "signature"])
            printed = subprocess.run([*command, "rows"], input=f"{CRASH}\n", **options).stdout
            self.assertEqual(json.loads(printed), rows[0])
            self.assertIn(rows[0]["signature"], subprocess.run([*command, "summary", path], **options).stdout)
            letters = os.path.join(folder, "letters.jsonl")
            pathlib.Path(letters).write_text(json.dumps({**rows[0], "signature": "W\u00f6rk.Main"}), encoding="ascii")
            ascii_ = {**options, "env": {**options["env"], "LC_ALL": "C", "PYTHONUTF8": "0"}, "encoding": "utf-8"}
            for kind in ("summary", "csv"):  # also where the locale lacks a letter
                self.assertIn("W\u00f6rk.Main", subprocess.run([*command, kind, letters], **ascii_).stdout)
            options["check"] = False
            parquet = subprocess.run([*command, "parquet", os.path.join(folder, "rows.parquet"), path], **options)
            if importlib.util.find_spec("pyarrow") is None:
                self.assertEqual((parquet.returncode, parquet.stderr.count("\n")), (1, 1))
                self.assertIn("needs pyarrow", parquet.stderr)
            else:
                self.assertEqual((parquet.returncode, parquet.stderr), (0, ""))

    @NEEDS_P
    def test_names_of_strangers(self):
        """File names with escape sequences, and times at which no core was written."""
        names = ["\x1b]0;owned\x07\x1b[31m", "x\ncore: forged line", "\udcff\u202e\u200b\\"]
        with tempfile.TemporaryDirectory() as folder:
            rows = []
            for name, time in zip(names, (10**18, -10**30, 0)):
                shutil.copy(CRASH, core := os.path.join(folder, "core." + name))
                rows.append({**buckets.row(core, tool=TOOL), "time": time})
                rows.append({"target": core, "error": f"no answer from {core}"})
            self.assertEqual(rows[0]["target"], os.path.join(folder, "core." + names[0]))  # rows have the path itself
            for one in (rows[::2], rows[1::2]):
                path = os.path.join(folder, "rows.jsonl")
                pathlib.Path(path).write_text("".join(json.dumps(row) + "\n" for row in one))
                for command in ("summary", "csv"):
                    done = subprocess.run([sys.executable, "-P", "-m", "cdacq.buckets", command, path], check=True,
                                          capture_output=True, env=buckets_environment())
                    self.assertIsNone(re.search(rb"[\0-\x09\x0b\x0c\x0e-\x1f\x7f]|\xe2\x80", done.stdout), done.stdout)
                    self.assertIn(rb"core.\x1b]0;owned\x07\x1b[31m", done.stdout)
                    self.assertNotIn(b"\ncore: forged line", done.stdout)
                    if command == "csv":
                        self.assertIn(rb"core.\xff\u{202e}\u{200b}\\", done.stdout)

    @NEEDS_P
    def test_code_of_strangers(self):
        """A folder of cores can have files that Python would import from the current folder."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "cdacq"))
            for name in ("csv.py", "ctypes.py", "cdacq/__init__.py"):
                pathlib.Path(folder, name).write_text("print('code of the folder runs')\n")
            options = {"capture_output": True, "text": True, "cwd": folder, "input": "", "env": buckets_environment()}
            done = subprocess.run([sys.executable, "-P", "-m", "cdacq.buckets", "rows"], check=False, **options)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            done = subprocess.run([sys.executable, "-m", "cdacq.buckets", "rows"], check=False, **{**options, "cwd": "/"})
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
            self.assertIn("the current folder", done.stderr)
            shutil.rmtree(os.path.join(folder, "cdacq"))  # which Python itself would take for the package
            shutil.copy(os.path.join(folder, "csv.py"), os.path.join(folder, "__future__.py"))
            done = subprocess.run([sys.executable, "-m", "cdacq.buckets", "rows"], check=False, **options)
            self.assertEqual((done.returncode, done.stdout), (1, ""))

    def test_a_tool_that_hangs_or_dies(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "tool")
            for body, error in (("exec sleep 60", "no answer within 0.2 s"), ("kill -9 $$", "killed by signal 9")):
                pathlib.Path(script).write_text(f"#!/bin/sh\n{body}\n")
                os.chmod(script, 0o755)
                self.assertIn(error, buckets.row("core", tool=script, timeout=0.2 if "sleep" in body else 60)["error"])


if __name__ == "__main__":
    sys.exit(unittest.main())
