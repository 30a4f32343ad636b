"""test_filter.py: `cdacq filter` and `cdacq flame` on a bundled core."""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

import perf_script_reader

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "support"))
import browser  # noqa: E402

TOOL = os.environ["CDACQ_TOOL"]
CORE = os.path.join(os.environ["CDACQ_FIXTURES"], "net10-x64", "core")
CTOR, STACK = 0x7f91e58aed0f, 0x7f91e595e8f9
HELLO = os.path.join(os.environ["CDACQ_FIXTURES"], "hello-net10-x64", "core")
CCTOR = 0x7f8317d6e3d0  # the first instruction; GetCharset ends there
NAMES = {CTOR: "Demo.Outer<T>.Inner<int>..ctor()", STACK: "System.Collections.Generic.Stack<T>..ctor()"}

SAMPLES = """\
# captured on: now
.NET TP Worker 101/102 [001] 12.5:     250000 cycles:u:
\t    7f91e58aed0f [unknown] (/memfd:doublemapper (deleted))
\t    7f91e595e8fa [unknown] (/usr/lib/System.dll)
\t    55aa00001234 main+0x4 (/usr/bin/dotnet)

.NET TP Worker 101/102 [001] 12.6:     250000 cycles:u:
\t    7f91e58aed0f [unknown] (/memfd:doublemapper (deleted))
\t    7f91e595e8fa [unknown] (/usr/lib/System.dll)
\t    55aa00001234 main+0x4 (/usr/bin/dotnet)

bash 77 12.7: cycles:u:     55aa00001234 std::map<a; b>::op+()+0x10 (/bin/bash)
"""


def run(*arguments, text=b"", status=0):
    result = subprocess.run([TOOL, *arguments], input=text, capture_output=True)
    if result.returncode != status:
        raise AssertionError(f"{arguments}: exit {result.returncode}: {result.stderr.decode()}")
    return result.stdout


class Filter(unittest.TestCase):
    def test_addresses_are_named_and_nothing_else_changes(self):
        name = NAMES[CTOR].encode() + b"+0xf"
        for before, after in [
            (b"0x7f91e58aed0f", b"0x7f91e58aed0f <%s>" % name),
            (b"7F91E58AED0F\r\n", b"7F91E58AED0F <%s>\r\n" % name),
            (b"[00007f91e58aed0f]\0\xff", b"[00007f91e58aed0f <%s>]\0\xff" % name),
            (b"7f91e58aed0f-7f91e58aed0f", b"7f91e58aed0f <%s>-7f91e58aed0f <%s>" % (name, name)),
        ]:
            self.assertEqual(run("filter", CORE, text=before), after)
        for text in [b"", b"\n", b"x+0x7f91e58aed0f", b"7f91e58aed0fg", b"_7f91e58aed0f", b"deadbeef 0x10 0x", b"e58aed0f",
                     b"0" * 17 + b"7f91e58aed0f", b"a" * 600000, b"0x7f91e58aed0f0x7f91e58aed0f"]:
            self.assertEqual(run("filter", CORE, text=text), text)

    def test_any_text_comes_through(self):
        generator = random.Random(7)
        words = [b"%x" % CTOR, b"0x%x" % STACK, b" ", b"\n", b"+", b"\xc3\x28", b"\0", b"deadbeefdeadbeef", b"x" * 300000]
        text = b"".join(generator.choices(words, [9, 9, 9, 9, 2, 2, 2, 2, .01], k=60000))
        out = run("filter", CORE, text=text)
        self.assertGreater(out.count(b" <Demo.Outer"), 1000)
        self.assertEqual(re.sub(rb" <(Demo|System)\.[A-Za-z.<>]+\(\)\+0x[0-9a-f]+>", b"", out), text)

    def test_a_line_is_answered_before_the_next_is_written(self):
        with subprocess.Popen([TOOL, "filter", CORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
            for ip in (CTOR, STACK, CTOR):
                process.stdin.write(b"at %x\n" % ip)
                self.assertIn(NAMES[ip].encode(), process.stdout.readline())
            process.stdin.close()
            self.assertEqual(process.wait(), 0)

    def test_a_word_that_comes_in_pieces(self):
        for first, rest in ((b"g" * 24, b"%x x\n" % CTOR), (b"0" * 100, b"%x\n" % CTOR)):
            with subprocess.Popen([TOOL, "filter", CORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
                process.stdin.write(first)
                self.assertEqual(process.stdout.read(len(first)), first)
                process.stdin.write(rest)
                process.stdin.close()
                self.assertEqual(process.stdout.read(), rest)

    def test_wrong_usage(self):
        run("filter", status=64)
        run("filter", "-", status=64)
        run("filter", CORE, "--json", status=64)


class Folded(unittest.TestCase):
    def test_samples_are_folded(self):
        self.assertEqual(run("filter", CORE, "--folded", text=SAMPLES.encode()).decode().splitlines(), [
            f".NET TP Worker;main;{NAMES[STACK]};{NAMES[CTOR]} 2",
            "bash;std::map<a: b>::op+() 1"])
        self.assertEqual(run("filter", "--folded", text=SAMPLES.encode()).decode().splitlines(), [
            ".NET TP Worker;main;[System.dll];[memfd:doublemapper (deleted)] 2",
            "bash;std::map<a: b>::op+() 1"])
        run("filter", "--folded", text=b"nothing of perf\n", status=2)

    def test_names_of_threads_with_numbers(self):
        """The id is the number that the time follows. Without a time, it is the first number before a number."""
        for name in ("Worker 3", "pool 1 thread 2", "1234 5 [000] x:", "v1.5: 3 4", "12.5: 7", "a/b 1/2"):
            for id_ in ("29998", "29998/30000 [001]"):
                text = f"{name} {id_}  4358.766781:     250000 cycles:u: \n\t1 main+0x4 (/bin/x)\n\n"
                self.assertEqual(run("filter", "--folded", text=text.encode()).decode(), f"{name};main 1\n")
        text = "dotnet 29998     250000 cycles:u: \n\t1 main+0x4 (/bin/x)\n\n"
        self.assertEqual(run("filter", "--folded", text=text.encode()).decode(), "dotnet;main 1\n")

    def test_the_frame_below_the_kernel_is_interrupted(self):
        """Its address is that of an instruction; below it, addresses are where calls return to."""
        kernel = "\tffffffff81000010 asm_exc_page_fault+0x30 ([kernel.kallsyms])\n"
        user = f"\t{CCTOR:x} [unknown] (/x.dll)\n"
        cctor, charset = "System.Text.EncodingHelper..cctor()", "System.Text.EncodingHelper.GetCharset()"
        for frames, expected in ((user, cctor), (kernel + user, f"{cctor};asm_exc_page_fault"),
                                 (kernel * 2 + user * 2, f"{charset};{cctor};asm_exc_page_fault;asm_exc_page_fault")):
            text = f"aaaa 12/12 [000] 1.0: 1 page-faults: \n{frames}\n"
            self.assertEqual(run("filter", HELLO, "--folded", text=text.encode()).decode(), f"aaaa;{expected} 1\n")

    def test_the_start_of_code_that_replaced_running_code_is_no_caller(self):
        """.NET 11 leaves it in place of a return address. Only OSR code can have it there, and only as its own caller."""
        def fold(target, *frames):
            text = "dotnet 12 3.5: 1 cycles: \n" + "".join(f"\t{frame}\n" for frame in frames) + "\n"
            done = subprocess.run([TOOL, "filter", "--folded", *target], input=text.encode(), capture_output=True)
            self.assertEqual(done.returncode, 0)
            return done.stdout.decode(), done.stderr.decode().count("1 frame left out, and with it the caller is missing")

        start, name = 0x7f91e5873820, "Demo.Emitted.EmitSteps(System.Reflection.Emit.ILGenerator, int)"
        inner, main = f"{start + 0x40:x} [unknown] (/x)", "55aa00001234 main+0x4 (/usr/bin/dotnet)"
        self.assertEqual(fold([CORE], inner, f"{start:x} [unknown] (/x)", main), (f"dotnet;main;{name} 1\n", 1))
        self.assertEqual(fold([CORE], inner, f"{start + 9:x} [unknown] (/x)", main), (f"dotnet;main;{name};{name} 1\n", 0))
        stack = f"{STACK & ~15:x}"  # code of another tier
        self.assertEqual(fold([CORE], f"{STACK:x} a (/x)", stack + " b (/x)", main)[1], 0)
        for symbol, file, expected in (("void [A] B::C()[OptimizedTier1OSR]", "/tmp/perf-7.map", 1),
                                       ("B.C()", "/memfd:doublemapper (deleted)", 1),
                                       ("void [A] B::C()[OptimizedTier1]", "/tmp/perf-7.map", 0), ("abort", "/libc.so.6", 0)):
            stacks = ["", f"dotnet;main;{symbol} 1\n"][expected] or f"dotnet;main;{symbol};{symbol} 1\n"
            frames = [f"7f0000001040 {symbol}+0x40 ({file})", f"7f0000001000 {symbol}+0x0 ({file})", main]
            self.assertEqual(fold([], *frames), (stacks, expected))
            for other in (f"7f0000001000 {symbol}+0x10 ({file})", f"7f0000001000 x{symbol}+0x0 ({file})",
                          f"7f0000001000 {symbol} ({file})"):
                self.assertEqual(fold([], frames[0], other, main)[1], 0)
            self.assertEqual(fold([], frames[1], main)[1], 0)

    def test_offsets_in_files(self):
        """Of files that perf cannot read, it shows offsets; one message says how to get names, unless perf has some."""
        def said(*frames):
            text = "dotnet 12 3.5: 1 cycles: \n" + "".join(f"\t    {frame}\n" for frame in frames) + "\n"
            for target in ([], [CORE]):
                done = subprocess.run([TOOL, "filter", "--folded", *target], input=text.encode(), capture_output=True)
                self.assertEqual(done.returncode, 0)
                yield done.stderr.decode()
        compiled, assembly = "113a25 [unknown] (/memfd:doublemapper (deleted))", "22a1 [unknown] (/app/Busy.dll)"
        advice = ": write a folder with 'cdacq symfs PID DIR', and use 'perf script --symfs DIR'\n"
        self.assertEqual([*said(compiled, assembly)], ["cdacq: 2 frames are offsets in files, not addresses" + advice] * 2)
        self.assertEqual([*said(compiled)], ["cdacq: 1 frame is an offset in files, not an address" + advice] * 2)
        named = "1197f7 Busy.Program.Main()+0x97 (/memfd:doublemapper (deleted))"
        for frames in ((compiled, named), ("7f91e58aed0f" + compiled[6:],), ("33eee5 [unknown] (/usr/libcoreclr.so)",)):
            self.assertEqual([*said(*frames)], ["", ""])

    def fold(self, text):
        return run("filter", "--folded", text=text.encode()).decode().splitlines()

    def test_samples_without_a_call_chain(self):
        """They begin with blanks, as frames do. Both kinds come mixed if events differ in their call chains."""
        chain = "app 12 3.5: 1 cycles: \n\t    55aa00001234 inner+0x4 (/a)\n\t    55aa00005678 outer+0x4 (/a)\n\n"
        line = "             app 12 3.5:          1 cycles:      55aa00001234 inner+0x4 (/a)\n"
        kernel = "     app (a) 12/12 [000] 3.5: 1 cycles:  ffffffff81000010 entry+0x30 ([kernel.kallsyms])\n"
        self.assertEqual(self.fold(line * 3 + kernel), ["app (a);entry 1", "app;inner 3"])
        self.assertEqual(self.fold(line * 2 + chain * 2 + line + chain + kernel + line),
                         ["app (a);entry 1", "app;inner 4", "app;outer;inner 3"])
        self.assertEqual(self.fold("  " + chain), ["app;outer;inner 1"])  # the thread's name begins with blanks

    def test_long_lines(self):
        """Of a line that is too long, the start is read, and nothing that follows in it."""
        tail = "x" * 700000 + "app 12 3.5: 1 cycles:      55aa00001234 f (/a)"
        frame = f"\t    55aa00001234 {tail}\n\t    55aa00005678 outer+0x4 (/a)\n\n"
        stack, count = self.fold("app 12 3.5: 1 cycles: \n" + frame)[0].rsplit(" ", 1)
        self.assertRegex(stack, "^app;outer;x+$")
        self.assertEqual(self.fold("app 12 3.5: 1 cycles: \n#" + tail * 3 + "\n"), ["app 1"])

    def test_frames_like_headers(self):
        """What begins with blanks outside a sample, or like a comment, is a sample only with the name of an event."""
        run("filter", "--folded", text=b"\t    55aa00001234 f<1, 2 3>: a (/a)\n", status=2)
        head, frame = "app 12 3.5: 1 cycles: \n", "\t    55aa00001234 f 12 [3] 1.5: 1 x: (/a)\n"
        self.assertEqual(self.fold(head + frame), ["app;f 12 [3] 1.5: 1 x: 1"])

    def test_thread_names_like_comments(self):
        header = "# ========\n# captured on    : Wed Nov  5 13:29:11 2026\n# cmdline : perf record -- a 1 2\n#\n"
        frame = "\t    55aa00001234 main+0x4 (/a)\n\n"
        for name in ("#worker", "# x", "#"):
            sample = f"{name} 12/12 [000] 3.5: 1 cycles: \n{frame}"
            self.assertEqual(self.fold(header + sample * 2 + header + sample), [f"{name};main 3"])

    def test_frames_at_address_0(self):
        """They are frames as others: the next one is where a call returns to."""
        charset = f"\t{CCTOR:x} [unknown] (/x.dll)\n"
        for frames, expected in (("\t0 f (/a)\n" + charset, "System.Text.EncodingHelper.GetCharset();f"),
                                 ("\t0 f (/a)\n\t0 g (/a)\n", "g;f")):
            text = f"aaaa 12/12 [000] 1.0: 1 cycles: \n{frames}\n"
            self.assertEqual(run("filter", HELLO, "--folded", text=text.encode()).decode(), f"aaaa;{expected} 1\n")

    def test_texts_of_perf(self):
        """Each choice of fields, as an independent reader has it that knows the fields."""
        for path in sorted((pathlib.Path(os.environ["CDACQ_FIXTURES"]) / "perf_script").glob("*.txt")):
            text = path.read_text()
            _, records = perf_script_reader.read(text)
            expected = perf_script_reader.folded(text)
            done = subprocess.run([TOOL, "filter", "--folded"], input=text, capture_output=True, text=True)
            with self.subTest(path.stem):
                self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, expected))
                self.assertEqual(f"{records} lines of PERF_RECORD left out" in done.stderr, records > 0)
                self.assertEqual(len(expected) > 0, True)

    def said(self, text):
        done = subprocess.run([TOOL, "filter", "--folded"], input=text, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    def test_events_are_not_added_up(self):
        def sample(event):
            return f"app 12 3.5: 1 {event}: \n\t    55aa00001234 f+0x4 (/a)\n\n"
        self.assertEqual(self.said(sample("cycles") * 2 + sample("instructions:u")), (
            0, ["cycles;app;f 2", "instructions:u;app;f 1"],
            ["cdacq: samples of 2 events; each stack begins with its event:", "cdacq:   cycles: 2 samples",
             "cdacq:   instructions:u: 1 sample"]))
        status, stacks, lines = self.said("".join(map(sample, map("e{}".format, range(70)))))
        self.assertEqual((status, len(stacks), lines[-1]), (0, 64, "cdacq:   [other events]: 7 samples"))

    def test_names_with_parentheses(self):
        """Without the field dso, what ends in parentheses is a name; the frames of the event show which it is."""
        def stack(*frames):
            text = "app 12 3.5: 1 cycles: \n" + "".join(f"\t    55aa00001234 {frame}\n" for frame in frames) + "\n"
            return self.said(text)[1]
        self.assertEqual(stack("A.Spin(string, int)", "A.Spin(int)"), ["app;A.Spin(int);A.Spin(string, int) 1"])
        self.assertEqual(stack("f (a.js)", "g"), ["app;g;f (a.js) 1"])
        self.assertEqual(stack("f (a.js) (/tmp/perf-1.map)", "g (/a (deleted))"), ["app;g;f (a.js) 1"])
        self.assertEqual(stack("h (inlined)", "f (a.so)", "g (b.so)"), ["app;g;f;h 1"])
        self.assertEqual(stack("operator+0x(int)+0x10 (/a)", "f+0xg (/a)"), ["app;f+0xg;operator+0x(int) 1"])

    def test_what_is_left_out_is_said(self):
        frame = "\t    55aa00001234 f+0x4 (/a)\n"
        head = "app 12 3.5: 1 cycles: \n"
        self.assertEqual(self.said(head + frame + "\tTHIS_IS_NO_FRAME\n\n" + head + frame), (
            1, ["app;f 2"], ["cdacq: 1 line left out: neither a sample nor a frame; the first is line 3"]))
        self.assertEqual(self.said("app 12\n\n" + frame + "\n" + head + frame), (
            1, ["app;f 1"], ["cdacq: 2 lines left out: neither a sample nor a frame; the first is line 1"]))
        namespaces = "app 12 3.5: PERF_RECORD_NAMESPACES 12/12 - nr_namespaces: 7\n\t\t[0/net: 3/0xf0000081, 1/uts: 3]\n"
        self.assertEqual(self.said(namespaces + head + frame), (
            0, ["app;f 1"], ["cdacq: 1 line of PERF_RECORD left out: it is no sample"]))
        self.assertEqual(self.said("  app 12 [000] 3.5: sched:sched_switch: prev_pid=12 ==> next_pid=7\n"), (
            0, ["app 1"], ["cdacq: 1 sample has no frame: only the thread is counted"]))

    def test_damaged_text(self):
        generator = random.Random(11)
        for _ in range(60):
            text = bytearray(SAMPLES.encode() * 20)
            for _ in range(40):
                text[generator.randrange(len(text))] = generator.randrange(256)
            result = subprocess.run([TOOL, "filter", CORE, "--folded"], input=text, capture_output=True)
            self.assertIn(result.returncode, (0, 1, 2))
            for line in result.stdout.split(b"\n")[:-1]:
                self.assertRegex(line, rb"^[^\x00-\x1f]* [1-9][0-9]*$")


class Flame(unittest.TestCase):
    def boxes(self, folded, status=0):
        document = xml.dom.minidom.parseString(run("flame", "-", text=folded, status=status))
        return {group.getElementsByTagName("title")[0].firstChild.data:
                (float(group.getAttribute("data-x")), float(group.getAttribute("data-w")), int(group.getAttribute("data-d")))
                for group in document.getElementsByTagName("g")}

    def test_boxes_have_the_sums_of_their_stacks(self):
        boxes = self.boxes(b"a;b;c 1\na;b 1\nd 2\na;b;c 2\na b;b 2\n")
        self.assertEqual(boxes, {
            "a (4 samples, 50.00%)": (0, .5, 0),
            "b (4 samples, 50.00%)": (0, .5, 1),
            "c (3 samples, 37.50%)": (.125, .375, 2),
            "a b (2 samples, 25.00%)": (.5, .25, 0),
            "b (2 samples, 25.00%)": (.5, .25, 1),
            "d (2 samples, 25.00%)": (.75, .25, 0)})

    def test_a_frame_below_others_is_one_box(self):
        """Whatever the bytes of names are, which may come before or after the ';' between frames."""
        names = ["f"] + ["f" + chr(c) for c in [*range(0x21, 0x7f), 0xe9] if chr(c) != ";"]
        boxes = self.boxes("".join(f"main;{name}{below} 1\n" for below in ("", ";bar", "") for name in names).encode())
        self.assertEqual({title.partition(" (")[::2] for title, (_, _, depth) in boxes.items() if depth == 1},
                         {(name, f"3 samples, {100 / len(names):.2f}%)") for name in names})
        boxes = self.boxes(b"main;foo 5\nmain;foo.cold 1\nmain;foo;bar 3\n")
        self.assertEqual(boxes["foo (8 samples, 88.89%)"][2], 1)
        self.assertEqual(len(boxes), 4)

    def test_narrow_frames(self):
        """Neighbours too narrow to be seen are one box with their sum, below their own caller."""
        tiny = [f"main;a;x{i};y;z 1\n" for i in range(3000)] + [f"main;b;x{i};y 1\n" for i in range(2000)]
        wide = ["main;a;m 20000\n", "main;b;w 25000\n", "main;b;w1 3\n"]
        self.assertEqual(self.boxes("".join(tiny + wide).encode()), {
            "main (50003 samples, 100.00%)": (0, 1, 0),
            "a (23000 samples, 46.00%)": (0, round(23000 / 50003, 9), 1),
            "m (20000 samples, 40.00%)": (0, round(20000 / 50003, 9), 2),
            "3000 frames, each too narrow (3000 samples, 6.00%)": (round(20000 / 50003, 9), round(3000 / 50003, 9), 2),
            "b (27003 samples, 54.00%)": (round(23000 / 50003, 9), round(27003 / 50003, 9), 1),
            "w (25000 samples, 50.00%)": (round(23000 / 50003, 9), round(25000 / 50003, 9), 2),
            "2001 frames, each too narrow (2003 samples, 4.01%)": (round(48000 / 50003, 9), round(2003 / 50003, 9), 2)})
        self.assertEqual({title.partition(" ")[0] for title in self.boxes(b"a 100000\nb 1\n")}, {"a"})

    def test_labels_keep_the_end_of_a_name(self):
        for name in ("System.Collections.Generic.List<T>.Add", "\u00e9" * 60):
            document = xml.dom.minidom.parseString(run("flame", "-", text=f"{name} 1\nzz 4\n".encode()))
            labels = sorted(text.firstChild.data for group in document.getElementsByTagName("g")
                            for text in group.getElementsByTagName("text"))
            self.assertEqual([label[:2] for label in labels], ["..", "zz"])
            self.assertTrue(name.endswith(labels[0][2:]))
            self.assertGreater(len(labels[0].encode()), 25)

    def test_deep_stacks(self):
        """What is left out of the image is said."""
        for depth, deep in ((2000, False), (2001, True)):
            done = subprocess.run([TOOL, "flame", "-"], input=b";".join([b"f"] * depth) + b" 1\n", capture_output=True)
            said = b"cdacq: 1 stack cut: only the outermost 2000 frames are drawn\n" if deep else b""
            self.assertEqual((done.returncode, done.stderr, done.stdout.count(b"<title>f ")), (int(deep), said, 2000))

    def test_long_lines(self):
        """A line that is too long is left out and counted once, wherever it is cut; nothing of it becomes a stack."""
        limit = 256 * 1024
        for frames in (limit // 2 - 3, limit // 2, limit, limit * 3):
            text = b"a;b 1\n" + b"f;" * frames + b"g 2\nc 3\n" + b"f;" * frames + b"g 4"
            done = subprocess.run([TOOL, "flame", "-"], input=text, capture_output=True)
            fits = frames * 2 + 3 < limit
            said = b"2 stacks cut: only the outermost 2000 frames are drawn" if fits else \
                b"2 lines left out: no folded stack, or too long"
            self.assertEqual((done.returncode, done.stderr), (1, b"cdacq: " + said + b"\n"))
            self.assertIn(b">10 samples<" if fits else b">4 samples<", done.stdout)

    @unittest.skipUnless(browser.works(), "no Chromium that starts")
    def test_in_a_browser(self):
        """A click zooms in and gives boxes labels for which they had no room; a search sums up what it finds."""
        folded = "".join(f"main;Work.Inner;Deep{i:04} 1\n" for i in range(2000)) + "main;Other 2000\n"
        with tempfile.TemporaryDirectory() as folder, browser.page() as page:
            path = os.path.join(folder, "a.svg")
            with open(path, "wb") as file:
                file.write(run("flame", "-", text=folded.encode()))
            page.open(f"file://{path}")
            page.evaluate("function box(name){return [...document.querySelectorAll('g.b')].find(g=>g.textContent.startsWith(name+' ('))}\n"
                          "function shown(name){return [...document.querySelectorAll('g.b>text')].map(t=>t.textContent).filter(t=>t.includes(name)).length}\n"
                          "function click(e){e.dispatchEvent(new MouseEvent('click',{bubbles:true}))} 0")
            self.assertEqual(page.evaluate("[document.title, shown('Other'), shown('Work.Inner')]"), ["Flame graph", 1, 1])
            page.evaluate("click(box('Work.Inner').querySelector('rect'))")
            self.assertEqual(page.evaluate("[box('Other').style.display, +box('Work.Inner').querySelector('rect').getAttribute('width')]"), ["none", 1180])
            page.evaluate("click(document.getElementById('reset'))")
            self.assertEqual(page.evaluate("[box('Other').style.display, +box('Work.Inner').querySelector('rect').getAttribute('width')]"), ["", 590])
            page.evaluate("window.prompt=()=>'Inner|Other'; click(document.getElementById('search'))")
            self.assertEqual(page.evaluate("document.getElementById('found').textContent"), "Found in 100.0%")
            page.evaluate("click(box('Deep0000').querySelector('rect'))")
            self.assertEqual(page.evaluate("[shown('Deep0000'), shown('Deep0001')]"), [1, 0])

    def test_characters_that_xml_does_not_have(self):
        boxes = self.boxes("a;b\ufffe 3\na;\uffffc\uffff\uffff 1\na;\ufffd\uffef\U0001fffe 1\n".encode())
        self.assertEqual({title.split(" (")[0] for title in boxes}, {"a", "b\ufffd", "\ufffdc\ufffd\ufffd", "\ufffd\uffef\U0001fffe"})

    def test_hostile_stacks(self):
        self.assertEqual(len(self.boxes(b"a;b\xff\x01<>&\"' 1\nno count\n;; 3\nx 0\ny 99999999999999999999\n", status=1)), 3)
        self.assertLess(len(run("flame", "-", text=b"f;" * 100000 + b"g 1\n", status=1)), 1 << 20)
        run("flame", "-", text=b"nothing\n", status=2)
        run("flame", "/nonexistent", status=2)
        done = subprocess.run([TOOL, "flame", "/"], capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (2, b"cdacq: /: cannot be read: Is a directory\n"))


if __name__ == "__main__":
    unittest.main()
