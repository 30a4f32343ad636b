#!/usr/bin/env python3
"""Has perf judge what `cdacq symfs`, `perfmap` and `jitdump` write: it must name the samples of a busy program.

The program writes no perf map of its own; ours, taken of the running process, is put where perf looks. The jitdump
takes the place of the runtime's own, which on .NET 10 ends after its first record (dotnet/runtime#120419), for `perf
inject`.

    perf.py [--longer] [RUNTIME...]     words of lab.runtimes(); by default, all is judged for those of the recent lines,
                                        and the folder of symfs for the others. --longer: symfs only, for longer

Exit 77 (skipped) where dotnet or perf is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure. Skipped too
where the kernel lets nobody sample.
"""

import contextlib
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter

import judge
import lab
from runtime_names import split_tiers

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
SAMPLE = re.compile(r"\s*([0-9a-f]+) (.*) \(([/\[].*)\)")
RECORD = ["perf", "record", "-k", "mono", "-e", "cpu-clock", "-F", "999"]
HOT = ("Busy.Program::Sieve(int32)", "Busy.Box`1[System.Int64]::Mix(int32)", "Busy.Pick`1[System.__Canon]::Count(int32)",
       "Busy.Program+<>c::<Round>b__")
READY_SECONDS = 60


@contextlib.contextmanager
def running(command, **environment):
    """The busy program, perhaps below perf; gives its own pid. Ends when the block is left, so that perf writes its
    file."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, **environment))
    try:
        line = process.stdout.readline()  # a program that cannot start ends
        if not line.startswith(b"READY "):
            raise lab.LabError(f"{' '.join(command)}: not ready, but {line}")
        yield int(line.split()[1])
        process.stdin.close()
        process.wait(READY_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def samples(data, *options):
    """(ip, symbol, file) of each sample."""
    done = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,dso", *options], capture_output=True, encoding="utf-8", check=True)
    return [(int(one[1], 16), one[2], one[3]) for one in map(SAMPLE.fullmatch, done.stdout.splitlines()) if one]


def write(command, target, path, *options):
    subprocess.run([TOOL, command, target, "-o", path, *options], check=True)


def note(results, label, passed, text=""):
    print(f"  {'ok  ' if passed else 'FAIL'} {label}{': ' if text else ''}{text}", flush=True)
    results.append(passed)


def report(results, label, found, names):
    """Every sample in a method is named as ip2method names it, a tier aside, and the hot methods are there."""
    wrong = [(hex(ip), symbol, names[ip]) for ip, symbol, _ in found if names[ip] and split_tiers(symbol)[0] != names[ip]]
    seen = Counter(symbol for ip, symbol, _ in found if names[ip])
    hot = [sum(count for symbol, count in seen.items() if part in symbol) for part in HOT]
    note(results, label, not wrong and min(hot) > 0 and sum(hot) > len(found) // 2,
         f"{sum(seen.values())} of {len(found)} samples of generated code named, {len(wrong)} otherwise{wrong[:3] or ''}")


def ask(target, found):
    ips = sorted({ip for ip, _, _ in found})
    return dict(zip(ips, (answer["method"] for answer in judge.ask(TOOL, [str(target), "--names", "il"], ips))))


def test_perf_map(work, program, results):
    data = os.path.join(work, "map.data")
    with running(program, DOTNET_EnableWriteXorExecute="0") as pid:
        perf_map = f"/tmp/perf-{pid}.map"  # perf looks nowhere else
        lab.run([*RECORD, "-o", data, "-p", str(pid), "--", "sleep", "2"])
        before = [one for one in samples(data) if one[2] == perf_map]
        note(results, "without a perf map nothing is named",
             len(before) > 100 and {symbol for _, symbol, _ in before} == {"[unknown]"}, f"{len(before)} samples")
        write("perfmap", str(pid), perf_map)
        try:
            found = [one for one in samples(data) if one[2] == perf_map]
            report(results, "perf reads the perf map", found, ask(pid, found))
        finally:
            os.unlink(perf_map)


def check_report(results, data, folder, names):
    """What a person reads: no line of `perf report` for managed code is without a name. Others are the runtime's helpers,
    such as its write barriers, which no method owns; perf shows their offset in the file."""
    done = subprocess.run(["perf", "report", "-i", data, "--symfs", folder, "--stdio", "--sort", "dso,symbol"],
                          capture_output=True, encoding="utf-8", check=True)
    lines = [line for line in done.stdout.splitlines() if "memfd:doublemapper" in line or ".dll" in line]
    helpers = {ip & 0xFFF for ip, name in names.items() if name is None}
    unnamed = [line for line in lines if (found := re.search(r"\[\.\] (?:0x([0-9a-f]+)|\[unknown\])", line)) and
               (not found[1] or int(found[1], 16) & 0xFFF not in helpers)]
    note(results, "perf report has the names of methods", len(lines) > 3 and not unnamed, f"{len(lines)} lines {unnamed[:3] or ''}")


def check_ends(results, folder):
    """perf asks addr2line for "," after each address, and takes what is not known for the end of the answer. With call
    chains, perf waits for ever if something else comes."""
    wrong, paths = [], [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    paths = [path for path in paths if not os.path.islink(path) and not path.endswith("/.cdacq-symfs")]
    for path in paths:
        done = subprocess.run(["addr2line", "-e", path, "-i", "-f"], input=",\n", capture_output=True, text=True, check=False)
        if done.stdout != "??\n??:0\n":
            wrong.append((path, done.stdout))
    note(results, "nothing is at address 0 of a file", bool(paths) and not wrong, f"{len(paths)} files {wrong[:1] or ''}")


def test_symfs(work, program, results, label, least_images, seconds=2, **environment):
    """Compiled code is in a memfd, ReadyToRun code in images that are no ELF files. Nothing is asked of the process."""
    data, folder = os.path.join(work, f"{label}.data"), os.path.join(work, f"{label}.symfs")
    with running(program, **environment) as pid:
        lab.run([*RECORD, "-o", data, "-p", str(pid), "--", "sleep", str(seconds)])
        lab.run([TOOL, "symfs", str(pid), folder, "--names", "il"])
        found = samples(data, "--symfs", folder)
        code = [one for one in found if ".dll" in one[2] or "memfd:doublemapper" in one[2]]
        names = ask(pid, code)
    check_ends(results, folder)
    images = [one for one in code if ".dll" in one[2]]
    unnamed = sum(names[ip] is not None and symbol != names[ip] for ip, symbol, _ in code)
    report(results, f"perf reads the folder of symfs, {label}", code, names)
    note(results, "of the samples in methods 99.9 % have their names", len(code) > 100 and unnamed * 1000 <= len(code),
         f"{len(code)} of {len(found)} samples, {unnamed} otherwise")
    note(results, "ReadyToRun code too", len(images) >= least_images, f"{len(images)} samples")
    check_report(results, data, folder, names)


INSIDE = """
mount -t tmpfs none "$0" && cp -r "$1" "$0/root" && cp -r "$2" "$0/app" || exit 1
shift 2; exec "$0/root/dotnet" "$@"
"""


def test_namespace(work, program, results):
    """A process whose files are only in its own mount namespace, as in a container. Outside, other files have their paths."""
    dotnet, *options, assembly = program
    inside = os.path.join(work, "inside")
    command = [*options, f"{inside}/app/{os.path.basename(assembly)}"]
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("  nothing can be mounted: no process in a namespace", flush=True)
        return
    os.makedirs(inside)
    root = os.path.dirname(os.path.realpath(dotnet))
    for library in glob.glob(f"{root}/**/*.so", recursive=True):
        decoy = f"{inside}/root/{os.path.relpath(library, root)}"
        os.makedirs(os.path.dirname(decoy), exist_ok=True)
        shutil.copy("/bin/true", decoy)
    data, names = os.path.join(work, "namespace.data"), f"{inside}/names"
    with running(["unshare", "-m", "--propagation", "private", "sh", "-c", INSIDE, inside, root,
                  os.path.dirname(assembly), *command]) as pid:
        lab.run([*RECORD, "-o", data, "-p", str(pid), "--", "sleep", "2"])
        done = subprocess.run([TOOL, "symfs", str(pid), f"/proc/{pid}/root{names}", "--names", "il"], capture_output=True, text=True)
        links = subprocess.run(["nsenter", "-m", "-t", str(pid), "find", names, "-name", "*.so*", "-type", "l"],
                               capture_output=True, text=True, check=True).stdout.split()
        wrong = [link for link in links if subprocess.run(["nsenter", "-m", "-t", str(pid), "cmp", link, link.removeprefix(names)],
                                                          capture_output=True, check=False).returncode]
        found = samples(data, "--symfs", names)
        code = [one for one in found if ".dll" in one[2] or "memfd:doublemapper" in one[2]]
        asked = ask(pid, code)
    note(results, "symfs finds every file of a process in a namespace", done.returncode == 0, done.stderr[-300:] if done.returncode else "")
    coreclr = [link for link in links if link.endswith("/libcoreclr.so")]
    note(results, "its links lead to the files of the namespace", len(coreclr) == 1 and not wrong, f"{len(links)} links {wrong[:1] or ''}")
    report(results, "perf reads the folder in the namespace", code, asked)


def test_jitdump(work, program, results):
    """Recorded from its start: that the process maps its jitdump is how perf inject learns of it."""
    data, injected = os.path.join(work, "jit.data"), os.path.join(work, "injected.data")
    with running([*RECORD, "-o", data, "--", *program], DOTNET_PerfMapEnabled="2", DOTNET_PerfMapJitDumpPath=work) as pid:
        time.sleep(2)
        mine = os.path.join(work, "mine.dump")
        write("jitdump", str(pid), mine, "--r2r", "prepared", "--stubs")
        core = os.path.join(work, "core")
        lab.run([TOOL, "snapshot", str(pid), "-o", core])  # to ask when the process has ended
    os.replace(mine, os.path.join(work, f"jit-{pid}.dump"))  # a new file: the runtime may still be writing to its own
    lab.run(["perf", "inject", "--jit", "-i", data, "-o", injected])
    found = [one for one in samples(injected) if re.search(rf"/jitted-{pid}-\d+\.so$", one[2])]
    report(results, "perf inject takes the jitdump", found, ask(core, found))


def test_sampler(work, program, results):
    """The example that samples without perf, in time that is not perf's."""
    out, library = os.path.join(work, "sampler"), os.path.dirname(os.path.abspath(TOOL))
    root = os.path.join(lab.HERE, "..", "..")
    lab.run([os.environ.get("CDACQ_CC", "cc"), "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-I", f"{root}/include", "-o", out,
             f"{root}/examples/sampler.c", "-L", library, f"-Wl,-rpath,{library}", "-lcdacq"])
    with running(program) as pid:
        done = subprocess.run([out, str(pid), "100", "2"], capture_output=True, text=True, check=False)
    folded = Counter()
    for line in done.stdout.splitlines():
        stack, count = line.rsplit(" ", 1)
        folded[stack] += int(count)
    said = re.fullmatch(r"(\d+) samples, (\d+) incomplete, (\d+) lost\n", done.stderr)
    total, incomplete, lost = map(int, said.groups()) if said else (0, 0, 0)
    hot = sum(count for stack, count in folded.items() if "Busy.Program" in stack)
    whole = sum(count for stack, count in folded.items() if "Busy.Program.Main" in stack or "start_thread" in stack)
    note(results, "the sampler of the examples", total > 20 and sum(folded.values()) == total and not lost and incomplete * 20 <= total
         and hot * 10 > total * 9 and whole * 20 >= total * 19,
         f"{total} samples, {incomplete} incomplete, {hot} below the program's own methods, {whole} from the start {done.stderr[-200:] if not said else ''}")


def refuse_without_perf(work):
    if shutil.which("perf") is None:
        raise lab.Skip("perf is not installed")
    trial = subprocess.run([*RECORD, "-o", os.path.join(work, "trial.data"), "--", "true"], capture_output=True, text=True, check=False)
    if trial.returncode != 0:
        print(f"skipped: perf may not sample here: {trial.stderr.strip()}")
        sys.exit(lab.SKIPPED)


def test_runtime(work, runtime, results, longer):
    program = lab.program_command(work, "busy", runtime)
    if longer:
        test_symfs(work, program, results, "default settings", 0, 6)
        test_symfs(work, program, results, "without tiers", 0, 6, DOTNET_TieredCompilation="0")
        return
    test_symfs(work, program, results, "default settings", 0)
    if lab.is_recent(runtime):
        test_symfs(work, program, results, "without tiers", 5, DOTNET_TieredCompilation="0")
        test_namespace(work, program, results)
        test_sampler(work, program, results)
        test_perf_map(work, program, results)
        test_jitdump(work, program, results)


def main():
    results = []
    try:
        with tempfile.TemporaryDirectory(prefix="cdacq-perf-") as work:
            refuse_without_perf(work)
            for runtime in lab.runtimes([word for word in sys.argv[1:] if word != "--longer"]):
                print(f".NET {runtime}", flush=True)
                folder = os.path.join(work, runtime)
                os.mkdir(folder)
                test_runtime(folder, runtime, results, "--longer" in sys.argv)
    except lab.Skip as reason:
        required = os.environ.get("CDACQ_REQUIRE_DOTNET") == "1"
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
