#!/usr/bin/env python3
"""Locks, waits and deadlocks of real processes: what `cdacq report --json` says is what the program said of its
threads, and the monitors are those of the runtime's own debugger services (ClrMD).

    locks.py [RUNTIME...]    words of lab.runtimes(); that of the newest line, and those that are named here, are tested in
                            all ways and with cores of all kinds, the others with a share of them

Runs the program `locks` in each of its ways as a Release build, and in one way as a Debug build. Asks the running
process, createdump's cores of all kinds and the kernel's core. The process and the cores with a heap must say all that
the program said. The others may say less, but nothing else. A snapshot of the kernel's core must say what that core
says.
Exit 77 (skipped) if dotnet is missing; with CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import lab
import stack_run

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
WAYS = ["deadlocks", "waits", "starved", "healthy", "busy", "returned", "suspended"]
SHARE = ["deadlocks", "waits", "starved"]  # of the lines before the newest
WITH_HEAP = ["live", "full", "heap", "kernel"]
WITHOUT_HEAP = ["mini", "triage"]
LEAST = {"deadlocks": 16, "waits": 20, "starved": 3, "healthy": 0, "busy": 0, "returned": 2, "suspended": 0}  # waits that the program tells of
OF_THE_RUNTIME = {"handle"}  # waits of threads that the program does not know
POOL = ["workers", "busy", "waiting", "min_workers", "max_workers", "queued", "starves"]
STARVATION = "starvation, if it lasts"
MANY = 5000
WATCHDOG_SIGNALS = 10
DEADLOCK_SIGNATURE = "deadlock: "
STARVATION_SIGNATURE = "starvation: Locks.Starved.<>c__DisplayClass.<All>b__\n"
OF_PROCESS = "program", "arguments", "arguments_cut", "names"
NO_CODE = "0x1000"  # an IP that is in no code: a snapshot needs one; without 0x, it could be the pid of a process


def manages_waits(runtime):
    """Whether the core library implements waits and monitors."""
    return runtime != "installed" and int(runtime.partition(".")[0]) >= 11


class Facts:
    """What the program said."""

    def __init__(self, lines):
        self.threads, self.objects, self.held, self.waiters, self.waits, self.chains, self.timed, self.deadlocks, self.idle, self.ends = {}, {}, [], {}, {}, {}, {}, [], [], []
        self.pool, self.readers, self.blockers, self.pending = None, {}, {}, set()
        for word, *words in (line.split() for line in lines):
            if word == "thread":
                self.threads[words[0]] = int(words[1])
            elif word == "object":
                self.objects[words[0]] = int(words[1], 16)
            elif word == "held":
                self.held.append((words[0], words[1], int(words[2])))
            elif word == "waiters":
                self.waiters[words[0]] = int(words[1])
            elif word == "wait":
                self.waits[words[0]] = (words[1], words[2])
            elif word == "pending":
                self.pending.add(words[0])
            elif word == "chain":
                self.chains[words[0]] = words[1:]
            elif word in ("timed", "endless"):
                self.timed[words[0]] = word == "timed"
            elif word == "ends":
                self.ends.append(words[0])
            elif word == "readers":
                self.readers[words[0]] = int(words[1])
            elif word == "blocker":
                self.blockers[words[0]] = words[1]
            elif word == "pool":
                self.pool = dict(zip(POOL, map(int, words)))
            elif word == "deadlock":
                self.deadlocks.append(words)
            elif word == "idle":
                self.idle.append(words[0])


def cycle(tids):
    """The same for every rotation."""
    first = tids.index(min(tids))
    return tuple(tids[first:] + tids[:first])


def address(value):
    return int(value, 16) if value else 0


def compare_locks(facts, report, whole):
    wrong, locks = [], {address(lock["object"]): lock for lock in report["locks"]}
    for name, owner, recursion in facts.held:
        lock = locks.get(facts.objects[name])
        expected = (True, facts.threads[owner], recursion, facts.waiters[name], facts.readers.get(name, 0))
        if lock is None and (whole or name not in facts.objects):
            wrong.append(f"no lock {name}")
        elif lock is not None and (lock["held"], lock["owner_tid"], lock["recursion"], lock["waiters"], lock["readers"]) != expected:
            wrong.append(f"lock {name}: {lock}")
    known = {facts.objects[name]: owner for name, owner, _ in facts.held}
    mine = {tid: name for name, tid in facts.threads.items() if name != "Main"}  # which writes to the console
    for at, lock in locks.items():
        if facts.held and at not in known and lock["held"] and lock["owner_tid"] in mine:
            wrong.append(f"a lock of {mine[lock['owner_tid']]}: {lock}")
    return wrong


def compare_waits(facts, report, whole):
    wrong, waits = [], {wait["tid"]: wait for wait in report["waits"]}
    names = {tid: name for name, tid in facts.threads.items()}
    if len(waits) != len(report["waits"]):
        wrong.append("a thread waits twice")
    for name, (kind, target) in facts.waits.items():
        wait = waits.get(facts.threads[name])
        if wait is None:
            if whole:
                wrong.append(f"{name} does not wait")
            continue
        found = address(wait["object"])
        if wait["kind"] != kind and (whole or wait["kind"] not in ("pulse", "handle")):
            wrong.append(f"{name}: {wait}")
        elif target.startswith("?"):
            if found and found != facts.objects.get(target[1:]):
                wrong.append(f"{name} waits for one of several: {wait}")
        elif whole and kind != "foreground" and (not found or wait["by"] not in ("state", "frame")):
            wrong.append(f"{name} waits for something: {wait}")
        elif found and target != "-" and wait["kind"] == kind and found != facts.objects[target]:
            wrong.append(f"{name} waits for another object: {wait}")
    for name, blocker in facts.blockers.items():
        wait = waits.get(facts.threads[name])
        if whole and wait and wait["blocker_tid"] != facts.threads.get(blocker):
            wrong.append(f"{name} waits for another thread: {wait}")
    for name, timed in facts.timed.items():
        wait = waits.get(facts.threads[name])
        if whole and wait and (wait["timeout"] is not None) != timed:
            wrong.append(f"the timeout of {name}: {wait}")
    for name in facts.ends:
        wait = waits.get(facts.threads[name])
        if wait and (wait["endless"] or whole and wait["endless"] is None):
            wrong.append(f"{name} waits without end: {wait}")
    for name in sum(facts.deadlocks, []):
        wait = waits.get(facts.threads[name])
        if wait and (wait["endless"] is False or whole and wait["endless"] is None):
            wrong.append(f"{name} does not wait without end: {wait}")
    for tid, wait in waits.items():
        name = names.get(tid)
        if wait["kind"] == "sleep":  # the program tells no sleeps
            continue
        if name is None and wait["kind"] not in OF_THE_RUNTIME and facts.held:
            wrong.append(f"a thread that the program does not know: {wait}")
        elif name in facts.idle:
            wrong.append(f"{name} does not wait: {wait}")
    return wrong


def compare_chains(facts, report, whole):
    """What the awaited tasks await: without a heap, names may be missing, and the chain may end earlier."""
    wrong, waits = [], {wait["tid"]: wait for wait in report["waits"]}
    for name, expected in facts.chains.items():
        wait = waits.get(facts.threads[name])
        found = [task["method"] or task["type"] for task in wait["tasks"]] if wait else []
        if not whole:
            expected = [one and right for one, right in zip(found, expected)]
        if found != expected:
            wrong.append(f"{name} waits for {found}")
        pending = bool(wait) and wait["pending_continuation"]
        if pending and name not in facts.pending or whole and not pending and name in facts.pending:
            wrong.append(f"{name} waits for what has been queued: {pending}")
    return wrong


def compare_deadlocks(facts, report, whole):
    expected = {cycle([facts.threads[name] for name in names]) for names in facts.deadlocks}
    sure = [deadlock for deadlock in report["deadlocks"] if whole or all(wait["endless"] for wait in deadlock["waits"])]
    found = [cycle([wait["tid"] for wait in deadlock["waits"]]) for deadlock in sure]  # of others, the report says so
    wrong = [f"deadlock of {one}" for one in found if one not in expected]
    if whole:
        wrong += [f"no deadlock of {one}" for one in expected - set(found)]
    return wrong + (["a deadlock is there twice"] if len(set(found)) != len(found) else [])


def compare_pool(facts, report, whole):
    """A core without the heap has the workers' stacks, but not all that they wait for."""
    pool, told = report["thread_pool"], facts.pool
    if not told or pool == told:
        return []
    less = pool and pool["waiting"] <= told["waiting"] and all(pool[key] in (None, told[key]) for key in POOL if key not in ("waiting", "starves"))
    return [] if less and not whole else [f"the pool: {pool} instead of {told}"]


def compare(facts, report, whole):
    return compare_locks(facts, report, whole) + compare_waits(facts, report, whole) + compare_chains(facts, report, whole) + compare_deadlocks(facts, report, whole) + compare_pool(facts, report, whole)


def ask(target):
    done = subprocess.run([TOOL, "report", "--json", str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=300)
    return json.loads(done.stdout)


def compare_services(work, core, directory, report, runtime):
    """The monitors of a full core, as the debugger services have them. Thin ones are found where the heap has them,
    those of cdacq where a frame of their owner refers to them. The services do not count who waits for a monitor of
    .NET 11."""
    services = stack_run.Services(work)
    try:
        answer = services.walk(core, directory, "locks")
    finally:
        services.close()
    if "locks" not in answer:
        return [f"the services: {answer}"]

    def shape(lock, owner, entries):
        return lock["object"], lock["thin"], lock[owner], entries, 0 if manages_waits(runtime) else lock["waiters"]

    # The services count the first entry of a sync block, but not of a thin lock. Of a monitor that nobody holds, and in
    # which a thread waits to be pulsed, they count 1,000 waiters, their own bound: these are left out.
    theirs = {shape(lock, "tid", lock["recursion"] - (not lock["thin"])) for lock in answer["locks"]}
    ours = {shape(lock, "owner_tid", lock["recursion"]) for lock in report["locks"] if lock["kind"] == "monitor" and lock["held"]}
    wrong = [f"only the services have {lock}" for lock in theirs - ours if not lock[1]]
    return wrong + [f"the services do not have {lock}" for lock in ours - theirs]


def compare_snapshot(core):
    """A snapshot with stacks holds what the report of locks needs."""
    small = os.path.join(tempfile.gettempdir(), os.path.basename(core) + ".small")
    subprocess.run([TOOL, "snapshot", "--stacks", "--arguments", core, "-o", small, NO_CODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    whole, part = ask(core), ask(small)
    os.remove(small)
    for report in (whole, part):
        report["names"] = names_of(report)
    return [f"the {key} of the snapshot" for key in ("locks", "waits", "deadlocks", "thread_pool", *OF_PROCESS) if whole[key] != part[key]]


def names_of(report):
    return {thread["tid"]: thread["name"] for stack in report["stacks"] for thread in stack["threads"]}


def compare_names(pid, report):
    """A process, and a snapshot of it, have the whole names that the program or the runtime gave the threads."""
    wrong = compare_snapshot(pid)
    names = names_of(report).values()
    if "SleeperThreadOfTheProgram" not in names:  # the kernel has 15 bytes of it
        wrong.append(f"no whole name: {sorted(filter(None, names))}")
    return wrong


VERDICTS = {"deadlocks": "deadlock", "returned": "deadlock", "starved": "starvation", "busy": "busy", "suspended": "suspension"}


def check_verdict(target, way, runtime, report):
    """What the program does wrong, and where. It waits for locks in the other ways, too, but never in a deadlock."""
    verdict, right = report["verdict"], VERDICTS.get(way)
    if way == "suspended" and runtime.startswith("8."):
        return []
    if right is None:
        busy = way == "healthy" and (verdict["method"] or "").startswith("Locks.Healthy.")  # its threads spin
        return [f"the verdict: {verdict}"] if verdict["kind"] in VERDICTS.values() and not (busy and verdict["kind"] == "busy") else []
    if way == "busy" and verdict["kind"] == "nothing":  # other processes have the processors
        return []
    good = verdict["kind"] == right and (verdict["method"] or "").startswith("Locks.") and verdict["line"]
    text = subprocess.run([TOOL, "report", str(target)], stdout=subprocess.PIPE, text=True, check=False).stdout
    lines = text.partition("\n\n")[0].splitlines()
    good = good and lines[0].startswith("verdict ") and len(lines) <= 5
    good = good and (lines[1].startswith("where ") or way == "busy")  # which is measured again
    return [] if good else [f"the verdict: {verdict}, {lines}"]


def check_places(report):
    """Every thread of the program waits in a method of the program, whose line is known."""
    names = {thread["tid"]: thread["name"] for stack in report["stacks"] for thread in stack["threads"]
             if any((frame["method"] or "").startswith("Locks.") and frame["status"] == "managed" for frame in stack["frames"])}
    wrong = [f"no place: {wait}" for wait in report["waits"] if wait["tid"] in names
             and not (wait["place"] and wait["place"]["method"].startswith("Locks.") and wait["place"]["line"])]
    return wrong + [f"no place of {wait['blocker_tid']}: {wait}" for wait in report["waits"]
                    if wait["blocker_tid"] in names and not wait["blocker_place"]]


def check_texts(facts, pid):
    """The other forms of the report of a running process with deadlocks."""
    wrong = []
    text, brief, signature = (subprocess.run([TOOL, "report", *options, str(pid)], stdout=subprocess.PIPE, text=True, check=False).stdout
                              for options in ([], ["--brief"], ["--signature"]))
    if "it is none if" in text or "if none" in brief:
        wrong.append("a doubt: " + brief)
    if text.count("\nDeadlock of ") != len(facts.deadlocks) or "\nWaits:\n" not in text or "[guess]" in text:
        wrong.append("the text")
    if brief.count("deadlock ") != len(facts.deadlocks):
        wrong.append("the brief text: " + brief)
    if not signature.startswith(DEADLOCK_SIGNATURE) or "Locks.Stuck" not in signature or signature.count("\n") != 1:
        wrong.append("the signature: " + signature)
    first = text.find("\nTID ")
    if facts.deadlocks and not text.find("\nDeadlock of ") < first < text.find("\nWaits:\n"):
        wrong.append("the order of the text")
    if not any(f'"{name}"' in text[first:first + 200] for names in facts.deadlocks for name in names):
        wrong.append("the first stack is that of no deadlocked thread")
    return wrong, signature


def check_starvation(target):
    """The text of a process, and the signature. The stacks of the workers come first."""
    texts = [subprocess.run([TOOL, "report", *options, str(target)], stdout=subprocess.PIPE, text=True, check=False).stdout
             for options in ([], ["--brief"], ["--signature"])]
    wrong = [f"no starvation: {text[:200]}" for text in texts[:2] if text.count(STARVATION) != 1]
    wrong += [] if len(re.findall(" wait in Locks[^\n]*, each for a task ", texts[0])) == 1 else ["a line for each worker"]
    stacks = [part for part in texts[0].split("\n\n") if part.startswith("TID ")]
    workers = ["Locks.Starved" in stack for stack in stacks]
    wrong += [] if any(workers) and sorted(workers, reverse=True) == workers else [f"the order of the stacks: {workers}"]
    return wrong + ([] if texts[2] == STARVATION_SIGNATURE else ["the signature: " + texts[2]])


def check_stopped(pid):
    """A process that a signal has stopped, and that hangs for no other reason."""
    os.kill(pid, signal.SIGSTOP)
    try:
        while lab.states_of(pid) != {"T"}:
            time.sleep(0.01)
        brief, signature = (subprocess.run([TOOL, "report", option, str(pid)], stdout=subprocess.PIPE, text=True, check=False)
                            for option in ["--brief", "--signature"])
        stopped = ask(pid)["stopped"]
    finally:
        os.kill(pid, signal.SIGCONT)
    good = stopped and brief.returncode == 0 and brief.stdout.count("stopped by a signal: 'kill -CONT") == 1 and signature.stdout == "stopped\n"
    return [] if good else [f"stopped: {stopped}, {brief}, {signature}"]


def check_busy(pid, facts):
    """Of four threads, two spin. How busy they are depends on the machine; that the others sleep does not."""
    busy, idle = ([facts.threads[name] for name in names] for names in (["spinner0", "spinner1"], ["sleeper", "parked"]))
    percent = {thread["tid"]: thread["processor_percent"] for stack in ask(pid)["stacks"] for thread in stack["threads"]}
    text = subprocess.run([TOOL, "report", str(pid)], stdout=subprocess.PIPE, text=True, check=False).stdout
    listed = text.partition("\nBusy threads:\n")[2].partition("\n\n")
    stacks = [part for part in text.split("\n\n") if part.startswith("TID ")]  # that of the verdict is before the section
    wrong = [f"{percent}" for tid in busy if not 5 <= percent[tid] <= 100] + [f"{percent}" for tid in idle if percent[tid] != 0]
    wrong += [f"the section: {listed[0]}" for tid in busy if f"  TID {tid} " not in listed[0]]
    headings = " ".join(stack.partition("\n")[0] for stack in stacks[:listed[0].count("\n") + 1])
    wrong += [f"the first stacks are those of {headings}" for tid in busy if f"{tid} \"spinner" not in headings]
    wrong += ["the idle thread of the pool"] if ".NET TP Gate\" waits" in text else []
    return wrong


def check_modes(core, report, facts):
    """What the threads did as the process was stopped. A thread that spins may have been in an interrupt, not in a system call."""
    modes = {thread["tid"]: thread["mode"] for stack in report["stacks"] for thread in stack["threads"]}
    names = {"spinner0": "user", "spinner1": "user", "sleeper": "kernel", "parked": "kernel"}
    wrong = [f"{name}: {modes[facts.threads[name]]}" for name, mode in names.items() if modes[facts.threads[name]] != mode]
    if report["kind"] == "core" and report["signal"] is None:
        text = subprocess.run([TOOL, "report", core], stdout=subprocess.PIPE, text=True, check=False).stdout
        wrong += [f"{name} is not listed" for name, mode in names.items() if (f"  TID {facts.threads[name]}" in text.partition("\nBusy threads:\n")[2].partition("\n\n")[0]) != (mode == "user")]
    return wrong


def await_suspension(pid):
    """The program cannot say READY after it has begun to collect."""
    for _ in range(50):
        time.sleep(0.1)
        if any(thread["suspends_others"] for stack in ask(pid)["stacks"] for thread in stack["threads"]):
            return


def check_suspension(core, report, facts, runtime):
    """Since .NET 9, the runtime says for which thread it suspends the others."""
    threads = {thread["tid"]: thread for stack in report["stacks"] for thread in stack["threads"]}
    described = not runtime.startswith("8.")
    wrong = [f"{key} of {name}" for key, right in (("suspends_others", "collector"), ("delays_suspension", "delayer"))
             for name, tid in facts.threads.items() if threads[tid][key] != (described and name == right)]
    text = subprocess.run([TOOL, "report", str(core)], stdout=subprocess.PIPE, text=True, check=False).stdout
    section = text.partition("\nSuspension:\n")[2].partition("\n\n")[0]
    lines = [f"  TID {facts.threads['collector']} ", f"  TID {facts.threads['delayer']} ", "called by Locks.Suspended.Lock(void*)"]
    return wrong + [f"no '{line}' in the section: {section}" for line in lines if described and line not in section]


SUSPENDED = ["-p:Features=runtime-async=on", "-p:EnablePreviewFeatures=true", "-p:LangVersion=preview"]
OVER_ITERATORS = ["ListWaiter", "PromiseWaiter", "StreamWaiter"]  # not found if the runtime suspends what awaits an iterator


def command_of(work, runtime, configuration):
    framework = "net10.0" if runtime == "installed" else lab.framework_for(runtime)
    out = os.path.join(work, f"locks-{framework}-{configuration}")
    if not os.path.exists(os.path.join(out, "Locks.dll")):
        lab.run(["dotnet", "build", os.path.join(HERE, "locks"), "-c", "Debug" if configuration == "Debug" else "Release", "-o", out, "--nologo", "-v", "q",
                 f"-p:DemoFramework={framework}", f"-p:BaseIntermediateOutputPath={out}-obj/",
                 *([] if configuration != "Suspended" else ["-p:RuntimeAsync=on"] if manages_waits(runtime) else SUSPENDED)])
    start = ["dotnet"] if runtime == "installed" else [lab.private_dotnet(work, runtime), "exec", "--fx-version", runtime]
    return start + [os.path.join(out, "Locks.dll")]


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return int(children.read())


def outer_ids(pid):
    """From the ids in the process's own pid namespace to those here."""
    ids = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8") as status:
            line = next(line for line in status if line.startswith("NSpid:"))
        ids[int(line.split()[-1])] = int(tid)
    return ids


@contextlib.contextmanager
def running(work, runtime, *way, configuration="Release", wrapper=(), **environment):
    process = subprocess.Popen([*wrapper, *command_of(work, runtime, configuration), *way], cwd=work, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **environment}, preexec_fn=lab.allow_cores)
    try:
        lines = []
        for line in process.stdout:
            if line.startswith("READY "):
                break
            lines.append(line)
        else:
            raise lab.LabError(f"{runtime} {way}: the program ended")
        yield lab.Target(work, process, None), Facts(lines)
    finally:
        process.kill()
        process.wait()


def say(good, text, wrong):
    print(f"  {'ok  ' if good else 'FAIL'} {text}{': ' if wrong else ''}{'; '.join(wrong)[:2000]}", flush=True)


def check_signature(core):
    """A core that lacks locks does not pass for one of a process without a deadlock."""
    done = subprocess.run([TOOL, "report", "--signature", "--json", core], stdout=subprocess.PIPE, text=True, check=False)
    row = json.loads(done.stdout)
    return ["'alive', without a doubt"] if row["signature"] == "alive" and (row["complete"] or done.returncode != 1) else []


def test_way(work, runtime, way, every_kind):
    good = True
    with running(work, runtime, way) as (target, facts):
        if len(facts.waits) < LEAST[way] or (way == "starved") != bool(facts.pool):
            raise lab.LabError(f"{way}: the program told of {len(facts.waits)} waits, and of the pool {facts.pool}")
        if way == "suspended":
            await_suspension(target.pid)
        for kind in ["live", *WITHOUT_HEAP, "heap", "full", "kernel"] if every_kind else ["live", "kernel"]:
            core = target.pid if kind == "live" else target.kernel_core() if kind == "kernel" else target.createdump(kind)
            report = ask(core)
            wrong = compare(facts, report, kind in WITH_HEAP)
            if kind == "full" and way == "waits":
                wrong += compare_services(work, core, target.runtime_directory(), report, runtime)
            if kind == "live" and way == "busy":
                wrong += check_busy(target.pid, facts)
            if way == "suspended":
                wrong += check_suspension(core, report, facts, runtime)
            if way == "busy":
                wrong += check_modes(core, report, facts)
            if kind == "kernel" and way not in ["healthy", "busy"]:
                wrong += compare_snapshot(core)
            if kind != "live" and way == "deadlocks":
                wrong += check_signature(core)
            if kind == "live" and way == "deadlocks":
                wrong += check_texts(facts, target.pid)[0]
            if kind == "live" and way == "starved":
                wrong += check_starvation(target.pid)
            if kind == "live" and way == "waits":
                wrong += check_stopped(target.pid) + compare_names(str(target.pid), report)
            if kind == "live":
                wrong += check_verdict(target.pid, way, runtime, report) + check_places(report)
            say(not wrong, f"{runtime} {way} {kind}: {len(facts.held)} locks, {len(facts.waits)} waits, {len(facts.deadlocks)} deadlocks", wrong)
            good &= not wrong
            if kind != "live":
                os.remove(core)
    return good


def test_watchdog(work, runtime):
    """What ends a process that hangs is not why it hangs."""
    wrong = []
    with running(work, runtime, "deadlocks") as (target, _):
        signature = check_texts(Facts([]), target.pid)[1]
        for _ in range(WATCHDOG_SIGNALS):
            os.kill(target.pid, signal.SIGABRT)  # the runtime swallows the first one
            with contextlib.suppress(subprocess.TimeoutExpired):
                target.process.wait(timeout=5)
                break
        core, = glob.glob(os.path.join(work, "core*"))
        after, text = (subprocess.run([TOOL, "report", *options, core], stdout=subprocess.PIPE, text=True, check=False).stdout
                       for options in [["--signature"], []])
        os.remove(core)
    if after != signature or not after.startswith(DEADLOCK_SIGNATURE):
        wrong.append(f"the signature {after!r} and not {signature!r}")
    program = next(line for line in text.splitlines() if line.startswith("program "))
    if not text.startswith("verdict     deadlock: ") or "\nsignal      SIGABRT" not in text or not program.endswith("Locks.dll deadlocks"):
        wrong.append("the text: " + text[:300])
    say(not wrong, f"{runtime} deadlocks, ended by SIGABRT", wrong)
    return not wrong


def test_not_optimised(work, runtime):
    """The state machines of a build for debugging are classes."""
    with running(work, runtime, "waits", configuration="Debug") as (target, facts):
        wrong = compare(facts, ask(target.pid), True)
    say(not wrong, f"{runtime} waits live, not optimised: {len(facts.chains)} chains", wrong)
    return not wrong


def test_inlined(work, runtime):
    """The JIT compiler inlines Thread.Join into the methods of the program as soon as they are compiled. Before .NET 10,
    nothing says then that it was called."""
    with running(work, runtime, "deadlocks", DOTNET_TieredCompilation="0") as (target, facts):
        wrong = compare(facts, ask(target.pid), True)
    say(not wrong, f"{runtime} deadlocks live, inlined", wrong)
    return not wrong


def test_namespace(work, runtime):
    """A process in a pid namespace of its own, as in a container, seen from outside: the runtime knows its threads by
    other ids. A snapshot has these ids. The core of a debugger from outside has none of them, which must be told."""
    wrapper = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*wrapper, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("  no namespaces", flush=True)
        return os.environ.get("CDACQ_REQUIRE_PTRACE") != "1"
    with running(work, runtime, "deadlocks", wrapper=wrapper) as (target, facts):
        pid, inner = child_of(target.pid), dict(facts.threads)
        ids = outer_ids(pid)
        facts.threads = {name: ids[tid] for name, tid in inner.items()}
        wrong = compare(facts, ask(pid), True)
        small, core = os.path.join(work, "small"), os.path.join(work, "outside")
        subprocess.run([TOOL, "snapshot", "--stacks", "--arguments", str(pid), "-o", small, NO_CODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        lab.run(["gcore", "-o", core, str(pid)])
    facts.threads = inner
    wrong += [f"snapshot: {one}" for one in compare_deadlocks(facts, ask(small), True)]
    core += f".{pid}"
    done = subprocess.run([TOOL, "report", "--json", core], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    report = json.loads(done.stdout)
    if done.returncode != 1 or "pid namespace" not in done.stderr.decode() or not report["waits_problem"]:
        wrong.append(f"gcore: status {done.returncode}, {done.stderr.decode()}")
    os.remove(small)
    os.remove(core)
    say(not wrong, f"{runtime} deadlocks in another pid namespace", wrong)
    return not wrong


def test_many(work, runtime):
    """Locks and waits are found in linear time: five thousand threads."""
    with running(work, runtime, "many", str(MANY)) as (target, facts):
        core = target.kernel_core()
        report = ask(core)
        os.remove(core)
    kinds = [wait["kind"] for wait in report["waits"]]
    third = MANY // 3
    wrong = compare_locks(facts, report, True) + ([] if report["deadlocks"] == [] else ["a deadlock"])
    if not all(kinds.count(kind) in (third, third + 1) for kind in ("enter", "pulse", "task")):
        wrong.append(f"{kinds.count('enter')}, {kinds.count('pulse')}, {kinds.count('task')} waits")
    say(not wrong, f"{runtime}: {MANY} threads", wrong)
    return not wrong


def test_runtime_async(work, runtime):
    """Programs whose async methods the runtime suspends. What these await is not followed: no chain, and no deadlock
    through them, but also nothing wrong."""
    good = True
    for way in ["deadlocks", "waits", "starved"]:
        with running(work, runtime, way, configuration="Suspended") as (target, facts):
            report = ask(target.pid)
            wrong = compare_locks(facts, report, True) + compare_waits(facts, report, True) + compare_pool(facts, report, True)
            wrong += [text for text in compare_deadlocks(facts, report, True) if not text.startswith("no deadlock")]
            wrong += [] if report["deadlocks"] or way != "deadlocks" else ["no deadlock at all"]
        say(not wrong, f"{runtime} {way} live, runtime-async: {len(facts.waits)} waits, {len(report['deadlocks'])} deadlocks", wrong)
        good &= not wrong
    return good


def test_suspended(work, runtime):
    """Async methods that the runtime suspends, without a state machine."""
    if manages_waits(runtime):
        return test_runtime_async(work, runtime)
    with running(work, runtime, "deadlocks", configuration="Suspended", DOTNET_RuntimeAsync="1") as (target, facts):
        facts.deadlocks = [names for names in facts.deadlocks if names[0] not in OVER_ITERATORS]
        report = ask(target.pid)
        wrong = [text for text in compare_deadlocks(facts, report, True) if text.startswith("no deadlock")]
    say(not wrong, f"{runtime} deadlocks live, async methods of the runtime", wrong)
    return not wrong


def test_runtime(runtime, every):
    work = tempfile.mkdtemp(prefix="cdacq-locks-")
    try:
        good = all([test_way(work, runtime, way, every) for way in (WAYS if every else SHARE)])
        if every:
            good &= test_not_optimised(work, runtime) & test_watchdog(work, runtime) & test_namespace(work, runtime)
        if every and lab.is_recent(runtime):
            good &= test_inlined(work, runtime) & test_suspended(work, runtime) & test_many(work, runtime)
        return good
    finally:
        shutil.rmtree(work)


def main():
    every = bool(sys.argv[1:])
    try:
        lab.refuse_piped_cores()
        return 0 if all([test_runtime(runtime, every or lab.is_newest(runtime)) for runtime in lab.runtimes(sys.argv[1:])]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
