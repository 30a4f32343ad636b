#!/usr/bin/env python3
"""Judges answers about a process that makes and frees methods all the time.

    churn.py [--seconds N] [--runtime RUNTIME]... [--rate METHODS]

Runtimes are words of lab.runtimes(); default: the newest of each recent line.

The process (churn/Churn.cs) publishes which method is alive where, with a
sequence number for each: a method whose number is the same before and after a
question was alive throughout, so the answer must be its name. Any other name
must be that of a method whose code has been at the address. An answer may be
an error, but seldom. CDACQ_TOOL is the tool.
"""

import argparse
import collections
import json
import mmap
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
LIBRARY = os.environ.get("CDACQ_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(TOOL)), "libcdacq.so")
LATER, LATER_FILE = "System.Xml.NameTable", "System.Private.Xml.dll"  # a type of the framework that it has not loaded
THREADS, SLOTS_PER_THREAD, SLOT_SIZE, METHODS = 4, 64, 32, 1 << 24  # as in Churn.cs
SLOTS, TABLE = 4096, 1 << 20
NAME = re.compile(r"\bM_(\d)_(\d+)_(x*)\(\)")
LEAST_NAMED, MOST_ERRORS = 0.999, 0.001
MOST_MEMORY = 192  # MB of the tool, however long it is asked
VERIFIED_RATE, MOST_SECONDS = 4000, 10  # methods a second; of `verify`
ELF_FILES, CALL_SIZE = 10, 12
LEAST_ANSWERS = 5000  # or the run proves little


class Churn:
    """The process, and what it publishes."""

    def __init__(self, work, runtime, rate, jitdump=False):
        self.path = os.path.join(work, "published")
        command = lab.program_command(work, "churn", runtime)
        variables = {"DOTNET_PerfMapEnabled": "1", "DOTNET_PerfMapStubGranularity": "2", "DOTNET_PerfMapJitDumpPath": work}
        self.process = subprocess.Popen([*command, self.path, str(rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(variables if jitdump else {})})
        if not self.process.stdout.readline().startswith("READY"):
            raise lab.LabError("the process did not get ready")
        self.pid = self.process.pid
        with open(self.path, "rb") as file:
            self.published = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def obey(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.published.close()

    def slots(self):
        """(sequence, address, number) of each slot. One that was just being replaced has an odd sequence number: memcpy()
        copies some slots from the upper end, the old number before the new sequence, so two copies have to agree."""
        first, second = (self.published[SLOTS:SLOTS + THREADS * SLOTS_PER_THREAD * SLOT_SIZE] for _ in range(2))
        return [slot[:3] if slot == other else (1, 0, 0)
                for other, slot in zip(struct.iter_unpack("<4q", first), struct.iter_unpack("<4q", second), strict=True)]

    def made(self):
        return sum(struct.unpack("<4q", self.published[:32]))

    def address_of(self, thread, number):
        return struct.unpack_from("<q", self.published, TABLE + (thread * METHODS + number) * 8)[0]


class Asker:
    """One run of the tool, which stays open."""

    def __init__(self, pid):
        self.process = subprocess.Popen([TOOL, "ip2method", "--json", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, addresses):
        self.process.stdin.write("".join(f"{address:x}\n" for address in addresses).encode())
        self.process.stdin.flush()
        return [json.loads(self.process.stdout.readline()) for _ in addresses]

    def memory(self):
        """Its highest so far, in MB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
            return int(re.search(r"VmHWM:\s*(\d+)", file.read())[1]) / 1024

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def finds_what_is_loaded(churn):
    """Whether code of an assembly that the process loads after it was opened is found, with its name and its file."""
    asker = Asker(churn.pid)
    try:
        asker.ask([1])
        said = churn.obey("load|" + LATER + ", " + LATER_FILE.removesuffix(".dll"))
        listed = subprocess.run([TOOL, "methods", "--json", str(churn.pid), LATER + ".Add*"], capture_output=True,
                                encoding="utf-8", check=False).stdout.splitlines()
        found = json.loads(listed[0]) if listed else {}
        answer = asker.ask([int(found.get("code_start") or "0", 16)])[0]
    finally:
        asker.close()
    good = (said == "loaded" and (answer["method"] or "").startswith(LATER + ".Add(") and
            answer["module"].endswith("/" + LATER_FILE) and answer["method"] == found["method"])
    print(f"{'ok' if good else 'FAILED'}: an assembly loaded later: {said}; {answer['method'] or answer['error']}")
    return good


def answers_from_inside(churn, work):
    """Whether a process that opened a core of its own runtime finds itself. It has mapped the runtime's file a second
    time, which must not be mistaken for the runtime in the core either."""
    core = os.path.join(work, "own.core")
    folder = re.search(r"(/\S.*)/libcoreclr\.so$", pathlib.Path(f"/proc/{churn.pid}/maps").read_text(encoding="utf-8"), re.MULTILINE)[1]
    lab.run([os.path.join(folder, "createdump"), "--normal", "-f", core, str(churn.pid)])
    said = churn.obey(f"inside|{LIBRARY}|{core}")
    good = said == "Churn.Program.AskAboutItself(string, string)"
    print(f"{'ok' if good else 'FAILED'}: from inside, with a core open: {said}")
    live, dead = (json.loads(subprocess.run([TOOL, "info", "--json", target], capture_output=True, check=False).stdout or "{}")
                  for target in (str(churn.pid), core))
    same = dead.get("runtime_count") == 1 and dead["runtime_base"] == live["runtime_base"]
    print(f"{'ok' if same else 'FAILED'}: its core: the runtime at {dead.get('runtime_base')} of {dead.get('runtime_count')}")
    return good and same


def is_name_of(churn, answer):
    """Whether the name is one of a method that has been at the answer's code."""
    found = NAME.search(answer["method"])
    if not found:
        return "IL_STUB" in answer["method"]
    thread, number = int(found[1]), int(found[2])
    start = int(answer["code_start"], 16)
    for _ in range(100):  # it may be so new that it has not been published yet
        address = churn.address_of(thread, number)
        if address:
            break
        time.sleep(0.02)
    return start <= address < start + answer["code_size"] and len(found[3]) == number % 41


def judge(churn, seconds, shown):
    """What was answered, and the memory that it took, in MB."""
    counts, memory = collections.Counter(), 0
    asker = Asker(churn.pid)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            before = churn.slots()
            asked = [i for i, (sequence, _, _) in enumerate(before) if sequence and sequence % 2 == 0]
            answers = asker.ask([before[i][1] for i in asked])
            after = churn.slots()
            for i, answer in zip(asked, answers, strict=True):
                sequence, address, number = before[i]
                alive = after[i][0] == sequence
                expected = f"M_{i // SLOTS_PER_THREAD}_{number}_{'x' * (number % 41)}()"
                kind = answer["status"] if not answer["method"] else "named"
                if kind == "named" and alive:
                    kind = "named" if expected in answer["method"] else "wrong"
                elif kind == "named" and not is_name_of(churn, answer):
                    kind = "wrong"
                counts["alive" if alive else "gone", kind] += 1
                if kind == "wrong" or (alive and kind != "named"):
                    shown.append(f"0x{address:x}: {expected}: {answer['status']} {answer['method']} {answer['error']}")
        memory = asker.memory()
    finally:
        asker.close()
    return counts, memory


def report(runtime, counts, memory, made, seconds, shown):
    alive = sum(n for (life, _), n in counts.items() if life == "alive")
    wrong = sum(n for (_, kind), n in counts.items() if kind == "wrong")
    errors = sum(n for (_, kind), n in counts.items() if kind == "error")
    total = counts.total()
    named = counts["alive", "named"]
    good = not wrong and named >= LEAST_NAMED * alive and errors <= MOST_ERRORS * total and total >= LEAST_ANSWERS \
        and memory <= MOST_MEMORY
    print(f"{'ok' if good else 'FAILED'}: {runtime}: {total} answers, {alive} about methods alive throughout: {named} named "
          f"({100 * named / max(alive, 1):.4f} %), {wrong} wrong, {errors} errors ({100 * errors / max(total, 1):.4f} %); "
          f"{made / seconds:.0f} methods a second; {memory:.0f} MB")
    print("   ", ", ".join(f"{life} {kind} {n}" for (life, kind), n in sorted(counts.items())))
    for line in shown[:10]:
        print("   ", line)
    sys.stdout.flush()
    return good


def survives_kills(churn, kills):
    """Whether no thread stays stopped when we are killed while we hold the process, or are about to."""
    draw, held = random.Random(1), 0
    for i in range(kills):
        words = [["stack"], ["methods", "--stop"], ["report"]][i % 3]
        tool = subprocess.Popen([TOOL, *words, str(churn.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        time.sleep(draw.random() * 0.1)
        held += "t" in lab.states_of(churn.pid)
        tool.kill()
        tool.wait()
        tool.stdin.close()
        deadline = time.monotonic() + 5
        while lab.states_of(churn.pid) & {"t", "T"}:
            if time.monotonic() > deadline:
                print(f"FAILED: after {i + 1} kills the process stays stopped")
                return False
            time.sleep(0.01)
    print(f"ok: {kills} kills, {held} of them while the process was held: it runs on")
    return True


def follows(churn, work):
    """Whether `jitdump --follow` finds methods while they are made, and ends with the process, with a whole file."""
    path = os.path.join(work, "followed.dump")
    with open(path, "wb") as file:
        file.write(b"JiTD" * 100000)  # of an earlier process
    tool = subprocess.Popen([TOOL, "jitdump", "--follow", "--names", "csharp", "-o", path, str(churn.pid)],
                            stderr=subprocess.PIPE, text=True)
    deadline, first, loads = time.monotonic() + 20, None, []
    while time.monotonic() < deadline:
        time.sleep(0.2)
        loads = [record for record in records_of(path) if record["type"] == "load"]
        first = first or (len(loads) or None)
        if first and len(loads) > first + 100:
            break
    churn.process.kill()
    churn.process.wait()
    errors = tool.communicate(timeout=20)[1]
    found = records_of(path)
    names = [load["name"] for load in loads if (made := NAME.search(load["name"])) and len(made[3]) != int(made[2]) % 41]
    good = bool(first) and len(loads) > first + 100 and not names and tool.returncode in (0, 1) \
        and found[-1]["type"] == "close" and not any(record.get("error") for record in found)
    print(f"{'ok' if good else 'FAILED'}: --follow: {first} methods at first, {len(loads)} later; exit {tool.returncode}; "
          f"{found[-1]['type']} {names[:3]} {errors[:300] if tool.returncode else ''}")
    return good


def are_written_later(churn, comparisons):
    """Whether the file gets the records of the methods that it lacked while the process was stopped: the runtime lets
    a method be found before it writes the record of it."""
    lacking = {NAME.search(item["method"] or "") for item in comparisons if item["class"] == "missing-from-file"}
    if None in lacking or len(lacking) > THREADS:
        return False
    for _ in range(20):
        written = {match[0] for record in records_of(str(churn.pid)) if (match := NAME.search(record.get("name") or ""))}
        if written.issuperset(match[0] for match in lacking):
            return True
        time.sleep(0.1)
    return False


def verifies(churn):
    """Whether the runtime's own jitdump contradicts nothing while methods come and go."""
    good = True
    for stop in ([], [], ["--stop"]):
        start = time.monotonic()
        done = subprocess.run([TOOL, "verify", "--json", *stop, str(churn.pid)], capture_output=True, encoding="utf-8",
                              errors="replace", check=False)
        seconds, lines = time.monotonic() - start, done.stdout.splitlines()
        totals = json.loads(lines[-1]) if lines else {}
        whole = lines and (not totals["missing-from-file"] or stop and are_written_later(churn, map(json.loads, lines[:-1])))
        holds = done.returncode == 0 and totals.get("match", 0) > 100 and whole and seconds < MOST_SECONDS
        print(f"{'ok' if holds else 'FAILED'}: {' '.join(['verify', *stop])}: exit {done.returncode} after {seconds:.1f} s; "
              f"{ {name: n for name, n in totals.items() if n} } {done.stderr[:300]}")
        good &= holds
    return good


def symbols_with_code(path):
    """(name, address, code) of each symbol of an ELF file that holds code."""
    data = pathlib.Path(path).read_bytes()
    (table,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    symbols = next(section for section in sections if section[1] == 2)  # SHT_SYMTAB
    for name, _, _, index, address, size in struct.iter_unpack("<IBBHQQ", data[symbols[4]:symbols[4] + symbols[5]]):
        begin = sections[symbols[6]][4] + name
        at = sections[index][4] + address - sections[index][3]
        yield data[begin:data.index(b"\0", begin)].decode(), address, data[at:at + size]


def writes_code(churn, work):
    """Whether the code in an ELF file is that of the methods of its symbols: each calls one thunk, and has published
    where that returns to."""
    path, methods, wrong = os.path.join(work, "code.elf"), [], 0
    for _ in range(ELF_FILES):
        done = subprocess.run([TOOL, "elf", "--code", "-o", path, str(churn.pid)], stderr=subprocess.PIPE, text=True, check=False)
        time.sleep(0.1)  # until the newest are published
        for name, address, code in symbols_with_code(path) if done.returncode in (0, 1) else ():
            if found := NAME.search(name):
                returns = churn.address_of(int(found[1]), int(found[2])) - address
                wrong += not 0 < returns < len(code)
                methods.append(code[returns - CALL_SIZE:returns])  # mov rax, thunk; call rax
    usual = collections.Counter(methods).most_common(1)[0][1] if methods else 0
    good = len(methods) > 100 * ELF_FILES and usual == len(methods) and not wrong
    print(f"{'ok' if good else 'FAILED'}: elf --code: {len(methods)} methods, {len(methods) - usual} with code of another, "
          f"{wrong} with another name; exit {done.returncode} {done.stderr[:300]}")
    return good


def records_of(path):
    """The records of a jitdump that may be growing; none before it has a header."""
    shown = subprocess.run([TOOL, "records", "--json", path], capture_output=True, encoding="utf-8", errors="replace", check=False)
    return [json.loads(line) for line in shown.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runtime", action="append", help="several: one after another")
    parser.add_argument("--all", action="store_true", help="those of the lines that are not recent, too")
    parser.add_argument("--rate", type=int, default=18000, help="methods a second; 0: as many as possible")
    parser.add_argument("--kills", type=int, default=30, help="of the tool while it stops the process")
    parser.add_argument("--work", metavar="DIR", help="where the program is built (default: a temporary directory)")
    arguments = parser.parse_args()
    work = arguments.work or tempfile.mkdtemp(prefix="cdacq-churn-")
    good = True
    try:
        for runtime in lab.runtimes(arguments.runtime, of_all_lines=arguments.all):
            churn = Churn(work, runtime, arguments.rate)
            try:
                time.sleep(2)  # the first methods compile the framework's own
                shown, made = [], churn.made()
                start = time.monotonic()
                counts, memory = judge(churn, arguments.seconds, shown)
                good &= report(runtime, counts, memory, churn.made() - made, time.monotonic() - start, shown)
                good &= finds_what_is_loaded(churn)
                good &= answers_from_inside(churn, work)
                good &= survives_kills(churn, arguments.kills)
                good &= follows(churn, work)
            finally:
                churn.close()
            churn = Churn(work, runtime, 0)
            try:
                time.sleep(2)
                good &= writes_code(churn, work)
            finally:
                churn.close()
            churn = Churn(work, runtime, VERIFIED_RATE, jitdump=True)
            try:
                time.sleep(5)
                good &= verifies(churn)
            finally:
                churn.close()
    except lab.Skip as skip:
        print(f"skipped: {skip}")
        return lab.SKIPPED
    finally:
        if not arguments.work:
            shutil.rmtree(work, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
