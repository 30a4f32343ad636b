#!/usr/bin/env python3
"""Programs whose files were replaced while they ran, as a package manager or a deployment does it, and programs in
/dev/shm: names and source lines are those of before.

    renewed.py [RUNTIME...]    words of lab.runtimes()

Runs the program `locks` from a root of its own, renames a copy over each of its files and over those of the runtime,
and asks the process and a core of the kernel, which it bundles. Then other files take the place of the runtime's. Exit
77 (skipped) if dotnet is missing; with CDACQ_REQUIRE_DOTNET=1, that is a failure.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import lab

TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
SHARED_MEMORY = "/dev/shm"
WAY = "waits"
LEAST_LINES = 10
LEAST_THREADS = 20


def ask(*arguments):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def named_frames(target, *options):
    """The managed frames with a source line, of all threads."""
    _, output, _ = ask("stack", "--json", *options, str(target))
    frames = map(json.loads, output.splitlines())
    return sorted((frame["tid"], frame["method"], frame["file"], frame["line"]) for frame in frames if frame.get("line"))


def files_below(*folders):
    return [os.path.join(folder, name) for top in folders for folder, _, names in os.walk(top) for name in names]


def renew(path, source=None):
    """What a package manager does: the new file is written beside the old one, and takes its name."""
    shutil.copy2(source or path, path + ".new")
    os.rename(path + ".new", path)


@contextlib.contextmanager
def running(work, root, app, runtime):
    """The program in `app`, on the runtime in `root`. Its core is in `work`."""
    command = [os.path.join(root, "dotnet"), "exec", "--fx-version", runtime, lab.program_of(app), WAY]
    process = subprocess.Popen(command, cwd=work, stdout=subprocess.PIPE, text=True, preexec_fn=lab.allow_cores)
    try:
        if not any(line.startswith("READY ") for line in process.stdout):
            raise lab.LabError(f"{runtime}: the program ended")
        yield lab.Target(work, process, None)
    finally:
        process.kill()
        process.wait()


def say(text, wrong):
    print(f"  {'FAIL' if wrong else 'ok  '} {text}{': ' if wrong else ''}{'; '.join(wrong)[:2000]}", flush=True)
    return not wrong


def compare(before, after):
    wrong = [f"lost: {frame}" for frame in before if frame not in after]
    return wrong if len(before) >= LEAST_LINES else [f"{len(before)} frames with lines"]


def build_id(path):
    notes = lab.run(["readelf", "-n", path])
    return notes.partition("Build ID: ")[2].split()[0]


def check_native(core, known, why):
    """Without the runtime's file, the threads and their native frames are there, and a line says what is missing."""
    code, text, said = ask("report", core)
    lines = [line for line in said.splitlines() if known in line]
    wrong = [] if code == 1 and len(lines) == 1 and why in said and "\nTID " in text else [f"report: {code} {said}"]
    code, stacks, _ = ask("stack", "--json", core)
    frames = [json.loads(line) for line in stacks.splitlines()]
    threads = {frame["tid"] for frame in frames}
    named = {frame["tid"] for frame in frames if (frame["native"] or {}).get("module")}
    if code != 1 or len(threads) < LEAST_THREADS or named != threads:
        wrong.append(f"stack: {code}, {len(threads)} threads, {len(named)} with native frames")
    return wrong


def test_other_files(core, root, old, bundle, before, runtime):
    """The runtime's file is gone, or is another one. The old one may be elsewhere, such as in a bundle."""
    library = os.path.join("shared", "Microsoft.NETCore.App", runtime, "libcoreclr.so")
    path, known = os.path.join(root, library), build_id(os.path.join(old, library))
    os.remove(path)
    wrong = check_native(core, known, "deleted or replaced")
    shutil.copy2(os.path.join(root, "dotnet"), path)
    wrong += check_native(core, known, "")
    for folder in (old, bundle):
        wrong += compare(before, named_frames(core, "--module-path", folder))
    return say(f"{runtime}: another file in place of the runtime's", wrong)


def test_renewed(work, runtime):
    root, app, old = (os.path.join(work, name) for name in ("root", "app", "old"))
    shutil.copytree(os.path.dirname(lab.private_dotnet(work, runtime)), root)
    shutil.copytree(lab.build(work, "locks", runtime), app)
    shutil.copytree(root, old)
    with running(work, root, app, runtime) as target:
        before = named_frames(target.pid)
        for path in files_below(root, app):
            renew(path)
        with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
            wrong = [] if "libcoreclr.so (deleted)" in maps.read() else ["the files were not renewed"]
        wrong += compare(before, named_frames(target.pid))
        processes = [json.loads(line) for line in ask("ps", "--json")[1].splitlines()]
        paths = [row["runtime_path"] for row in processes if row["pid"] == target.pid]
        wrong += [] if paths == [os.path.join(root, "shared", "Microsoft.NETCore.App", runtime, "libcoreclr.so")] else [f"ps: {paths}"]
        good = say(f"{runtime} live: {len(before)} frames with lines", wrong)
        core = target.kernel_core()
    wrong = compare(before, named_frames(core))
    code, _, said = ask("bundle", core, os.path.join(work, "bundle"))
    wrong += [] if code == 0 and "missing: 0 files" in said else [f"bundle: {code} {said}"]
    good &= say(f"{runtime} core", wrong)
    return good & test_other_files(core, root, old, os.path.join(work, "bundle"), before, runtime)


def test_folder(work, runtime, above, take):
    """A program in an odd folder below `above`."""
    with tempfile.TemporaryDirectory(prefix="cdacq-renewed-\n", dir=above) as folder:
        app = os.path.join(folder, "app")
        shutil.copytree(lab.build(work, "locks", runtime), app)
        with running(work, os.path.dirname(lab.private_dotnet(work, runtime)), app, runtime) as target:
            before = named_frames(target.pid)
            core = take(target)
        wrong = compare(before, named_frames(core))
        _, output, _ = ask("info", "--json", core)
        wrong += [] if json.dumps(app)[1:-1].replace("\\n", "\\\\x0a") in output else ["info does not list it"]
        os.remove(core)
    return say(f"{runtime} in {above}: {len(before)} frames with lines", wrong)


def test_folders(work, runtime):
    """A path below /dev may be that of a file. Newlines in paths are escaped, which gdb copies into its cores."""
    good = test_folder(work, runtime, work, lab.Target.gcore) if shutil.which("gcore") else True
    if os.access(SHARED_MEMORY, os.W_OK):
        good &= test_folder(work, runtime, SHARED_MEMORY, lab.Target.kernel_core)
    else:
        print(f"  skipped: {SHARED_MEMORY} cannot be written to")
    return good


def test_runtime(runtime):
    work = tempfile.mkdtemp(prefix="cdacq-renewed-")
    try:
        return test_renewed(work, runtime) & (not lab.is_newest(runtime) or test_folders(work, runtime))
    finally:
        shutil.rmtree(work)


def main():
    try:
        lab.refuse_piped_cores()
        return 0 if all([test_runtime(runtime) for runtime in lab.runtimes(sys.argv[1:])]) else 1
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED


if __name__ == "__main__":
    sys.exit(main())
