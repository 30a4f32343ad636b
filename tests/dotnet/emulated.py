#!/usr/bin/env python3
"""Processes of .NET for arm64 on another machine: qemu-user runs them, and writes their cores.

The C library of arm64 is that of Debian's packages, the runtimes are those of the NuGet packs, and the programs are
those of the other tests. A core of qemu-user has no NT_FILE and leaves out what files have. Guest addresses are those
of the emulator, so the NT_FILE of the kernel's core of the emulator, which has no memory, says which files are where.
"""

import glob
import os
import re
import shutil
import struct
import subprocess
import tempfile

import lab

EMULATOR = "qemu-aarch64-static"
CACHE = "CDACQ_ARM64_CACHE"  # names a folder in which the libraries and the runtimes are kept
PACKAGES = "libc6,libstdc++6,libgcc-s1,zlib1g,libssl3"
HOST_MARK = b"c3ab8ff13720e8ad9047dd39466b3c8974e592c2fa383d4a3960714caef0c4f2"  # of a program host without a program
PLACE_SIZE = 1024  # of the path in a program host
PT_LOAD, PT_NOTE, NT_FILE = 1, 4, 0x46494C45
SAID_BY_EMULATOR = re.compile(rb"^(qemu: .*|Aborted.*|.*\(core dumped\).*)\n", re.M)


def libraries(work, name="arm64-libraries", packages=PACKAGES, suite="bookworm"):
    """A folder with packages of arm64, which are not set up."""
    if shutil.which("mmdebstrap") is None:
        raise lab.Skip("mmdebstrap is not installed")

    def make(folder):
        mirror = subprocess.run([os.path.join(lab.HERE, "../../scripts/mirror")], capture_output=True, text=True, check=True).stdout.strip()
        try:
            lab.run(["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", "--include=" + packages, suite,
                     folder, f"deb {mirror} {suite} main"])
        except lab.LabError as error:
            raise lab.Skip(f"Debian's packages for arm64 cannot be had: {str(error).splitlines()[-1]}") from error
        for unused in ("dev", "tmp"):  # those of this machine are used
            shutil.rmtree(os.path.join(folder, unused), ignore_errors=True)
        for name in ("bin", "lib", "sbin"):  # links of a package that is not needed, since Debian 13
            if not os.path.exists(os.path.join(folder, name)):
                os.symlink(os.path.join("usr", name), os.path.join(folder, name))
    return lab.shared(work, name, make, CACHE)


def dotnet_root(work, version):
    """A dotnet root of arm64 that has just this runtime, and a program host."""
    def make(root):
        framework = os.path.join(root, "shared", "Microsoft.NETCore.App", version)
        fxr = os.path.join(root, "host", "fxr", version)
        os.makedirs(fxr)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(root)) as folder:
            try:
                runtime = lab.restore_pack(folder, "Microsoft.NETCore.App.Runtime.linux-arm64", version)
                host = lab.restore_pack(folder, "Microsoft.NETCore.App.Host.linux-arm64", version)
            except lab.LabError as error:
                raise lab.Skip(f"the runtime pack {version} for arm64 cannot be had: {str(error).splitlines()[-1]}") from error
            pack = os.path.join(runtime, "runtimes", "linux-arm64")
            for part in [os.path.join(pack, "native"), *glob.glob(os.path.join(pack, "lib", "net*"))]:
                shutil.copytree(part, framework, dirs_exist_ok=True)
            shutil.copy(os.path.join(framework, "libhostfxr.so"), fxr)
            shutil.copy(os.path.join(host, "runtimes", "linux-arm64", "native", "apphost"), root)
    return lab.shared(work, "arm64-dotnet-" + version, make, CACHE)


def write_host(template, program, path):
    """A program host that starts an assembly in its folder."""
    with open(template, "rb") as file:
        data = bytearray(file.read())
    at = data.find(HOST_MARK)
    if at < 0:
        raise lab.LabError(f"{template} is no program host")
    data[at:at + PLACE_SIZE] = program.encode().ljust(PLACE_SIZE, b"\0")
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755)


class Machine:
    """One runtime of arm64 and what starts programs with it."""

    def __init__(self, work, version):
        self.work, self.version = work, version
        self.root = dotnet_root(work, version)
        self.framework = os.path.join(self.root, "shared", "Microsoft.NETCore.App", version)

    def host(self, project, *options, **properties):
        """The program host of a program of the tests."""
        program = lab.program_of(lab.build(self.work, project, self.version, *options, **properties))
        host = program.removesuffix(".dll") + ".arm64-" + self.version
        if not os.path.exists(host):
            write_host(os.path.join(self.root, "apphost"), os.path.basename(program), host)
        return host

    def command(self, project, *options, **properties):
        """The command line that runs it."""
        if shutil.which(EMULATOR) is None:
            raise lab.Skip(f"{EMULATOR} is not installed")
        return [EMULATOR, "-L", libraries(self.work), self.host(project, *options, **properties)]

    def start(self, command, work, **environment):
        """Starts a program that may leave a core, with its streams as pipes."""
        def prepare():
            lab.allow_cores()
            with open("/proc/self/coredump_filter", "w", encoding="ascii") as file:
                file.write("0")  # the memory of the emulator is of no use
        variables = {"PATH": os.environ["PATH"], "HOME": work, "DOTNET_ROOT": self.root, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
                     "DOTNET_GCHeapHardLimit": "0x10000000", **environment}
        return subprocess.Popen(command, cwd=work, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                start_new_session=True, preexec_fn=prepare)


def words_of(text):
    """What the program wrote to standard error, without the words of the emulator."""
    return SAID_BY_EMULATOR.sub(b"", text)


# ---- Cores ----

def _segments(file):
    """The program headers of a core, each with its place in the file."""
    file.seek(0)
    header = file.read(64)
    (offset,), (size, count) = struct.unpack_from("<Q", header, 32), struct.unpack_from("<HH", header, 54)
    for index in range(count):
        file.seek(offset + index * size)
        yield offset + index * size, struct.unpack("<IIQQQQQQ", file.read(size))


def _notes(file):
    for _, (kind, _, offset, _, _, size, _, _) in _segments(file):
        if kind != PT_NOTE:
            continue
        file.seek(offset)
        data, at = file.read(size), 0
        while at + 12 <= len(data):
            name, length, type_ = struct.unpack_from("<III", data, at)
            begin = at + 12 + (name + 3 & ~3)
            yield type_, data[begin:begin + length]
            at = begin + (length + 3 & ~3)


def _files_of(path, segments):
    """The entries of the emulator's NT_FILE that are of the guest."""
    with open(path, "rb") as file:
        note = next(data for kind, data in _notes(file) if kind == NT_FILE)
    count, page = struct.unpack_from("<QQ", note)
    rows = [struct.unpack_from("<QQQ", note, 16 + 24 * index) for index in range(count)]
    names = note[16 + 24 * count:].split(b"\0")
    begin, end = min(at for at, _ in segments), max(at + size for at, size in segments)
    kept = [(row, name) for row, name in zip(rows, names) if begin <= row[0] < end and b"/qemu-" not in name]
    return struct.pack("<QQ", len(kept), page) + b"".join(struct.pack("<QQQ", *row) for row, _ in kept) + b"".join(
        name + b"\0" for _, name in kept)


def add_files(core, host_core):
    """Adds the NT_FILE of the emulator's core to the guest's. The notes move to the end of the file."""
    with open(core, "r+b") as file:
        headers = list(_segments(file))
        files = _files_of(host_core, [(one[3], one[6]) for _, one in headers if one[0] == PT_LOAD])
        place, (kind, flags, offset, address, physical, size, memory, align) = next(item for item in headers if item[1][0] == PT_NOTE)
        file.seek(offset)
        notes = file.read(size)
        notes += bytes(-len(notes) % 4) + struct.pack("<III", 5, len(files), NT_FILE) + b"CORE\0\0\0\0" + files + bytes(-len(files) % 4)
        file.seek(0, os.SEEK_END)
        end = file.tell()
        file.write(notes)
        file.seek(place)
        file.write(struct.pack("<IIQQQQQQ", kind, flags, end, address, physical, len(notes), memory, align))


def take_core(work, with_files=True):
    """The guest's core in the folder of a process that has died, or None."""
    guest, host = glob.glob(os.path.join(work, "qemu_*.core")), glob.glob(os.path.join(work, "core*"))
    if not guest or not host:
        return None
    path = os.path.join(work, "guest.core")
    os.rename(guest[0], path)
    if with_files:
        add_files(path, host[0])
    os.remove(host[0])
    return path
