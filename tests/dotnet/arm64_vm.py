#!/usr/bin/env python3
"""Processes of .NET for arm64 on a kernel of arm64, in a virtual machine that qemu-system-aarch64 emulates.

    arm64_vm.py [--no-pac | --pac] [--suite NAME] [--tool CDACQ] [RUNTIME...]    words of lab.runtimes()

A machine with the kernel and the C library of a release of Debian (bookworm) boots for each runtime, with and without signed return addresses
(DOTNET_JitPacEnabled). Programs of the other tests run in it, and leave cores of the kernel, of createdump and of gdb.
With the tool of arm64 (`CDACQ_PACKAGE_MACHINE=arm64 scripts/package tar`), they are also read while they run. What the cores
and the tool in the machine say is compared with what the programs wrote, as in arm64.py: parked stacks and each record
of the jitdump, locks and waits, and the words of eleven deaths.

Folders of this machine have the same paths in the other one, so the paths in its cores are right here. Takes ten minutes
for each boot. Exit 77 (skipped) where the emulator or the packages cannot be had, unless CDACQ_REQUIRE_ARM64=1.
"""

import argparse
import contextlib
import glob
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import arm64
import deaths
import emulated
import lab
import locks
import stack_run
from arm64 import ELEVEN, LINES

EMULATOR = "qemu-system-aarch64"
TOOLS = {EMULATOR: "qemu-system-arm", "mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "debugfs": "e2fsprogs"}
PACKAGES = ",busybox-static,gdb,linux-image-cloud-arm64,libdw1,libcjson1"  # the last two: of the tool
LIBRARIES = {"bookworm": emulated.PACKAGES, "trixie": emulated.PACKAGES.replace("libssl3", "libssl3t64")}
CPU = "max,pauth-impdef=on"  # signs addresses as fast as it can
MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"]
DISK_SIZE, MEMORY, BOOT_SECONDS = 24 << 30, "3G", 3600
DUMPS = {"full": "--full", "heap": "--withheap", "mini": "--normal", "triage": "--triage"}
LOCKS = ["deadlocks", "waits"]
END = "the machine is done"
VARIABLES = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "DOTNET_GCHeapHardLimit": "0x4000000", "HOME": "/out"}  # for small cores

FIRST_PROGRAM = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /new
/bin/busybox mount -t devtmpfs dev /dev
for module in %s; do [ ! -e /modules/$module.ko ] || /bin/busybox insmod /modules/$module.ko; done
until [ -b /dev/vda ]; do /bin/busybox sleep 0.2; done
/bin/busybox mount -t ext4 /dev/vda /new
/bin/busybox mount -t devtmpfs dev /new/dev
exec /bin/busybox switch_root /new /bin/busybox sh /run
""" % " ".join(MODULES)

# Functions of the shell in the machine. A scenario is a folder of /out; standard input of a program never ends.
GUEST_FUNCTIONS = """
/bin/busybox mkdir -p /proc /sys /tmp /dev/shm
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs shm /dev/shm
ip link set lo up
ulimit -c unlimited
ulimit -s 1536
echo core >/proc/sys/kernel/core_pattern
started() { cut -d. -f1 /proc/uptime; }
say() { echo "[$(started)] $*"; }

launch() { # program..., until it writes that it is ready
    mkfifo input
    sleep 100000 >input & holder=$!
    "$@" <input >said 2>words & pid=$!
    echo $pid >pid
    until grep -q ^READY said; do
        kill -0 $pid 2>/dev/null || { say "$1 ended: $(tail -n 3 words)"; return 1; }
        sleep 0.5
    done
    sleep 1
}

settle() { # until the runtime has compiled nothing for a while
    size=0
    until [ $(stat -c %s $1) = $size ]; do
        size=$(stat -c %s $1)
        sleep 15
    done
}

finish() { # kind: the kernel's core
    while kill -ABRT $pid 2>/dev/null; do sleep 2; done # the runtime takes the first signal for its own
    wait $pid
    kill $holder
    rm input
    mv core kernel.core
}

live() { # command...: what the tool says of the process as it runs
    [ -x "$tool" ] || return 0
    name=$1
    shift
    "$tool" "$@" >live.$name 2>live.$name.errors
    echo $? >live.$name.status
}

dumps() { # name=option...
    for dump; do
        "$framework/createdump" ${dump#*=} -f $PWD/${dump%%=*}.core $pid >${dump%%=*}.log 2>&1 || say "createdump ${dump%%=*}: $?"
    done
    gdb -nx --batch -iex 'set debuginfod enabled off' -p $pid -ex "gcore $PWD/gcore.core" -ex detach >gcore.log 2>&1
}
"""


def archive(entries):
    """The bytes of a cpio archive ("newc") of files: names, modes and contents."""
    out = bytearray()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        numbers = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08x" % one for one in numbers) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def modules(folder):
    """The modules of the kernel that are files: (name, bytes)."""
    for name in MODULES:
        for path in glob.glob(os.path.join(folder, "**", name + ".ko*"), recursive=True):
            yield name, lzma.decompress(read(path)) if path.endswith(".xz") else read(path)


class VirtualMachine:
    """A machine that runs one script, with what it needs."""

    def __init__(self, work, suite):
        for tool, package in TOOLS.items():
            if shutil.which(tool) is None:
                raise lab.Skip(f"{tool} is not installed (Debian: {package})")
        self.work = work
        self.root = emulated.libraries(work, "arm64-machine-" + suite, LIBRARIES[suite] + PACKAGES, suite)

    def initial_root(self, path):
        folder, = glob.glob(os.path.join(self.root, "lib", "modules", "*"))
        with open(path, "wb") as file:
            file.write(archive([(name, 0o40755, b"") for name in ("bin", "modules")] + [
                ("bin/busybox", 0o100755, read(os.path.join(self.root, "bin", "busybox"))),
                ("init", 0o100755, FIRST_PROGRAM.encode()),
                *((f"modules/{name}.ko", 0o100644, data) for name, data in modules(folder))]))

    def disk(self, path, script, folders):
        """A file system that has these folders at their paths. Its system folders are links into that of Debian's packages."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            for name in ("proc", "sys", "dev", "new", "out", "root"):
                os.mkdir(os.path.join(folder, name))
            for one in [self.root, *folders]:
                target = folder + os.path.realpath(one)
                if not os.path.exists(target):
                    shutil.copytree(os.path.realpath(one), target, symlinks=True, ignore=shutil.ignore_patterns("obj", "doc", "man", "locale"))
            for name in ("usr", "lib", "etc", "bin", "sbin"):
                os.symlink(os.path.join(os.path.realpath(self.root), name), os.path.join(folder, name))
            with open(os.path.join(folder, "run"), "w", encoding="utf-8") as file:
                file.write(script)
            with open(path, "wb") as file:
                file.truncate(DISK_SIZE)
            lab.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0", "-d", folder, path])

    def boot(self, script, folders, out):
        """Runs a script; then the folder `out` has what it left in /out, and OUT.log what the machine wrote."""
        kernel, = glob.glob(os.path.join(self.root, "boot", "vmlinuz-*"))
        disk, initial = os.path.join(self.work, "disk"), os.path.join(self.work, "initial-root")
        self.initial_root(initial)
        self.disk(disk, script + f"\nsync\necho {END}\nmount -o remount,ro /\npoweroff -f\n", folders)
        command = [EMULATOR, "-M", "virt", "-cpu", CPU, "-smp", "2", "-m", MEMORY, "-accel", "tcg,thread=multi", "-nographic", "-no-reboot",
                   "-nic", "none", "-kernel", kernel, "-initrd", initial, "-append", "console=ttyAMA0 quiet panic=-1",
                   "-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"]
        console = out + ".log"
        with open(console, "wb") as file, contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=BOOT_SECONDS, check=False)
        with open(console, encoding="utf-8", errors="replace") as file:
            said = file.read()
        if END not in said:
            raise lab.LabError("the machine did not end: " + said[-2000:])
        os.makedirs(out)
        lab.run(["debugfs", "-R", f"rdump /out {out}", disk])
        os.remove(disk)


class Run(arm64.Run):
    """The tests of one runtime on one kernel."""

    def __init__(self, work, runtime, signs, suite, tool):
        super().__init__(work, runtime)
        self.label = "signed" if signs else "unsigned"
        self.signs, self.suite, self.tool = signs, suite, tool

    def note(self, label, passed, text):
        super().note(f"{self.label} {label}", passed, text)

    def script(self):
        framework, lines = os.path.realpath(self.machine.framework), [GUEST_FUNCTIONS]
        variables = {**VARIABLES, "DOTNET_ROOT": os.path.realpath(self.machine.root)} | ({"DOTNET_JitPacEnabled": "1"} if self.signs else {})
        lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        lines += [f"framework={framework}", f"tool={self.tool or ''}"]
        stacks, held, dying = (shlex.quote(os.path.realpath(self.machine.host(name))) for name in ("stacks", "locks", "dying"))
        lines.append(f"""
mkdir -p /out/parked
cd /out/parked
export DOTNET_PerfMapEnabled=1 DOTNET_PerfMapStubGranularity=2 DOTNET_PerfMapJitDumpPath=/out/parked
launch {stacks} park /out/parked/told.jsonl
unset DOTNET_PerfMapEnabled DOTNET_PerfMapStubGranularity DOTNET_PerfMapJitDumpPath
settle jit-$pid.dump
cp /proc/$pid/maps .
live stack stack --json --each $pid
live verify verify $pid jit-$pid.dump
live snapshot snapshot --stacks $pid -o snapshot.core
dumps {" ".join(f"{name}={option}" for name, option in DUMPS.items())}
finish
say parked""")
        for way in LOCKS:
            lines.append(f"mkdir /out/{way}\ncd /out/{way}\nlaunch {held} {way} && {{ live report report --json $pid; finish; }}\nsay {way}")
        for way in ELEVEN:
            lines.append(f"mkdir /out/{way}\ncd /out/{way}\n{dying} {way} </dev/null >said 2>words\nmv core kernel.core\nsay {way}")
        return "\n".join(lines)

    def boot(self):
        machine = VirtualMachine(self.work, self.suite)
        folders = [self.machine.root, *(os.path.dirname(os.path.realpath(self.machine.host(name))) for name in ("stacks", "locks", "dying"))]
        self.out = os.path.join(self.work, f"out-{self.runtime}-{self.label}")
        begin = time.monotonic()
        machine.boot(self.script(), folders + ([os.path.dirname(self.tool)] if self.tool else []), self.out)
        self.out = os.path.join(self.out, "out")
        print(f"  {self.runtime} {self.label}: booted and ended in {time.monotonic() - begin:.0f} s", flush=True)

    def file(self, *names):
        return os.path.join(self.out, *names)

    def text(self, *names):
        with open(self.file(*names), encoding="utf-8") as file:
            return file.read()

    def judge(self):
        told, jitdump = self.file("parked", "told.jsonl"), self.file("parked", f"jit-{self.text('parked', 'pid').strip()}.dump")
        for kind in ["kernel", "gcore", *DUMPS]:
            core = self.file("parked", kind + ".core")
            self.judge_stacks(core, told, kind)
            if kind not in ("mini", "triage"):
                self.judge_records(core, jitdump, kind)
        if self.tool:
            self.judge_stacks(self.file("parked", "snapshot.core"), told, "snapshot")
            frames = [json.loads(line) for line in self.text("parked", "live.stack").splitlines()]
            self.judge_frames(frames, self.text("parked", "live.stack.errors"), told, "live")
            self.note("live verify", self.text("parked", "live.verify.status").strip() == "0", self.text("parked", "live.verify").strip()[-200:])
        for way in LOCKS:
            facts = locks.Facts(self.text(way, "said").splitlines()[:-1])
            self.judge_locks(way, facts, locks.ask(self.file(way, "kernel.core")), "kernel")
            if self.tool:
                self.judge_locks(way, facts, json.loads(self.text(way, "live.report")), "live")
        wrong, signatures = [], {}
        for way in ELEVEN:
            problem = deaths.problem_of(way, "kernel", self.file(way, "kernel.core"), emulated.words_of(self.text(way, "words").encode()), self.runtime, signatures)
            wrong += [f"{way} {problem}"] if problem else []
        self.note("deaths", not wrong, f"{len(ELEVEN) - len(wrong)} of {len(ELEVEN)} word for word{''.join('; ' + text for text in wrong)}")

    def judge_locks(self, way, facts, report, kind):
        wrong = locks.compare(facts, report, True)
        self.note(f"locks, {way}, {kind}", len(facts.waits) >= locks.LEAST[way] and not wrong,
                  f"{len(facts.held)} locks, {len(facts.waits)} waits, {len(facts.deadlocks)} deadlocks{''.join('; ' + text for text in wrong)[:2000]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pac", action="store_true", help="signed return addresses only")
    parser.add_argument("--no-pac", action="store_true", help="unsigned return addresses only")
    parser.add_argument("--suite", choices=list(LIBRARIES), default="bookworm", help="the release of Debian")
    parser.add_argument("--tool", metavar="CDACQ", help="that of arm64")
    parser.add_argument("--keep", metavar="DIR", help="where all files stay")
    parser.add_argument("runtimes", nargs="*", metavar="RUNTIME")
    arguments = parser.parse_args()
    tool = os.path.realpath(arguments.tool) if arguments.tool else None
    results, begin = [], time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="cdacq-arm64-") as temporary:
            work = arguments.keep or temporary
            os.makedirs(work, exist_ok=True)
            for runtime in lab.runtimes(arguments.runtimes or [str(line) for line in LINES]):
                for signs in [False, True]:
                    if arguments.pac if not signs else arguments.no_pac:
                        continue
                    run = Run(work, runtime, signs, arguments.suite, tool)
                    run.boot()
                    run.judge()
                    results += run.results
                    if not arguments.keep:
                        shutil.rmtree(os.path.dirname(run.out))
    except lab.Skip as reason:
        required = os.environ.get("CDACQ_REQUIRE_ARM64") == "1"
        print(f"{'FAILED' if required else 'skipped'}: {reason}")
        return 1 if required else lab.SKIPPED
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, in {time.monotonic() - begin:.0f} s")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
