#!/usr/bin/env python3
"""Builds the C# target, runs it, and takes dumps of that one process.

As a program it leaves a directory with cores, jitdump, perf map, maps and the
list of released names. As a module, `running_target()` gives a live process:

    with running_target(work) as target:
        core = target.createdump("full")
"""

import argparse
import contextlib
import ctypes
import fcntl
import functools
import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
READY_SECONDS = 120
SOME_CODE = 1500000  # bytes of a jitdump, of some 4.5 million
AHEAD = ["System.Linq", "System.Text.Json", "System.Collections"]  # compiled with the target
SKIPPED = 77  # the exit code that test runners take for a skip
CREATEDUMP_KINDS = {"full": "--full", "heap": "--withheap", "mini": "--normal", "triage": "--triage"}
SIGNAL_OF_A_CORE = signal.SIGSYS  # the runtime swallows the first SIGSEGV and SIGABRT


class LabError(Exception):
    """Something outside (dotnet, gdb, the kernel) failed."""


class Skip(LabError):
    """This machine can't do what was asked; says why."""


def states_of(pid):
    """The states of its threads, as letters."""
    states = set()
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii", errors="replace") as file:
                states.add(file.read().rpartition(")")[2].split()[0])
        except OSError:
            pass  # the thread has ended
    return states


def run(command, crashes=0, **options):
    """Runs a command quietly; its output is the message if it fails. If a signal ends it, it is run again, up to
    `crashes` times."""
    for _ in range(crashes + 1):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
        if done.returncode >= 0:
            break
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


# ---- Runtimes ----

# The properties of runtimes.props, by name.
VERSIONS = {item.tag: item.text for item in ElementTree.parse(os.path.join(HERE, "runtimes.props")).iter() if not len(item)}
# The newest servicing release of each line, by its number. The newest line is first.
NEWEST = dict(sorted(((int(found[1]), version) for name, version in VERSIONS.items()
                      if (found := re.fullmatch(r"Net(\d+)Runtime", name))), reverse=True))
OLDER = VERSIONS["OlderRuntimes"].split(";")


def runtimes(asked=(), others=(), of_all_lines=True):
    """
    The runtimes to test: those that are asked for, else those in CDACQ_RUNTIMES, else the newest of each line, or of each
    recent line. A word is "installed", a version of a runtime pack, a line ("10" or "10.0", which means its newest
    version), or "older", for all older versions; or it is one of `others`, words that only this test knows.
    """
    chosen = []
    for word in asked or os.environ.get("CDACQ_RUNTIMES", "").split():
        line = re.fullmatch(r"(\d+)(\.0)?", word)
        if word == "older":
            chosen += OLDER
        elif line and int(line[1]) in NEWEST:
            chosen.append(NEWEST[int(line[1])])
        elif word == "installed" or word in others or re.fullmatch(r"\d+\.\d+\.\d.*", word):
            chosen.append(word)
        elif asked:
            raise LabError(f"there is no runtime '{word}'")  # in the environment, it may be a word of another test
    return chosen or [*(version for version in NEWEST.values() if of_all_lines or is_recent(version)), *others]


def line_of(runtime):
    """The major version of a runtime."""
    return int((installed_framework()[1] if runtime == "installed" else runtime).split(".")[0])


def is_recent(runtime):
    """Whether it is of one of the two newest lines. Some tests ask the others for less."""
    return line_of(runtime) in sorted(NEWEST)[-2:]


def is_newest(runtime):
    return line_of(runtime) == max(NEWEST)


def framework_for(runtime):
    """The framework to compile a program for that runs on this version."""
    return f"net{line_of(runtime)}.0"


@functools.cache
def installed_framework():
    """The folder of the newest installed runtime's assemblies, and its version."""
    if shutil.which("dotnet") is None:
        raise Skip("dotnet is not installed")
    found = re.findall(r"^Microsoft\.NETCore\.App (\S+) \[(.*)\]$", run(["dotnet", "--list-runtimes"]), re.MULTILINE)
    if not found:
        raise Skip("no runtime is installed")
    version, folder = found[-1]
    return os.path.join(folder, version), version


def framework_of(work, runtime):
    """The folder of a runtime's assemblies, and its version."""
    if runtime == "installed":
        return installed_framework()
    return os.path.join(os.path.dirname(private_dotnet(work, runtime)), "shared", "Microsoft.NETCore.App", runtime), runtime


# ---- Programs, and roots of runtimes ----

def shared(work, name, make, cache="CDACQ_DOTNET_CACHE"):
    """
    The folder NAME in `work`, or, if the variable `cache` names a folder, in there, where other tests use it, too. If it is
    not there, `make` is called with the path of a new folder to fill, which then gets the name.
    """
    if shutil.which("dotnet") is None:
        raise Skip("dotnet is not installed")
    root = os.environ.get(cache) or os.environ.get("CDACQ_DOTNET_CACHE") or work
    os.makedirs(root, exist_ok=True)
    path = os.path.join(root, name)
    with open(os.path.join(root, f".{name}.lock"), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may be making it
        if not os.path.isdir(path):
            with tempfile.TemporaryDirectory(dir=root, prefix=".new-") as folder:
                made = os.path.join(folder, name)
                os.mkdir(made)
                make(made)
                os.rename(made, path)
    return path


def dotnet_tool(work, name):
    """The folder of one of the .NET diagnostic tools, which have one version: dotnet-dump, dotnet-gcdump."""
    version = VERSIONS["DotnetDump"]
    return shared(work, f"{name}-{version}",
                  lambda folder: run(["dotnet", "tool", "install", "--tool-path", folder, name, "--version", version]))


def _digest(folder, *words):
    """Of the sources of a program, and of how it is built."""
    digest = hashlib.sha256(repr(words).encode())
    for path in sorted([*glob.glob(os.path.join(HERE, "*.props")), *glob.glob(os.path.join(folder, "**"), recursive=True)]):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(os.path.basename(path).encode() + b"\0" + file.read())
    return digest.hexdigest()[:8]


def build(work, project, runtime="installed", configuration="Release", command="build", arguments=(), **properties):
    """Builds a C# project of this folder for a runtime, outside the source tree, so that a checkout stays clean. Returns
    the folder of the program."""
    source = os.path.join(HERE, project)
    properties = {"DemoFramework": framework_for(runtime), **properties}
    digest = _digest(source, configuration, command, arguments, sorted(properties.items()))
    name = f"app-{os.path.basename(project)}-{properties['DemoFramework']}-{configuration}-{digest}"

    def make(folder):
        objects = os.path.join(os.path.dirname(os.path.dirname(folder)), name + "-obj")  # it stays, as PDBs name it
        run(["dotnet", command, source, "-c", configuration, "-o", folder, "--nologo", "-v", "q", *arguments,
             f"-p:BaseIntermediateOutputPath={objects}/", f"-p:BaseOutputPath={objects}-bin/",
             *(f"-p:{key}={value}" for key, value in properties.items())])
    return shared(work, name, make)


def program_of(folder):
    """The assembly to run of a program that was built."""
    configuration, = glob.glob(os.path.join(folder, "*.runtimeconfig.json"))
    return configuration.removesuffix(".runtimeconfig.json") + ".dll"


def dotnet_command(work, runtime):
    """The start of a command line that runs a program on a runtime."""
    return ["dotnet"] if runtime == "installed" else [private_dotnet(work, runtime), "exec", "--fx-version", runtime]


def program_command(work, project, runtime="installed", *options, **properties):
    """The command line of a program, which is built for the runtime."""
    return [*dotnet_command(work, runtime), program_of(build(work, project, runtime, *options, **properties))]


def own_copy(work, path):
    """A file's path in `work`: its folder is copied, unless it is there, so that it can be moved or changed."""
    folder = os.path.dirname(path)
    own = os.path.join(work, os.path.basename(folder))
    if not os.path.isdir(own):
        shutil.copytree(folder, own)
    return os.path.join(own, os.path.basename(path))


def publish_single_file(work, runtime="installed"):
    """The target as one executable that holds the runtime, too."""
    version = {} if runtime == "installed" else {"RuntimeFrameworkVersion": runtime}
    out = build(work, "target", runtime, command="publish", arguments=("-r", "linux-x64", "--self-contained"),
                PublishSingleFile="true", UseAppHost="true", EnableCompressionInSingleFile="false", **version)
    program = own_copy(work, os.path.join(out, "Demo"))
    assembly, = glob.glob(f"{out}-obj/Release/*/linux-x64/Demo.dll")
    shutil.copy(assembly, os.path.dirname(program))  # which the target loads a second time
    return program


RESTORE_PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net{sdk}</TargetFramework>
    <NuGetAudit>false</NuGetAudit>
  </PropertyGroup>
  <ItemGroup>
    <PackageDownload Include="{package}" Version="[{version}]" />
  </ItemGroup>
</Project>
"""


def private_dotnet(work, version):
    """A dotnet root of its own that has just this runtime, from its NuGet pack. Returns its `dotnet`."""
    def make(root):
        framework = os.path.join(root, "shared", "Microsoft.NETCore.App", version)
        installed = os.path.dirname(os.path.realpath(shutil.which("dotnet")))
        shutil.copytree(os.path.join(installed, "host"), os.path.join(root, "host"))
        shutil.copy(os.path.join(installed, "dotnet"), root)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(root)) as folder:
            pack = os.path.join(restore_pack(folder, "Microsoft.NETCore.App.Runtime.linux-x64", version), "runtimes", "linux-x64")
            for part in [os.path.join(pack, "native"), *glob.glob(os.path.join(pack, "lib", "net*"))]:
                shutil.copytree(part, framework, dirs_exist_ok=True)
        os.chmod(os.path.join(framework, "createdump"), 0o755)
    return os.path.join(shared(work, "dotnet-" + version, make), "dotnet")


def restore_pack(folder, package, version):
    """Only downloads the package; a project that needs nothing else is the simplest client."""
    sdk = ".".join(run(["dotnet", "--version"]).split(".")[:2])
    with open(os.path.join(folder, "restore.csproj"), "w", encoding="utf-8") as file:
        file.write(RESTORE_PROJECT.format(sdk=sdk, package=package, version=version))
    run(["dotnet", "restore", folder, "--packages", os.path.join(folder, "packages")])
    return os.path.join(folder, "packages", package.lower(), version)


class Target:
    """A running, parked target process and its files."""

    def __init__(self, work, process, log):
        self.work = work
        self.process = process
        self.pid = process.pid
        self.log = log
        self.released = os.path.join(work, "released.txt")

    @property
    def jitdump(self):
        return os.path.join(self.work, f"jit-{self.pid}.dump")

    @property
    def perfmap(self):
        return os.path.join(self.work, f"perf-{self.pid}.map")

    def runtime_directory(self):
        """The folder of the libcoreclr in use, which also has createdump."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as maps:
            found = re.search(r"(/\S.*)/libcoreclr\.so$", maps.read(), re.MULTILINE)
        if found is None:
            raise LabError(f"process {self.pid} has no libcoreclr.so mapped")
        return found[1]

    def save_records(self):
        """What goes with the cores: the process may compile more, and /proc ends with it."""
        shutil.copyfile(self.jitdump, os.path.join(self.work, "jitdump"))
        shutil.copyfile(self.perfmap, os.path.join(self.work, "perf.map"))
        shutil.copyfile(f"/proc/{self.pid}/maps", os.path.join(self.work, "maps"))

    def createdump(self, kind, path=None):
        """A core by the runtime's own tool: full, heap, mini or triage."""
        path = path or os.path.join(self.work, f"createdump-{kind}.core")
        tool = os.path.join(self.runtime_directory(), "createdump")
        # That of .NET 9 once got a SIGSEGV in a process whose threads throw all the time.
        run([tool, CREATEDUMP_KINDS[kind], "-f", path, str(self.pid)], crashes=2)
        return path

    def gcore(self, path=None):
        """A core by gdb, which obeys coredump_filter. Never ask it for all mappings:
        the garbage collector's address reservation alone has hundreds of GB."""
        if shutil.which("gcore") is None:
            raise Skip("gcore is not installed")
        path = path or os.path.join(self.work, "gcore.core")
        run(["gcore", "-o", path, str(self.pid)])
        os.rename(f"{path}.{self.pid}", path)
        return path

    def kernel_core(self, path=None):
        """Ends the process by a signal to its first thread, with which the core then begins. It is in its directory."""
        refuse_piped_cores()
        path = path or os.path.join(self.work, "kernel.core")
        if ctypes.CDLL(None).tgkill(self.pid, self.pid, SIGNAL_OF_A_CORE) != 0:
            raise LabError(f"process {self.pid} cannot be ended by signal {SIGNAL_OF_A_CORE}")
        self.process.wait(timeout=60)
        written = glob.glob(os.path.join(self.work, "core*"))
        if not written:
            raise LabError(f"signal {SIGNAL_OF_A_CORE} left no core in {self.work}")
        os.rename(written[0], path)
        return path

    def core(self, kind):
        """A core by its name on the command line."""
        return self.createdump(kind) if kind in CREATEDUMP_KINDS else {"gcore": self.gcore, "kernel": self.kernel_core}[kind]()

    def read_log(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def stop(self):
        """Ends the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()


def refuse_piped_cores():
    """Only a plain relative pattern puts the core where we can find it."""
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
        pattern = file.read().strip()
    if not re.fullmatch(r"core[%.\w]*", pattern):
        raise Skip(f"kernel.core_pattern is '{pattern}': no kernel core")


def allow_cores():
    """In the child: a kernel core of any size."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def crossgen2(work, runtime="installed"):
    """A function that runs the ahead-of-time compiler of the runtime's version, with its assemblies to refer to."""
    framework, version = framework_of(work, runtime)

    def make(folder):
        with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as restored:
            pack = restore_pack(restored, "Microsoft.NETCore.App.Crossgen2.linux-x64", version)
            shutil.copytree(os.path.join(pack, "tools"), folder, dirs_exist_ok=True)
        os.chmod(os.path.join(folder, "crossgen2"), 0o755)
    tool = os.path.join(shared(work, "crossgen2-" + version, make), "crossgen2")

    def compile_(*arguments, system="linux", architecture="x64"):
        run([tool, *arguments, "-r", os.path.join(framework, "*.dll"), "--targetos", system, "--targetarch", architecture, "-O"])

    return compile_


def compile_ahead(work, app, runtime="installed", *, composite=False):
    """Compiles the target, whose folder is `app`, and some of the framework ahead of time: split into hot and cold code, or
    composite."""
    framework, _ = framework_of(work, runtime)
    compile_ = crossgen2(work, runtime)
    out = os.path.join(work, "ahead")
    os.makedirs(out)
    inputs = [os.path.join(app, "Demo.dll")] + [os.path.join(framework, name + ".dll") for name in AHEAD]
    if composite:
        compile_("--composite", *inputs, "-o", os.path.join(out, "demo.r2r.dll"))
    else:
        for path in inputs:
            compile_(path, "-o", os.path.join(out, os.path.basename(path)), "--hot-cold-splitting")
    for name in os.listdir(out):
        shutil.copy(os.path.join(out, name), app)


def start_target(work, runtime="installed", keep_alive=False, prepare=None, granularity="2", meanwhile=None, single_file=False):
    """Builds and starts the target; returns when it promised that nothing is compiled any more. Its files, and those of a
    runtime that is not installed, are in `work`. `prepare` is called with the folder of the program before it starts,
    `meanwhile` with the target while it still compiles. `granularity` of stubs, as the runtime's setting has it."""
    work = os.path.abspath(work)
    os.makedirs(work, exist_ok=True)
    command = [publish_single_file(work, runtime)] if single_file else program_command(work, "target", runtime)
    command = [own_copy(work, word) if os.path.isabs(word) else word for word in command]
    if prepare:
        prepare(os.path.dirname(command[-1]))
    environment = dict(
        os.environ,
        CDACQ_TARGET_RELEASED=os.path.join(work, "released.txt"),
        DOTNET_PerfMapEnabled="1",
        # 2 is individual stubs. With the default of 10.0, 0, the runtime gives up
        # on the jitdump after two records.
        DOTNET_PerfMapStubGranularity=granularity,
        DOTNET_PerfMapJitDumpPath=work,
    )
    log = os.path.join(work, "target.log")
    with open(log, "w", encoding="utf-8") as output:
        with _never_ending_input(work) if keep_alive else contextlib.nullcontext(subprocess.PIPE) as standard_input:
            process = subprocess.Popen(command, cwd=work, env=environment,
                                       stdin=standard_input, stdout=output, stderr=output,
                                       start_new_session=True, preexec_fn=allow_cores)
    target = Target(work, process, log)
    try:
        if meanwhile:
            _wait_for_code(target)
            meanwhile(target)
        wait_for_ready(target)
    except BaseException:
        target.stop()
        raise
    return target


def _never_ending_input(work):
    """A pipe whose writing end the target holds itself, so that it outlives us."""
    path = os.path.join(work, "stdin")
    if not os.path.exists(path):
        os.mkfifo(path)
    return open(path, "r+b", buffering=0)


def _wait_for_code(target):
    """Until a good part of the target's code is compiled, but not all."""
    deadline = time.monotonic() + READY_SECONDS
    while not os.path.exists(target.jitdump) or os.path.getsize(target.jitdump) < SOME_CODE:
        if time.monotonic() > deadline or target.process.poll() is not None:
            raise LabError("the target compiled too little")
        time.sleep(0.01)


def wait_for_ready(target, seconds=READY_SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        text = target.read_log()
        if f"READY {target.pid}\n" in text:
            return
        if target.process.poll() is not None:
            break
        time.sleep(0.1)
    raise LabError(f"the target did not get ready:\n{text}")


@contextlib.contextmanager
def running_target(work, **options):
    """A parked target that is ended when the block is left."""
    target = start_target(work, **options)
    try:
        yield target
    finally:
        target.stop()


@contextlib.contextmanager
def running_program(command, work, environment=None, seconds=READY_SECONDS):
    """A program that is ready within so many seconds, and is ended when the block is left. Its files are in `work`."""
    log = os.path.join(work, "target.log")
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=work, env=os.environ | (environment or {}), stdin=subprocess.PIPE, stdout=output,
                                   stderr=output, start_new_session=True, preexec_fn=allow_cores)
    target = Target(work, process, log)
    try:
        wait_for_ready(target, seconds)
        yield target
    except Exception:
        if process.poll() is not None:  # by itself, or for a kernel core: what it wrote says why
            print(f"the program has ended ({process.returncode}); it wrote:\n{target.read_log()[-4000:]}", file=sys.stderr)
        raise
    finally:
        target.stop()


class Results:
    """What a script has judged."""

    def __init__(self):
        self.all = []

    def note(self, label, passed, text=""):
        print(f"  {'ok  ' if passed else 'FAIL'} {label}{': ' if text else ''}{text}", flush=True)
        self.all.append(bool(passed))

    def exit_code(self):
        print(f"{sum(self.all)} passed, {len(self.all) - sum(self.all)} failed")
        return 0 if all(self.all) else 1


def exit_with(main):
    """Ends a script with what its main() returns, or says why it was skipped: that fails where it must run."""
    try:
        sys.exit(main())
    except Skip as reason:
        print(f"{os.path.basename(sys.argv[0])}: skipped: {reason}", file=sys.stderr)
        sys.exit(1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else SKIPPED)


def read_json_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", metavar="DIR", help="where everything goes (default: a new temporary directory)")
    parser.add_argument("--runtime", metavar="VERSION", default="installed",
                        help="a version of the runtime pack, or a line, for instance 8.0 (default: the installed one)")
    parser.add_argument("--cores", default="full,gcore", metavar="LIST",
                        help="of full, heap, mini, triage, gcore; kernel comes last and ends the process")
    parser.add_argument("--keep-alive", action="store_true", help="leave the process running and print its pid")
    arguments = parser.parse_args()
    arguments.cores = [core for core in arguments.cores.split(",") if core]
    unknown = set(arguments.cores) - {*CREATEDUMP_KINDS, "gcore", "kernel"}
    if unknown:
        parser.error(f"no such core: {', '.join(sorted(unknown))}")
    if arguments.keep_alive and "kernel" in arguments.cores:
        parser.error("a kernel core ends the process: not with --keep-alive")
    return arguments


def take(target, kind):
    """One core by its name on the command line; a skip is told, not fatal."""
    try:
        path = target.core(kind)
    except Skip as reason:
        print(f"skipped {kind}: {reason}")
        return
    print(f"{kind} {path}", flush=True)


def check_quiet(target):
    """The target promised to compile nothing more; records of later code would be in no core."""
    if os.path.getsize(target.jitdump) != os.path.getsize(os.path.join(target.work, "jitdump")):
        print("note: the process compiled code while the cores were taken", file=sys.stderr)


def main():
    arguments = parse_arguments()
    work = arguments.work or tempfile.mkdtemp(prefix="cdacq-lab-")
    target = start_target(work, *runtimes([arguments.runtime]), keep_alive=arguments.keep_alive)
    try:
        target.save_records()
        for kind in sorted(arguments.cores, key=lambda core: core == "kernel"):
            take(target, kind)
        check_quiet(target)
    except BaseException:
        target.stop()
        raise
    print("records", os.path.join(work, "jitdump"), target.released)
    if arguments.keep_alive:
        print("pid", target.pid)
    else:
        target.stop()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Skip as reason:
        print(f"lab.py: skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    except LabError as error:
        sys.exit(f"lab.py: {error}")
