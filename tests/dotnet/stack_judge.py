#!/usr/bin/env python3
"""Compares the frames of `cdacq stack --json` with two judges: the walk of the runtime's debugger services on the same
core (ClrMD), and what the process itself said of its stacks a moment before (System.Diagnostics.StackTrace).

Nothing here runs a program: lists in, counts and examples out.
"""

import os
from collections import Counter, defaultdict
from dataclasses import dataclass

EXAMPLES = 5
EH_CLASS = "System.Runtime.EH."  # the part of the exception dispatch that is managed code, from 9 on
CONTEXT_BELOW, CONTEXT_ABOVE = 0x2000, 0x1000  # bytes from a signal frame's stack pointer, in which saved registers are
STUB_NAMES = ("IL_STUB", "ILStubClass")  # code that the runtime generates between methods; it hides it from itself


class Tally:
    """Counts per class, and the first examples of each."""

    def __init__(self):
        self.counts = Counter()
        self.examples = defaultdict(list)

    def add(self, label, example=None, number=1):
        self.counts[label] += number
        if example is not None and number and len(self.examples[label]) < EXAMPLES:
            self.examples[label].append(example)

    def merge(self, other):
        self.counts.update(other.counts)
        for label, examples in other.examples.items():
            self.examples[label] = (self.examples[label] + examples)[:EXAMPLES]

    def report(self, labels=None):
        for label in sorted(self.counts):
            print(f"  {self.counts[label]:9} {label}")
        for label, examples in sorted(self.examples.items()):
            if labels is None or label in labels:
                for example in examples:
                    print(f"\n  {label}: {example}")


def address(text):
    """Of a JSON field: hex text, or null."""
    return None if text is None else int(text, 16)


def by_thread(frames):
    """The objects of `cdacq stack --json`, in a list for each thread."""
    threads = defaultdict(list)
    for frame in frames:
        threads[frame["tid"]].append(frame)
    return threads


def is_managed(frame):
    return frame["status"] == "managed"


def shown(frame):
    """A frame for an example."""
    name = frame.get("method") or (frame.get("native") or {}).get("symbol") or frame.get("name") or "?"
    return f"{frame['ip']} {name} [{frame.get('by') or frame.get('frame') or ''}]"


# ---- The walk of the debugger services ----

@dataclass(frozen=True)
class Walked:
    """A frame of either walk."""
    ip: int
    method_desc: int
    index: int  # in the list that it comes from
    sp: int | None  # None: not known
    after_call_frame: bool = False  # of the services: read from an InlinedCallFrame, not from the stack
    is_linked: bool = False  # of cdacq: the stack has its address where the frame before returns to

    def equals(self, ours):
        """For a call out of managed code the services have no other address than that in its InlinedCallFrame. In
        ReadyToRun code it is where the helper that fills the Frame returns to, some instructions before the call. And
        where the thread waits for a collection after the call, it is still that of the call. The stack has the address
        where the method goes on, and a stack pointer that is lower if the method has allocated stack memory since."""
        if self.method_desc != ours.method_desc:
            return False
        return self.ip == ours.ip or (self.after_call_frame and ours.is_linked and self.ip < ours.ip and ours.sp <= self.sp)


def walked_by_services(frames):
    """Frames of managed code alone: explicit Frames that have a method are of native code."""
    return [Walked(address(frame["ip"]), address(frame["method_desc"]), i, address(frame["sp"]),
                   i > 0 and frames[i - 1]["frame"] == "InlinedCallFrame" and frames[i - 1]["ip"] == frame["ip"])
            for i, frame in enumerate(frames) if frame["frame"] is None and frame["method_desc"]]


def walked_by_cdacq(frames, memory):
    return [Walked(address(frame["ip"]), address(frame["method_desc"]) or 0, i, address(frames[i - 1].get("cfa")) if i else None,
                   is_linked=is_linked(frames, i, memory))
            for i, frame in enumerate(frames) if is_managed(frame)]


PLACED = 1 << 20  # the weight of a pair with equal stack pointers


def weight(left, right):
    """Of a pair: 0 if the frames differ. A method may be on the stack more than once, so an equal stack pointer weighs
    more than any number of pairs without."""
    if not left.equals(right):
        return 0
    return 1 if None not in (left.sp, right.sp) and left.sp != right.sp else PLACED


def align(theirs, ours):
    """Pairs (i, j) of equal frames, in order: the common subsequence that weighs most. Equal ends are cut off first."""
    head = 0
    while head < min(len(theirs), len(ours)) and weight(theirs[head], ours[head]) == PLACED:
        head += 1
    tail = 0
    while tail < min(len(theirs), len(ours)) - head and weight(theirs[-1 - tail], ours[-1 - tail]) == PLACED:
        tail += 1
    left, right = theirs[head:len(theirs) - tail], ours[head:len(ours) - tail]
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            one = weight(left[i], right[j])
            best[i][j] = max(best[i + 1][j], best[i][j + 1], one and best[i + 1][j + 1] + one)
    pairs, i, j = [(at, at) for at in range(head)], 0, 0
    while i < len(left) and j < len(right):
        one = weight(left[i], right[j])
        if one and best[i][j] == best[i + 1][j + 1] + one:
            pairs.append((head + i, head + j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs + [(len(theirs) - at, len(ours) - at) for at in range(tail, 0, -1)]


def returns_to(frames, index, memory):
    """Where the frame returns to: the word below its CFA. None if its CFA is not known."""
    cfa = address(frames[index].get("cfa"))
    return memory.word(cfa - 8) if cfa else None


def is_linked(frames, index, memory):
    """Whether frame `index` is where the frame before it returns to, or was interrupted. The innermost is where the
    registers say."""
    if index == 0 or returns_to(frames, index - 1, memory) == address(frames[index]["ip"]):
        return True
    return frames[index].get("by") == "cfi" and is_in_context(frames, index, memory)


def is_in_context(frames, index, memory):
    """Whether registers that were saved near the frame before, which handles a signal, have the address."""
    sp = address(frames[index - 2].get("cfa")) if index > 1 else None
    ip = address(frames[index]["ip"])
    return bool(sp) and any(memory.word(at) == ip for at in range(sp - CONTEXT_BELOW, sp + CONTEXT_ABOVE, 8))


def is_hijacked(frames, index, memory):
    """Whether the return address may have been replaced by the runtime, to stop the thread: to code of its own."""
    word = returns_to(frames, index - 1, memory)
    return (word and frames[index]["by"] == "unwind" and is_managed(frames[index - 1]) and is_managed(frames[index]) and
            word not in (address(frame["ip"]) for frame in frames))


def proof_of_extra(frames, index, memory):
    """Why a frame that the services do not have is on the stack nevertheless, or None.

    "linked": every frame from the innermost to it is where the frame before returns to, or where a Frame of the runtime
    that the services use as well has restored the registers. "hijacked": likewise, but for the one return address of a
    thread that may be replaced. "guessed": all that is not linked is marked as a guess, after code of which nothing is
    known.
    """
    if frames[0].get("by") == "guess":
        return None
    gaps = [i for i in range(1, index + 1) if frames[i].get("by") != "frame" and not is_linked(frames, i, memory)]
    if frames[index].get("by") == "guess":
        return "guessed" if all(frames[i].get("by") == "guess" and not frames[i - 1].get("cfa") for i in gaps) else None
    if not gaps:
        return "linked"
    return "hijacked" if len(gaps) == 1 and is_hijacked(frames, gaps[0], memory) else None


def class_of_extra(frames, index, pairs_of_ours):
    """Where on the stack the frame is that the services leave out."""
    name = frames[index]["method"] or ""
    if name.startswith(EH_CLASS):
        return "dispatch"
    if not any(ours < index for ours in pairs_of_ours):
        return "innermost, before the first frame of the services"
    if any(frame.get("funclet") for frame in frames[:index]):
        return "behind a funclet"
    return "between"


def compare_walks(theirs, ours, memory, tally, where):
    """One thread: frames of ClrMD (`theirs`) and of cdacq."""
    left, right = walked_by_services(theirs), walked_by_cdacq(ours, memory)
    pairs = align(left, right)
    tally.add("frames of the services", number=len(left))
    tally.add("frames of cdacq", number=len(right))
    tally.add("equal", number=len(pairs))
    got, paired = {i for i, _ in pairs}, {right[j].index for _, j in pairs}
    for i, one in enumerate(left):
        if i not in got:
            tally.add("MISSING", f"{where}: {shown(theirs[one.index])}")
    for one in right:
        if one.index in paired:
            continue
        kind = class_of_extra(ours, one.index, paired)
        proof = proof_of_extra(ours, one.index, memory)
        if proof == "guessed" and not kind.startswith("innermost"):
            proof = None  # where the services have frames, nothing has to be guessed
        label = f"left out by the services, {kind}: {proof}" if proof else f"INVENTED, {kind}"
        tally.add(label, f"{where}: {shown(ours[one.index])}")
    for i, j in pairs:
        text = f"{where}: {shown(ours[right[j].index])}"
        if left[i].ip != right[j].ip:
            tally.add("equal, where the stack has a later address than the Frame", f"{text} for {left[i].ip:#x}")
        elif left[i].sp in (None, right[j].sp) or right[j].sp is None:
            continue
        elif left[i].after_call_frame and right[j].is_linked and right[j].sp < left[i].sp:
            tally.add("equal, where the stack pointer is lower than that of the Frame", text)
        else:
            tally.add("OTHER STACK POINTER", f"{text} {right[j].sp:#x} for {left[i].sp:#x}")
    tally.add("threads equal to the last frame" if len(pairs) == len(left) == len(right) else "threads with differences")


def compare_core(services, ours, memory, tally, where):
    """All threads of a core. `services`: the answer of ClrMD."""
    threads = by_thread(ours)
    for thread in services["threads"]:
        if thread["alive"] and thread["tid"]:
            compare_walks(thread["frames"], threads.get(thread["tid"], []), memory, tally, f"{where} thread {thread['tid']}")
    known = {thread["tid"] for thread in services["threads"]}
    for tid, frames in threads.items():
        if tid not in known and walked_by_cdacq(frames, memory):
            tally.add("INVENTED, thread without managed code", f"{where} thread {tid}: {shown(frames[0])}", len(walked_by_cdacq(frames, memory)))


# ---- What the process said ----

def same_method(told, frame):
    """By module and token; a dynamic method has its name alone, and that is in the heap, which a small core lacks."""
    if not told["token"] or frame["token"] is None:
        return frame["method"] is None or told["method"] in frame["method"]
    same_module = os.path.basename(told["module"] or "") == os.path.basename(frame["module"] or "") or told["module"].startswith("<")
    return told["token"] == int(frame["token"], 16) and same_module


def same_line(told, frame):
    """The file and the line, or neither."""
    return (told["file"] or None, told["line"] or None) == (frame.get("file"), frame.get("line"))


def is_hidden_from_itself(frame):
    """What the runtime leaves out of the stacks that it tells."""
    name = frame["method"] or ""
    return name.startswith(EH_CLASS) or any(stub in name for stub in STUB_NAMES)


def parent_of_funclet(ours, at):
    """The index of the frame of the method whose funclet is at `at`, or None."""
    for i in range(at + 1, len(ours)):
        if ours[i]["method_desc"] == ours[at]["method_desc"] and not ours[i].get("funclet"):
            return i
    return None


def compare_told(told, frames, tally, where):
    """One parked thread: the runtime's list, from the frame that took it on, against cdacq's managed frames."""
    ours = [frame for frame in frames if is_managed(frame)]
    start = next((i for i, frame in enumerate(ours) if same_method(told[0], frame)), None)
    tally.add("frames told", number=len(told))
    if start is None:
        tally.add("MISSING, all of a thread", f"{where}: {len(told)} frames", len(told))
        return
    at, previous = start, None
    for number, one in enumerate(told):
        if one["native_offset"] == 0:  # no call returns there: a Frame of the runtime stands for a method of native code
            tally.add("told for native code")
            continue
        found = find_told(one, ours, at, previous)
        if found is None:
            there = shown(ours[at]) if at < len(ours) else "end of the stack"
            tally.add("MISSING", f"{where} frame {number}: {one['type']}.{one['method']}+{one['native_offset']}; there is {there}")
            continue
        tally.add("method equal")
        is_behind_dynamic = any(not before["token"] for before in told[:number])
        if is_behind_dynamic and not one["line"] and ours[found].get("line"):
            tally.add("line that the runtime loses behind a dynamic method")  # .NET 8
        else:
            compare_lines(one, ours[found], tally, f"{where} frame {number} {one['type']}.{one['method']}")
        if number:  # the first went on a little between its words and its wait
            compare_offsets(one, ours[found], tally, f"{where} frame {number} {one['type']}.{one['method']}")
        at, previous = found + 1, found
    rest = [frame for frame in ours[at:] if not is_hidden_from_itself(frame)]
    for frame in rest:
        tally.add("INVENTED, behind the root", f"{where}: {shown(frame)}")


def class_of_hijack(is_there, frames):
    """A thread that the runtime has hijacked. When it has returned to the code of the runtime, the address is gone from
    the stack, before the runtime says that it is no longer hijacked."""
    if is_there:
        return "hijacked threads"
    return "REPLACED BY OTHER CODE" if not frames or is_managed(frames[0]) else "threads back in the runtime"


def compare_running(told, frames, inner, tally, where, is_certain=True):
    """A thread that was stopped anywhere in a chain of calls that it had told. Its innermost frame of the chain tells
    all others; that is the method `inner`, which the chain calls, or one that was told. `is_certain`: no guess."""
    names = [shown(frame) for frame in frames]
    if is_certain and any(frame["by"] == "guess" for frame in frames):
        tally.add("GUESSED", f"{where}: {names}")
    for frame in filter(is_managed, frames):
        first = next((i for i, one in enumerate(told) if same_method(one, frame)), None)
        if frame["method"] == inner or first is not None:
            told = told[first or 0:]
            break
    lost = tally.counts["MISSING"] + tally.counts["MISSING, all of a thread"]
    compare_told(told, frames, tally, f"{where}: {names}")
    if tally.counts["MISSING"] + tally.counts["MISSING, all of a thread"] == lost:
        tally.add("threads whole")


def find_told(told, ours, at, previous):
    """The index of the frame, after those that the runtime leaves out: of a funclet that runs after the frames below it
    were unwound it tells either the funclet or the frame of its method, and nothing in between."""
    found = next_like(told, ours, at)
    if found is not None:
        parent = parent_of_funclet(ours, found) if ours[found].get("funclet") else None
        other = parent is not None and told["native_offset"] == ours[parent]["offset"] != ours[found]["offset"]
        return parent if other else found
    if previous is not None and ours[previous].get("funclet"):
        parent = parent_of_funclet(ours, previous)
        return None if parent is None else next_like(told, ours, parent + 1)
    return None


def next_like(told, ours, at):
    """The index of the next frame if it is the one told; what the runtime may leave out is passed over."""
    for i in range(at, len(ours)):
        if same_method(told, ours[i]):
            return i
        if not is_hidden_from_itself(ours[i]):
            return None
    return None


def compare_lines(told, frame, tally, where):
    if frame.get("map_is_lost") and not frame.get("line"):
        tally.add("no line in a small core for code that replaced other code")
    elif same_line(told, frame):
        tally.add("line equal" if told["line"] else "no line on both sides")
    elif not told["line"]:
        tally.add("LINE WHERE THE RUNTIME HAS NONE", f"{where}: {frame.get('file')}:{frame.get('line')}")
    else:
        tally.add("LINE DIFFERS", f"{where}: told {told['file']}:{told['line']}, found {frame.get('file')}:{frame.get('line')}")


def compare_offsets(told, frame, tally, where):
    """The address to the byte. The runtime has no other address for a call out of ReadyToRun code than that of its
    Frame."""
    if told["native_offset"] == frame["offset"]:
        tally.add("native offset equal")
    elif frame["kind"] == "r2r" and told["native_offset"] < frame["offset"]:
        tally.add("native offset is that of the Frame")
        return
    else:
        tally.add("NATIVE OFFSET DIFFERS", f"{where}: told {told['native_offset']}, found {frame['offset']}")
    il_offset = frame.get("il_offset")
    if frame.get("map_is_lost") and il_offset is None:
        tally.add("no IL offset in a small core for code that replaced other code")
    elif told["il_offset"] != (-1 if il_offset is None else il_offset):
        tally.add("IL OFFSET DIFFERS", f"{where}: told {told['il_offset']}, found {il_offset}")


def failures(tally):
    """The labels of what must not be."""
    return {label: number for label, number in tally.counts.items() if label.split(",")[0].isupper()}
