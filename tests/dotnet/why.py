#!/usr/bin/env python3
"""What keeps objects of real processes: `cdacq heap --why` against what a program planted, and `--retained` against the debugger services.
`--export` has the objects of `cdacq heap` and the paths of `--why`; dotnet-gcdump reads its .gcdump, and the DevTools of
a headless Chromium its .heapsnapshot.

    why.py [RUNTIME...]     words of lab.runtimes(); the newest line, and those that are named, also with server GC

Of the running process, and of full, gdb's and the kernel's cores. Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1.
"""

import collections
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import heap_snapshot
import lab
import stack_run

sys.path.insert(0, os.path.join(os.path.dirname(lab.HERE), "support"))
import browser  # noqa: E402

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
CORES = ["full", "heap", "gcore", "kernel"]
SERVER = {"DOTNET_gcServer": "1", "DOTNET_GCHeapCount": "2"}
TRIES = 4
SHOWN = 12
SECONDS = 300
LEAST_REFERENCES = 5000
LEAST_OBJECT, ALIGNMENT = 24, 8  # bytes that an object takes, and a multiple of which
# .NET 8 describes no thread statics: handles keep them.
UNDESCRIBED = {"8": ("thread-static",)}

# What the path to an object is in words.
WORDS = {"Leaks.OfTimer": ("timer", "a timer"), "Leaks.OfEvent": ("event", "event Leaks.Bus.Changed"), "Leaks.OfAsync": ("async", "async method")}

Leak = collections.namedtuple("Leak", "kind type text hop")


@contextlib.contextmanager
def planted(work, runtime, settings=None):
    """A process that keeps its objects, how it does, the types of which it keeps none, and what keeps its load contexts."""
    command = lab.program_command(work, "leaks", runtime)
    with tempfile.TemporaryDirectory(dir=work, prefix="run-") as folder, lab.running_program(command, folder, settings) as target:
        said = target.read_log()
        kept = [Leak(*line.split("\t")) for line in re.findall(r"^KEPT (.*)$", said, re.MULTILINE)]
        contexts = dict(line.split("\t") for line in re.findall(r"^CONTEXT (.*)$", said, re.MULTILINE))
        yield target, kept, re.findall(r"^FREE (.*)$", said, re.MULTILINE), contexts


def ask(target, *options):
    done = subprocess.run([TOOL, "heap", *options, str(target)], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


def why(target, *what):
    code, said, errors = ask(target, "--json", *(f"--why={word}" for word in what))
    return code, [json.loads(line) for line in said.splitlines()], errors


class Tally:
    """What was compared, and what differs."""

    def __init__(self):
        self.said = collections.Counter()
        self.wrong = []

    def expect(self, good, what):
        if not good:
            self.wrong.append(what)


def is_described(runtime, leak):
    return not any(word in (leak.kind, leak.text) or word in leak.text for word in UNDESCRIBED.get(runtime.split(".")[0], ()))


def compare_leak(tally, what, runtime, leak, answers):
    paths = [path for path in answers if path["path"][-1]["type"] == leak.type]
    if not paths:
        tally.expect(False, f"{what}: {leak.type} has no answer")
        return
    root, hops = paths[0]["root"], [hop["by"] for hop in paths[0]["path"] if hop["by"]]
    tally.said["leaks"] += 1
    if not root:
        tally.expect(False, f"{what}: {leak.type} has no root")
        return
    if not is_described(runtime, leak):
        return
    found = f"{root['kind']}: {root['text']} {hops[:4]}"
    tally.expect(root["kind"] == leak.kind and leak.text in root["text"], f"{what}: {leak.type} is kept by {found}")
    matches = leak.hop == "-" or any(leak.hop == hop or leak.hop.strip("*") in hop for hop in hops)
    tally.expect(matches, f"{what}: the path to {leak.type} lacks {leak.hop}: {found}")
    words = [(word["kind"], word["text"]) for word in paths[0]["through"]]
    kind, text = WORDS.get(leak.type, (None, None))
    tally.expect(not kind or any(word[0] == kind and word[1].startswith(text) for word in words), f"{what}: {leak.type} is kept through {words}")
    tally.expect(all(re.fullmatch(r"0x[0-9a-f]+", hop["address"]) for hop in paths[0]["path"]), f"{what}: addresses of {leak.type}")


def compare_why(tally, what, runtime, target, kept, free):
    _, answers, said = why(target, *(leak.type for leak in kept))
    for leak in kept:
        compare_leak(tally, what, runtime, leak, answers)
    one = answers[0]["path"][-1]["address"] if answers else None
    if one:
        code, again, said = why(target, one)
        tally.expect(code == 0 and again and again[0]["path"] == answers[0]["path"], f"{what}: another path by address: {code} {said[:200]}")
    for name in free:
        code, answers, said = why(target, name)
        tally.expect(code == 1 and len(answers) == 1 and answers[0]["root"] is None and "no root was found" in said,
                     f"{what}: {name} is kept: {code} {answers} {said[:200]}")


def compare_text(tally, what, target):
    """A long list is folded."""
    _, said, errors = ask(target, "--why=Leaks.OfList")
    tally.expect("static field Leaks.Cache.Head" in said and re.search(r"\.\.\. 4999\d more of the same", said) and len(said.splitlines()) < 12,
                 f"{what}: {said[:400]} {errors[:200]}")


def compare_contexts(tally, what, target, contexts):
    """Load contexts that were unloaded and stay: each is kept by what was planted, and one that nothing keeps has gone."""
    code, lines, said = retained(target)
    found = {line["context"]["name"]: line for line in lines if "context" in line}
    tally.expect(set(found) == set(contexts) and all(line["context"]["unloading"] for line in found.values()), f"{what}: {found} {code} {said[:200]}")
    for name, root in contexts.items():
        _, answers, said = why(target, name)
        tally.said["contexts"] += 1
        good = len(answers) == 1 and answers[0]["root"] and answers[0]["root"]["text"] == f"static field {root}"
        tally.expect(good and answers[0]["context"]["name"] == name, f"{what}: {name} is kept by {answers} {said[:200]}")
    plugged = found.get("Held by an object")
    tally.expect(plugged and plugged["retained"] >= 100_000 > plugged["bytes"] > 0, f"{what}: {plugged}")
    fields = {line["root"]["text"]: line["retained"] for line in lines if "root" in line}
    tally.expect(plugged and fields.get("static field Leaks.Cache.Plugged") == plugged["retained"], f"{what}: {fields.get('static field Leaks.Cache.Plugged')} {plugged}")


def wait_for(target, word):
    """Until the process has said that."""
    for _ in range(SECONDS * 10):
        with open(target.log, encoding="utf-8") as file:
            if word in file.read():
                return
        time.sleep(0.1)
    raise lab.LabError(f"the process has not said {word}")


def compare_growth(tally, what, before, target):
    """What has grown hangs below what was planted."""
    target.process.stdin.write(b"grow\n")
    target.process.stdin.flush()
    wait_for(target, "GROWN")
    code, said, errors = ask(target.pid, "--json", before)
    holders = json.loads(said.splitlines()[-1])["holders"] if said else []
    hops = [hop["by"] for hop in holders[0]["path"]] if holders else []
    good = holders and holders[0]["root"]["text"] == "static field Leaks.Cache.Growing" and holders[0]["percent"] >= 90 and \
        holders[0]["objects"] >= 40_000 and hops == [None, "_entries", "[0].value", "_items"]
    tally.expect(code in (0, 1) and good, f"{what}: {code} {holders} {hops} {errors[:300]}")
    _, said, _ = ask(target.pid, before)
    tally.expect("below static field Leaks.Cache.Growing" in said, f"{what}: {said[-600:]}")
    tally.said["growths"] += 1


def retained(target):
    code, said, errors = ask(target, "--retained", "--json", "--all")
    return code, [json.loads(line) for line in said.splitlines()], errors


def compare_retained(tally, what, target):
    code, lines, said = retained(target)
    tally.expect(code in (0, 1) and lines, f"{what}: --retained: {code}: {said[:300]}")
    if not lines:
        return None
    summary = lines.pop()
    fields = {line["root"]["text"]: line["retained"] for line in lines if "root" in line}
    head = fields.get("static field Leaks.Cache.Head", 0)
    nodes = [line for line in lines if line.get("type") == "Leaks.Node" and "count" in line]
    tally.expect(nodes and 0 <= head - nodes[0]["bytes"] <= 64 and nodes[0]["retained"] == head,
                 f"{what}: {nodes} are not what Leaks.Cache.Head keeps, {head}")
    tally.expect(summary["kept_bytes"] <= summary["bytes"] and summary["kept_objects"] <= summary["objects"], f"{what}: {summary}")
    return summary


def listed_types(target):
    """By name of a type: how many objects, and their bytes."""
    _, said, _ = ask(target, "--json", "--all")
    sums = collections.defaultdict(lambda: [0, 0])
    for line in map(json.loads, said.splitlines()):
        if line.get("type", "Free") != "Free":
            sums[line["type"]][0] += line["count"]
            sums[line["type"]][1] += line["bytes"]
    return {name: tuple(pair) for name, pair in sums.items()}


def compare_export(tally, what, core, kept):
    """The file has the objects of the heap; the paths that --why has are in it, and none is shorter."""
    name = f"{core}.heapsnapshot"
    code, said, errors = ask(core, f"--export={name}")
    tally.expect(code in (0, 1) and not said and os.stat(name).st_mode & 0o777 == 0o600, f"{what}: --export: {code} {errors[:300]}")
    snapshot = heap_snapshot.Snapshot(name)
    os.remove(name)
    wanted, found = listed_types(core), snapshot.types()
    differing = [f"{word}: {found.get(word)} not {wanted.get(word)}" for word in wanted.keys() | found.keys() if wanted.get(word) != found.get(word)]
    tally.expect(wanted and not differing, f"{what}: types in the snapshot: {differing[:4]}")
    tally.expect(len(snapshot.distances([0])) == len(snapshot.nodes), f"{what}: nodes that the root does not reach")
    tally.said["exported objects"] += sum(count for count, _ in found.values())
    distances = snapshot.distances(snapshot.roots())
    _, answers, _ = why(core, *(leak.type for leak in kept))
    for answer in answers:
        if not answer["root"]:
            continue
        ends = snapshot.follow(answer["root"]["text"], answer["path"])
        tally.said["exported paths"] += 1
        tally.expect(any(distances[end] == len(answer["path"]) - 1 for end in ends),
                     f"{what}: not in the snapshot: {answer['root']} {answer['path'][:4]}")


def compare_browser(tally, what, before, target):
    """DevTools has the types, what an object of theirs retains, what refers to one, and what has grown. Sizes of its
    nodes are those of the objects; `--retained` counts what they take in the heap."""
    files = [f"{before}.{number}.heapsnapshot" for number in range(2)]
    for one, name in zip((before, target.pid), files):
        ask(one, f"--export={name}")
    with browser.page(SECONDS) as page:
        found = page.read_snapshots(*files)
    for name in files:
        os.remove(name)
    wanted, later = listed_types(before), listed_types(target.pid)
    differing = [name for name, counts in wanted.items() if tuple(found["classes"].get(name, ())) != counts]
    tally.expect(wanted and not differing, f"{what}: {len(differing)} types differ: {differing[:4]}")
    sizes = {line["type"]: line["retained"] for line in retained(before)[1]
             if line.get("type") in found["classes"] and line.get("count") == wanted.get(line["type"], (0,))[0]}
    differing = [f"{name} {found['retained'][name]} not {size}" for name, size in sizes.items()
                 if not 0 <= size - found["retained"][name] <= size // LEAST_OBJECT * (ALIGNMENT - 1)]
    tally.said["retained sizes in DevTools"] += len(sizes)
    tally.expect(len(sizes) >= SHOWN and not differing, f"{what}: {len(differing)} of {len(sizes)} retained sizes differ: {differing[:4]}")
    tally.expect(["_target", "System.EventHandler"] in found["retainers"].get("Leaks.OfEvent", []), f"{what}: {found['retainers'].get('Leaks.OfEvent')}")
    grown = {name: count - wanted.get(name, (0,))[0] for name, (count, _) in later.items()}
    differing = [f"{name} {found['growth'].get(name)} not {count}" for name, count in grown.items() if found["growth"].get(name, 0) != count]
    tally.expect(sum(grown.values()) >= 40_000 and not differing, f"{what}: {len(differing)} differences: {differing[:4]}")


def compare_gcdump(tally, work, services, core):
    """dotnet-gcdump reads the objects of the heap in the file, and its report has their number and bytes."""
    name = f"{core}.gcdump"
    tool = lab.dotnet_tool(work, "dotnet-gcdump")
    code, said, errors = ask(core, f"--export={name}")
    tally.expect(code in (0, 1) and not said, f".gcdump: {code} {errors[:300]}")
    answer = services.ask(name, glob.glob(f"{tool}/.store/**/any/dotnet-gcdump.dll", recursive=True)[0], "gcdump")
    report = subprocess.run([f"{tool}/dotnet-gcdump", "report", name], capture_output=True, encoding="utf-8", check=False, timeout=SECONDS)
    os.remove(name)
    if "error" in answer:
        tally.expect(False, f".gcdump: {answer['error']}")
        return
    wanted, found = listed_types(core), collections.defaultdict(lambda: [0, 0])
    for word, count, size in answer["types"]:
        found[word][0] += count
        found[word][1] += size
    differing = [f"{word}: {found[word]} not {wanted.get(word)}" for word in wanted.keys() | found.keys() if wanted.get(word) != tuple(found[word])]
    tally.expect(wanted and not differing, f".gcdump: {len(differing)} types differ: {differing[:4]}")
    _, said, _ = ask(core, "--json", "--all")
    summary = json.loads(said.splitlines()[-1])
    generations = {"0": 0, "1": 1, "2": 2, "loh": 3, "poh": 4, "frozen": 2}
    counts = collections.Counter()
    for item in summary["generations"]:
        counts[str(generations[item["generation"]])] += item["objects"] - item["free_objects"]
    tally.expect(+counts == collections.Counter(answer["generations"]), f".gcdump: {answer['generations']} not {counts}")
    size = summary["bytes"] - summary["free_bytes"]
    tally.expect((answer["bytes"], answer["total"], answer["unreached"]) == (size, size, 0), f".gcdump: {size} bytes: {answer['bytes']}, {answer['total']}, "
                 f"{answer['unreached']} nodes not reached")
    tally.expect(answer["process"] and answer["references"] > LEAST_REFERENCES, f".gcdump: {answer['references']} references of {answer['process']}")
    row = re.search(r"^ *([\d,]+)  GC Heap bytes$", report.stdout, re.MULTILINE)
    counted = {line.split("  ")[-1]: line.split()[1] for line in report.stdout.splitlines() if line.strip()}
    tally.expect(row and int(row[1].replace(",", "")) == size and counted.get("System.String") == f"{wanted['System.String'][0]:,}",
                 f"dotnet-gcdump report: {report.stdout[:300]} {report.stderr[:300]}")
    tally.said["objects in .gcdump"] += sum(count for count, _ in found.values())


def judge(tally, services, what, core, directory, summary):
    """The debugger services count the handles of each kind, and the objects with finalizers."""
    answer = services.walk(core, directory, "roots")
    if "error" in answer:
        tally.expect(False, f"{what}: the services: {answer['error']}")
        return
    found = {root["kind"] if root["handle"] is None else root["handle"]: root["count"] for root in summary["roots"]}
    for kind, count in answer["handles"].items():
        tally.said["judged handles"] += count
        tally.expect(found.get(kind, 0) == count, f"{what}: {found.get(kind, 0)} not {count} {kind} handles")
    finalizable = found.get("finalizable", 0), found.get("finalizer", 0)
    tally.said["judged finalizers"] += sum(finalizable)
    every, ready = answer["finalizable"]  # the services list those that are ready twice
    tally.expect(finalizable == (every - ready, ready), f"{what}: finalizable {finalizable} not {answer['finalizable']}")
    tally.said["judged objects"] += len(answer["reachable"])
    compare_reachable(tally, what, core, answer)


def is_lacked(root):
    return root["kind"] == "thread-static" or root["text"].startswith("the runtime's own code")


def compare_reachable(tally, what, core, answer):
    """Of a sample of objects, whether the services find roots of them. Since .NET 9 they lack thread statics, and of .NET 11 the GCFrames."""
    _, answers, _ = why(core, *answer["reachable"])
    kept = {line["path"][-1]["address"]: line["root"] for line in answers}
    differing = [f"{address}: {kept.get(address)}" for address, is_kept in answer["reachable"].items()
                 if address not in kept or (not is_kept and kept[address] and not is_lacked(kept[address]))
                 or (is_kept and not kept[address])]
    tally.expect(not differing, f"{what}: {len(differing)} of {len(answer['reachable'])} objects are kept or not: {differing[:4]}")


def take(target, kind):
    """One core. A thread that ends meanwhile makes createdump fail: then it is asked again."""
    if kind == "kernel":
        return target.kernel_core()
    if kind == "gcore":
        return target.gcore()
    for _ in range(TRIES - 1):
        with contextlib.suppress(lab.LabError):
            return target.createdump(kind)
    return target.createdump(kind)


def test_runtime(work, runtime, services, settings, kinds):
    tally = Tally()
    with planted(work, runtime, settings) as (target, kept, free, contexts):
        directory = target.runtime_directory()
        compare_why(tally, "live", runtime, target.pid, kept, free)
        compare_contexts(tally, "live", target.pid, contexts)
        for kind in kinds:
            try:
                core = take(target, kind)
            except lab.Skip as reason:
                print(f"    skipped {kind}: {reason}")
                continue
            compare_why(tally, kind, runtime, core, kept, free)
            compare_text(tally, kind, core)
            compare_export(tally, kind, core, kept)
            compare_contexts(tally, kind, core, contexts)
            summary = compare_retained(tally, kind, core)
            if kind == "full" and summary:
                judge(tally, services, kind, core, directory, summary)
                compare_gcdump(tally, work, services, core)
            if kind == "gcore":
                compare_growth(tally, "growth", core, target)
                if not browser.works():
                    print("    skipped DevTools: no Chromium that starts")
                elif lab.is_newest(runtime):
                    compare_browser(tally, "DevTools", core, target)
            os.remove(core)
    said = ", ".join(f"{count} {what}" for what, count in tally.said.items())
    print(f"  {'FAIL' if tally.wrong else 'ok  '} {runtime}{', server' if settings else ''}: {said}", flush=True)
    for wrong in tally.wrong[:SHOWN]:
        print(f"    {wrong}")
    return not tally.wrong


def main():
    try:
        if shutil.which("dotnet") is None:
            raise lab.Skip("dotnet is not installed")
        with tempfile.TemporaryDirectory(prefix="cdacq-why-") as work:
            services = stack_run.Services(work)
            try:
                runtimes = lab.runtimes(sys.argv[1:])
                tests = [(runtime, None, CORES) for runtime in runtimes]
                tests += [(runtime, SERVER, ["full"]) for runtime in runtimes if sys.argv[1:] or lab.is_newest(runtime)]
                return 0 if all([test_runtime(work, runtime, services, settings, kinds) for runtime, settings, kinds in tests]) else 1
            finally:
                services.close()
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
