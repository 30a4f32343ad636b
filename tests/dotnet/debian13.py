#!/usr/bin/env python3
"""gdb 16 and lldb 19 of Debian 13 with the package: test_gdb.py and debugger_run.py with these debuggers.

    debian13.py [RUNTIME...]    words of lab.runtimes()

Makes a root of Debian 13 in the folder that CDACQ_DOTNET_CACHE names (419 MB, two minutes), with mmdebstrap, unless it is
there. The debuggers run outside of the root, with its libraries, so that they see files and processes as the others do.
Exit 77 (skipped) without mmdebstrap or packages.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
PROGRAMS = {
    "gdb": ("", "usr/bin/gdb", "--data-directory={root}/usr/share/gdb"),
    "lldb": ("PYTHONPATH={root}/usr/lib/llvm-19/lib/python3/dist-packages", "usr/lib/llvm-19/bin/lldb", ""),
}


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def make_root(root):
    if (root / LOADER).exists():
        return
    if not shutil.which("mmdebstrap"):
        skip("mmdebstrap is not installed")
    part = root.with_name(root.name + ".part")  # a run that was stopped leaves no root that looks complete
    shutil.rmtree(part, ignore_errors=True)
    done = subprocess.run(["mmdebstrap", "--variant=essential", "--mode=root", "--include=gdb,lldb-19,python3-lldb-19",
                           "trixie", str(part)], capture_output=True, text=True)
    if done.returncode:
        skip("no packages of Debian 13: " + done.stderr[-300:])
    part.rename(root)


def make_programs(root, folder):
    for name, (environment, program, option) in PROGRAMS.items():
        path = folder / name
        path.write_text(f"""#!/bin/sh
PYTHONHOME={root}/usr {environment.format(root=root)} exec {root}/{LOADER} \\
    --library-path {root}/{LIBRARIES}:{root}/usr/lib/llvm-19/lib {root}/{program} {option.format(root=root)} "$@"
""")
        path.chmod(0o755)
        print(subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0], flush=True)


def main():
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(os.environ.get("CDACQ_DOTNET_CACHE", work), "debian13").resolve()
        programs = pathlib.Path(work, "programs")
        programs.mkdir()
        make_root(root)
        make_programs(root, programs)
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        status = [subprocess.run([sys.executable, "-B", *command], env=environment).returncode for command in (
            [TESTS / "python/test_gdb.py"], [TESTS / "dotnet/debugger_run.py", *sys.argv[1:]])]
    sys.exit(max(status))


if __name__ == "__main__":
    main()
