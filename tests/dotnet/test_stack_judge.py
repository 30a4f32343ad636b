#!/usr/bin/env python3
"""Tests stack_judge.py: every kind of wrong stack must be found. Uses invented frames; needs neither .NET nor cdacq."""

import unittest

import stack_judge

STACK = 0x7000


def native(ip, cfa, by="cfi"):
    return {"tid": 1, "ip": hex(ip), "status": "none", "kind": None, "method": None, "method_desc": None, "token": None, "module": None,
            "cfa": hex(cfa), "by": by, "funclet": None}


def managed(ip, method, cfa, by="unwind", name=None, funclet=None, line=None):
    return {"tid": 1, "ip": hex(ip), "status": "managed", "kind": "jit", "method": name or f"Demo.M{method:x}()", "method_desc": hex(method),
            "token": hex(0x6000000 + method), "module": "/app/Demo.dll", "cfa": hex(cfa), "by": by, "funclet": funclet,
            "offset": ip & 0xff, "il_offset": 0, "file": "M.cs" if line else None, "line": line}


def walked(ip, method, sp, frame=None):
    return {"ip": hex(ip), "sp": hex(sp), "method_desc": hex(method) if method else None, "frame": frame, "name": f"M{method}"}


def told(ip, method, line=None):
    return {"type": "Demo", "method": f"M{method:x}", "module": "/other/Demo.dll", "token": 0x6000000 + method, "native_offset": ip & 0xff,
            "il_offset": 0, "file": "M.cs" if line else None, "line": line or 0}


class Memory:
    """A stack that holds the return addresses that these frames say."""

    def __init__(self, frames):
        self.words = {int(before["cfa"], 16) - 8: int(frame["ip"], 16) for before, frame in zip(frames, frames[1:])}

    def word(self, address):
        return self.words.get(address)


OURS = [native(0x10, STACK), managed(0x110, 1, STACK + 0x10), managed(0x220, 2, STACK + 0x20), managed(0x330, 3, STACK + 0x30)]
THEIRS = [walked(0x110, 0, STACK, "InlinedCallFrame"), walked(0x110, 1, STACK), walked(0x220, 2, STACK + 0x10),
          walked(0x330, 3, STACK + 0x20)]


class Walks(unittest.TestCase):
    def compare(self, theirs, ours, real=None):
        tally = stack_judge.Tally()
        stack_judge.compare_walks(theirs, ours, Memory(real or ours), tally, "test")
        return tally.counts

    def failures(self, *arguments):
        tally = stack_judge.Tally()
        tally.counts = self.compare(*arguments)
        return set(stack_judge.failures(tally))

    def test_equal(self):
        counts = self.compare(THEIRS, OURS)
        self.assertEqual(counts["equal"], 3)
        self.assertEqual(counts["threads equal to the last frame"], 1)
        self.assertEqual(self.failures(THEIRS, OURS), set())

    def test_missing_anywhere(self):
        for i in range(1, 4):
            self.assertIn("MISSING", self.failures(THEIRS, OURS[:i] + OURS[i + 1:], OURS))

    def test_other_method(self):
        other = [*OURS[:2], managed(0x220, 9, STACK + 0x20), OURS[3]]
        self.assertIn("MISSING", self.failures(THEIRS, other))

    def test_other_address(self):
        other = [*OURS[:2], managed(0x221, 2, STACK + 0x20), OURS[3]]
        self.assertIn("MISSING", self.failures(THEIRS, other))

    def test_twice(self):
        """What is on the stack once must not be there twice."""
        double = [*OURS[:3], OURS[2], OURS[3]]
        self.assertTrue(any("INVENTED" in one for one in self.failures(THEIRS, double, OURS)))

    def test_invented_because_not_linked(self):
        extra = [*OURS[:2], managed(0x440, 4, STACK + 0x18), *OURS[2:]]
        self.assertIn("INVENTED, between", self.failures(THEIRS, extra, OURS))

    def test_left_out_because_linked(self):
        extra = [*OURS[:2], managed(0x440, 4, STACK + 0x18), *OURS[2:]]
        theirs = [*THEIRS[:2], walked(0x220, 2, STACK + 0x18), THEIRS[3]]
        self.assertEqual(self.failures(theirs, extra), set())
        self.assertEqual(self.compare(theirs, extra)["left out by the services, between: linked"], 1)

    def test_guessed_is_invented(self):
        """Unless the services have nothing there, and all is linked from there on."""
        extra = [*OURS[:2], managed(0x440, 4, STACK + 0x18, by="guess"), *OURS[2:]]
        self.assertIn("INVENTED, between", self.failures(THEIRS, extra))
        guessed = [OURS[0], *({**frame, "by": "guess"} for frame in OURS[1:])]
        self.assertEqual(self.failures([], guessed), set())
        self.assertTrue(self.failures([], guessed, [*OURS[:2], managed(0x550, 5, STACK + 0x20), OURS[3]]))

    def test_hijacked(self):
        """One return address of a thread may be another on the stack."""
        once = [*OURS[:2], managed(0x999, 9, STACK + 0x20), OURS[3]]
        self.assertEqual(self.failures(THEIRS[:3], OURS, [*OURS[:3], native(0x999, STACK + 0x30)]), set())
        self.assertIn("INVENTED, between", self.failures(THEIRS[:2], [*OURS, OURS[3]], once))

    def test_stack_pointer(self):
        theirs = [*THEIRS[:3], walked(0x330, 3, STACK + 0x28)]
        self.assertEqual(self.failures(theirs, OURS), {"OTHER STACK POINTER"})

    def test_method_that_is_there_twice(self):
        """The services leave out the inner call: the outer one is paired with theirs."""
        ours = [native(0x10, STACK), managed(0x110, 1, STACK + 0x10), managed(0x110, 1, STACK + 0x20), managed(0x220, 2, STACK + 0x30)]
        theirs = [walked(0x110, 1, STACK + 0x10), walked(0x220, 2, STACK + 0x20)]
        self.assertEqual(self.failures(theirs, ours), set())
        self.assertEqual(self.compare(theirs, ours)["left out by the services, innermost, before the first frame of the services: linked"], 1)

    def test_call_after_its_frame(self):
        """The address in the Frame counts as equal if the stack has another, and after such a Frame alone."""
        ours = [OURS[0], managed(0x118, 1, STACK + 0x10), *OURS[2:]]
        self.assertEqual(self.failures(THEIRS, ours), set())
        self.assertIn("MISSING", self.failures(THEIRS, ours, OURS))
        self.assertIn("MISSING", self.failures(THEIRS[1:], ours))
        before = [OURS[0], managed(0x108, 1, STACK + 0x10), *OURS[2:]]
        self.assertIn("MISSING", self.failures(THEIRS, before))

    def test_missing_thread(self):
        tally = stack_judge.Tally()
        services = {"threads": [{"tid": 2, "alive": True, "frames": THEIRS}]}
        stack_judge.compare_core(services, OURS, Memory(OURS), tally, "test")
        self.assertEqual(tally.counts["MISSING"], 3)
        self.assertEqual(tally.counts["INVENTED, thread without managed code"], 3)


class Told(unittest.TestCase):
    LINES = [told(0x110, 1, 11), told(0x220, 2, 22), told(0x330, 3)]
    FRAMES = [native(0x10, STACK), managed(0x550, 5, STACK), managed(0x110, 1, STACK, line=11), managed(0x220, 2, STACK, line=22),
              managed(0x330, 3, STACK)]

    def counts(self, lines, frames):
        tally = stack_judge.Tally()
        stack_judge.compare_told(lines, frames, tally, "test")
        return tally

    def failures(self, lines, frames):
        return set(stack_judge.failures(self.counts(lines, frames)))

    def test_lost_map(self):
        """What a small core lacks may be missing; what is there must be right."""
        without, wrong = ({**self.FRAMES[3], "line": line, "file": file, "il_offset": offset}
                          for line, file, offset in ((None, None, None), (23, "Program.cs", 7)))
        for frame, lost, failed in ((without, False, True), (without, True, False), (wrong, True, True)):
            frames = [*self.FRAMES[:3], {**frame, "map_is_lost": lost}, self.FRAMES[4]]
            self.assertEqual("LINE DIFFERS" in self.failures(self.LINES, frames), failed)

    def test_equal(self):
        self.assertEqual(self.failures(self.LINES, self.FRAMES), set())
        self.assertEqual(self.counts(self.LINES, self.FRAMES).counts["line equal"], 2)

    def test_missing_and_invented(self):
        for i in range(2, 5):
            self.assertTrue(self.failures(self.LINES, self.FRAMES[:i] + self.FRAMES[i + 1:]))
        self.assertIn("MISSING", self.failures(self.LINES, [*self.FRAMES[:3], managed(0x660, 6, STACK), *self.FRAMES[3:]]))
        self.assertEqual(self.failures(self.LINES, [*self.FRAMES, managed(0x660, 6, STACK)]), {"INVENTED, behind the root"})

    def test_lines(self):
        wrong = [*self.FRAMES[:3], managed(0x220, 2, STACK, line=23), self.FRAMES[4]]
        self.assertEqual(self.failures(self.LINES, wrong), {"LINE DIFFERS"})
        none = [*self.FRAMES[:3], managed(0x220, 2, STACK), self.FRAMES[4]]
        self.assertEqual(self.failures(self.LINES, none), {"LINE DIFFERS"})
        more = [*self.FRAMES[:4], managed(0x330, 3, STACK, line=33)]
        self.assertEqual(self.failures(self.LINES, more), {"LINE WHERE THE RUNTIME HAS NONE"})

    def test_offsets(self):
        """Of all but the innermost frame."""
        first = [{**self.LINES[0], "native_offset": 1, "il_offset": 9}, *self.LINES[1:]]
        self.assertEqual(self.failures(first, self.FRAMES), set())
        self.assertEqual(self.failures([self.LINES[0], {**self.LINES[1], "native_offset": 1}, self.LINES[2]], self.FRAMES),
                         {"NATIVE OFFSET DIFFERS"})
        self.assertEqual(self.failures([self.LINES[0], {**self.LINES[1], "il_offset": 1}, self.LINES[2]], self.FRAMES),
                         {"IL OFFSET DIFFERS"})

    def test_native_code_told(self):
        """The runtime tells the method of a Frame: no managed code."""
        lines = [self.LINES[0], {**told(0x990, 9), "native_offset": 0}, *self.LINES[1:]]
        self.assertEqual(self.failures(lines, self.FRAMES), set())
        self.assertIn("MISSING", self.failures([self.LINES[0], told(0x991, 9), *self.LINES[1:]], self.FRAMES))

    def test_runtime_hides(self):
        """From a funclet on to the frame of its method, and nowhere else."""
        between = [managed(0x770, 7, STACK, name="System.Runtime.EH.DispatchEx()"), managed(0x880, 8, STACK)]
        funclet = managed(0x220, 2, STACK, line=22, funclet="catch")
        parent = managed(0x230, 2, STACK, line=25)
        self.assertEqual(self.failures(self.LINES, [*self.FRAMES[:3], funclet, *between, parent, self.FRAMES[4]]), set())
        self.assertTrue(self.failures(self.LINES, [*self.FRAMES[:3], funclet, *between, self.FRAMES[4]]))
        told_parent = [self.LINES[0], told(0x230, 2, 25), self.LINES[2]]
        self.assertEqual(self.failures(told_parent, [*self.FRAMES[:3], funclet, *between, parent, self.FRAMES[4]]), set())
        self.assertTrue(self.failures(self.LINES, [*self.FRAMES[:4], *between, parent, self.FRAMES[4]]))

    def running(self, frames, is_certain=True):
        tally = stack_judge.Tally()
        stack_judge.compare_running(self.LINES, frames, "Demo.M5()", tally, "test", is_certain)
        return set(stack_judge.failures(tally)), tally.counts["threads whole"]

    def test_running(self):
        """The innermost frame tells the others, whichever it is."""
        self.assertEqual(self.running(self.FRAMES), (set(), 1))
        for i in range(1, 5):
            self.assertEqual(self.running([self.FRAMES[0], *self.FRAMES[i:]]), (set(), 1))
            if i > 1:  # after M5, which calls M1
                self.assertNotEqual(self.running(self.FRAMES[:i] + self.FRAMES[i + 1:])[0], set())
        self.assertEqual(self.running(self.FRAMES[:1]), ({"MISSING, all of a thread"}, 0))
        self.assertEqual(self.running([*self.FRAMES[:2], *self.FRAMES[3:]]), ({"MISSING, all of a thread"}, 0))
        guessed = [*self.FRAMES[:4], {**self.FRAMES[4], "by": "guess"}]
        self.assertEqual(self.running(guessed), ({"GUESSED"}, 1))
        self.assertEqual(self.running(guessed, is_certain=False), (set(), 1))

    def test_hijacked_threads(self):
        for is_there, frames, label in [(True, self.FRAMES, "hijacked threads"), (False, self.FRAMES, "threads back in the runtime"),
                                        (False, self.FRAMES[1:], "REPLACED BY OTHER CODE"), (False, [], "REPLACED BY OTHER CODE")]:
            self.assertEqual(stack_judge.class_of_hijack(is_there, frames), label)


if __name__ == "__main__":
    unittest.main()
