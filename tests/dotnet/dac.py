#!/usr/bin/env python3
"""What the runtime's own debugger services say of a core: of its methods, through ISOSDacInterface, and of its stacks.

    dac.py names LIBMSCORDACCORE CORE < IPS     GetMethodDescName: one JSON string for each IP, or null
    dac.py methods LIBMSCORDACCORE CORE < IPS   GetMethodDescPtrFromIP: one JSON object for each IP, or null
    dac.py code LIBMSCORDACCORE CORE < IPS      GetCodeHeaderData, TraverseEHInfo: one JSON object for each IP, or null
    dac.py frames LIBMSCORDACCORE CORE < TIDS   IXCLRDataStackWalk: for each thread, one JSON list of its frames with the
                                                arguments and locals, as `clrstack -a` of SOS has them

Reads a full ELF core of x64 and nothing else. A program of its own, because the
services bring a PAL with handlers of signals.
"""

import bisect
import ctypes
import json
import mmap
import struct
import subprocess
import sys

S_OK, E_FAIL, E_NOTIMPL, E_NOINTERFACE = 0, 0x80004005, 0x80004001, 0x80004002
IXCLR_DATA_PROCESS = bytes.fromhex("b62a555c09fcb34c8e3622fa03c798b7")
ISOS_DAC_INTERFACE = bytes.fromhex("f2006f432ab49f4b870ce73db66ae930")
IUNKNOWN = bytes.fromhex("0000000000000000c000000000000046")
ICLR_DATA_TARGET = bytes.fromhex("eecc113e")  # its first part is enough
# slots of ISOSDacInterface
GET_METHOD_DESC_DATA, GET_METHOD_DESC_PTR_FROM_IP, GET_METHOD_DESC_NAME, GET_CODE_HEADER_DATA, TRAVERSE_EH_INFO = 20, 21, 22, 26, 64
TOKEN_OF_METHOD_DESC_DATA = 56  # DacpMethodDescData.MDToken
# slots of the interfaces of xclrdata.idl
RELEASE, GET_TASK_BY_OS_THREAD_ID, CREATE_STACK_WALK = 2, 7, 11
WALK_GET_CONTEXT, WALK_NEXT, WALK_GET_FRAME = 3, 5, 8
FRAME_COUNTS = {"argument": (6, 7), "local": (8, 9)}  # the number of them, and one by its index
VALUE_GET_ADDRESS, VALUE_GET_SIZE, VALUE_GET_BYTES = 4, 5, 6
SIMPLE_FRAMES = 0xF  # CLRDATA_SIMPFRAME_*: all kinds
FRAMES_MAX, VARIABLES_MAX, VALUE_MAX = 100000, 1000, 4096
CLAUSE_KINDS = ["fault", "finally", "filter", "typed", "unknown"]  # EHClauseType
MACHINE_AMD64 = 0x8664
PT_LOAD, PT_NOTE, NT_PRSTATUS, NT_FILE = 1, 4, 1, 0x46494C45
PRSTATUS_PID, PRSTATUS_REGISTERS = 32, 112
# The registers in the kernel's order, and where they are in CONTEXT; None: not there, or of another size.
KERNEL_REGISTERS = ["r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", None,
                    "rip", None, None, "rsp"]
CONTEXT_REGISTERS = {name: 120 + 8 * i for i, name in enumerate(
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)), "rip"])}
CONTEXT_SIZE, CONTEXT_FLAGS_AT, CONTEXT_FULL = 1232, 48, 0x10000B
NAME_MAX = 16384

HRESULT, POINTER, ADDRESS = ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64


class CodeHeaderData(ctypes.Structure):
    """DacpCodeHeaderData"""
    _fields_ = [("gc_info", ADDRESS), ("jit_type", ctypes.c_uint32), ("method_desc", ADDRESS), ("code_start", ADDRESS),
                ("size", ctypes.c_uint32), ("cold_start", ADDRESS), ("cold_size", ctypes.c_uint32), ("hot_size", ctypes.c_uint32)]


class Clause(ctypes.Structure):
    """DACEHInfo"""
    _fields_ = [("kind", ctypes.c_uint32), ("try_start", ADDRESS), ("try_end", ADDRESS), ("handler_start", ADDRESS),
                ("handler_end", ADDRESS), ("duplicated", ctypes.c_int32), ("filter_offset", ADDRESS),
                ("catches_all", ctypes.c_int32), ("module", ADDRESS), ("type_handle", ADDRESS), ("class_token", ctypes.c_uint32)]


class Core:
    """The memory of a core, and where libcoreclr is in it."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.segments, self.coreclr = [], 0
        self.contexts = {}  # of threads
        table, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        for i in range(count):
            kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", self.data, table + i * size)
            if kind == PT_LOAD and length:
                self.segments.append((address, length, offset))
            elif kind == PT_NOTE:
                self._read_notes(offset, offset + length)
        self.segments.sort()
        self.begins = [segment[0] for segment in self.segments]

    def _read_notes(self, at, end):
        while at + 12 <= end:
            name, size, kind = struct.unpack_from("<III", self.data, at)
            at += 12 + (name + 3 & ~3)
            if kind == NT_FILE:
                count, = struct.unpack_from("<Q", self.data, at)
                paths = self.data[at + 16 + 24 * count:at + size].split(b"\0")
                for i in range(count):
                    if paths[i].endswith(b"/libcoreclr.so") and not self.coreclr:
                        self.coreclr, = struct.unpack_from("<Q", self.data, at + 16 + 24 * i)
            elif kind == NT_PRSTATUS:
                self._read_thread(at)
            at += size + 3 & ~3

    def _read_thread(self, at):
        tid, = struct.unpack_from("<I", self.data, at + PRSTATUS_PID)
        context = bytearray(CONTEXT_SIZE)
        struct.pack_into("<I", context, CONTEXT_FLAGS_AT, CONTEXT_FULL)
        for name, value in zip(KERNEL_REGISTERS, struct.unpack_from(f"<{len(KERNEL_REGISTERS)}Q", self.data, at + PRSTATUS_REGISTERS)):
            if name:
                struct.pack_into("<Q", context, CONTEXT_REGISTERS[name], value)
        self.contexts[tid] = bytes(context)

    def read(self, address, size):
        """As many of the bytes as there are from the first on."""
        result = b""
        while len(result) < size:
            i = bisect.bisect(self.begins, address + len(result)) - 1
            if i < 0:
                break
            begin, length, offset = self.segments[i]
            inside = address + len(result) - begin
            if inside >= length:
                break
            result += self.data[offset + inside:offset + min(length, inside + size - len(result))]
        return result


class DataTarget:
    """ICLRDataTarget over a core: a table of functions as COM has it."""

    def __init__(self, core):
        self.core = core

        def method(function, *types):
            return ctypes.CFUNCTYPE(HRESULT, POINTER, *types)(function)

        self.functions = [
            method(self._query_interface, POINTER, ctypes.POINTER(POINTER)), method(lambda this: 1), method(lambda this: 1),
            method(lambda this, ret: self._put(ret, MACHINE_AMD64), ctypes.POINTER(ctypes.c_uint32)),
            method(lambda this, ret: self._put(ret, 8), ctypes.POINTER(ctypes.c_uint32)),
            method(self._image_base, POINTER, ctypes.POINTER(ADDRESS)),
            method(self._read_virtual, ADDRESS, POINTER, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)),
        ] + [method(lambda this: ctypes.c_int32(E_NOTIMPL).value)] * 4 + [
            method(self._thread_context, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, POINTER),
        ] + [method(lambda this: ctypes.c_int32(E_NOTIMPL).value)] * 6
        self.table = (POINTER * len(self.functions))(*(ctypes.cast(function, POINTER) for function in self.functions))
        self.object = POINTER(ctypes.addressof(self.table))
        self.address = ctypes.addressof(self.object)

    def _put(self, ret, value):
        ret[0] = value
        return S_OK

    def _query_interface(self, _, iid, ret):
        wanted = ctypes.string_at(iid, 16)
        if wanted != IUNKNOWN and not wanted.startswith(ICLR_DATA_TARGET):
            ret[0] = None
            return ctypes.c_int32(E_NOINTERFACE).value
        ret[0] = self.address
        return S_OK

    def _image_base(self, _, name, ret):
        path = b""
        while (unit := ctypes.string_at(name + len(path), 2)) != b"\0\0":
            path += unit
        if not path.decode("utf-16-le").endswith("libcoreclr.so"):
            return ctypes.c_int32(E_FAIL).value
        return self._put(ret, self.core.coreclr)

    def _thread_context(self, _, tid, _flags, size, buffer):
        context = self.core.contexts.get(tid, b"")[:size]
        ctypes.memmove(buffer, context, len(context))
        return S_OK if context else ctypes.c_int32(E_FAIL).value

    def _read_virtual(self, _, address, buffer, size, ret):
        found = self.core.read(address, size)
        ctypes.memmove(buffer, found, len(found))
        if ret:
            ret[0] = len(found)
        return S_OK if found else ctypes.c_int32(E_FAIL).value


def call(interface, slot, *arguments):
    """A method of a COM object by its place in the table."""
    table = ctypes.cast(interface, ctypes.POINTER(ctypes.POINTER(POINTER)))[0]
    types = [type(argument) for argument in arguments]
    return ctypes.CFUNCTYPE(HRESULT, POINTER, *types)(table[slot])(interface, *arguments)


def open_services(library, target):
    """IXCLRDataProcess and ISOSDacInterface of the core."""
    services = ctypes.CDLL(library)
    if hasattr(services, "DllMain"):
        services.DllMain(POINTER(1), ctypes.c_uint32(1), None)
    process, sos = POINTER(), POINTER()
    failed = services.CLRDataCreateInstance(IXCLR_DATA_PROCESS, POINTER(target.address), ctypes.byref(process))
    if failed or call(process, 0, ctypes.c_char_p(ISOS_DAC_INTERFACE), ctypes.cast(ctypes.byref(sos), POINTER)):
        sys.exit(f"dac.py: {library} does not read this core")
    return process, sos


# ---- Stacks ----

def made_by(interface, slot, *arguments):
    """The COM object that a method gives as its last argument; None: it gives none."""
    made = POINTER()
    return None if call(interface, slot, *arguments, ctypes.cast(ctypes.byref(made), POINTER)) or not made else made


def number_of(interface, slot, kind):
    number = kind()
    return None if call(interface, slot, ctypes.cast(ctypes.byref(number), POINTER)) else number.value


def value_of(value):
    """The raw bytes of a variable, and its address; None where there is no data."""
    size = number_of(value, VALUE_GET_SIZE, ctypes.c_uint64)
    buffer, taken = (ctypes.c_uint8 * VALUE_MAX)(), ctypes.c_uint32()
    if not size or size > VALUE_MAX or call(value, VALUE_GET_BYTES, ctypes.c_uint32(VALUE_MAX), ctypes.cast(
            ctypes.byref(taken), POINTER), ctypes.cast(buffer, POINTER)):
        return None
    return {"bytes": bytes(buffer[:min(size, taken.value)]).hex(), "address": number_of(value, VALUE_GET_ADDRESS, ADDRESS)}


def variables_of(frame):
    found = {}
    for kind, (count_slot, slot) in FRAME_COUNTS.items():
        found[kind] = []
        for i in range(min(number_of(frame, count_slot, ctypes.c_uint32) or 0, VARIABLES_MAX)):
            value = POINTER()
            failed = call(frame, slot, ctypes.c_uint32(i), ctypes.cast(ctypes.byref(value), POINTER), ctypes.c_uint32(0), POINTER(),
                          POINTER())
            found[kind].append(None if failed or not value else value_of(value))
            if value:
                call(value, RELEASE)
    return found


def frames_of(process, tid):
    """None where the services do not walk the thread."""
    frames, context, size = [], (ctypes.c_uint8 * CONTEXT_SIZE)(), ctypes.c_uint32()
    task = made_by(process, GET_TASK_BY_OS_THREAD_ID, ctypes.c_uint32(tid))
    walk = made_by(task, CREATE_STACK_WALK, ctypes.c_uint32(SIMPLE_FRAMES)) if task else None
    while walk and len(frames) < FRAMES_MAX:
        frame = made_by(walk, WALK_GET_FRAME)
        if frame and not call(walk, WALK_GET_CONTEXT, ctypes.c_uint32(CONTEXT_FULL), ctypes.c_uint32(CONTEXT_SIZE), ctypes.cast(
                ctypes.byref(size), POINTER), ctypes.cast(context, POINTER)):
            ip, sp = (struct.unpack_from("<Q", context, CONTEXT_REGISTERS[name])[0] for name in ("rip", "rsp"))
            frames.append({"ip": ip, "sp": sp, **variables_of(frame)})
        if frame:
            call(frame, RELEASE)
        if call(walk, WALK_NEXT):
            break
    return frames if walk else None


# ---- Methods ----

def name_of(sos, ip):
    """None where the services name nothing."""
    method, needed = method_desc_of(sos, ip), ctypes.c_uint32()
    if not method:
        return None
    name = (ctypes.c_uint16 * NAME_MAX)()
    if call(sos, GET_METHOD_DESC_NAME, ADDRESS(method), ctypes.c_uint32(NAME_MAX), ctypes.cast(name, POINTER),
            ctypes.cast(ctypes.byref(needed), POINTER)):
        return None
    return bytes(name)[:2 * (needed.value - 1)].decode("utf-16-le", "backslashreplace")


def method_desc_of(sos, ip):
    """None where the services know no method."""
    method = ADDRESS()
    if call(sos, GET_METHOD_DESC_PTR_FROM_IP, ADDRESS(ip), ctypes.cast(ctypes.byref(method), POINTER)):
        return None
    return method.value or None


def method_of(sos, ip):
    """None where the services know no method."""
    header, data = CodeHeaderData(), (ctypes.c_uint8 * 1024)()
    method = method_desc_of(sos, ip)
    if not method or call(sos, GET_CODE_HEADER_DATA, ADDRESS(ip), ctypes.cast(ctypes.byref(header), POINTER)):
        return None
    failed = call(sos, GET_METHOD_DESC_DATA, ADDRESS(method), ADDRESS(0), ctypes.cast(data, POINTER), ctypes.c_uint32(0),
                  POINTER(), POINTER())
    token = None if failed else struct.unpack_from("<I", data, TOKEN_OF_METHOD_DESC_DATA)[0]
    return {"method_desc": method, "code_start": header.code_start, "token": token}


def clause_of(found):
    """As `inspect --json` has it. The clause of a thunk in a ReadyToRun image has neither a token nor a type."""
    kind = CLAUSE_KINDS[found.kind]
    token = found.class_token if kind == "typed" and found.module else 0
    return {
        "kind": kind,
        **{key: getattr(found, key) for key in ("try_start", "try_end", "handler_start", "handler_end")},
        "filter_offset": found.filter_offset if kind == "filter" else None,
        "class_token": f"0x{token:08x}" if token else None,
        "type_handle": f"0x{found.type_handle:x}" if kind == "typed" and not found.module else None,
        "duplicated": bool(found.duplicated),
        "module": f"0x{found.module:x}" if token else None,
    }


def code_of(sos, ip):
    """None where the services know no code."""
    header, clauses = CodeHeaderData(), []
    if call(sos, GET_CODE_HEADER_DATA, ADDRESS(ip), ctypes.cast(ctypes.byref(header), POINTER)) or not header.method_desc:
        return None

    def take(_index, _count, found, _token):
        clauses.append(clause_of(found[0]))
        return 1

    callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(Clause), POINTER)(take)
    call(sos, TRAVERSE_EH_INFO, ADDRESS(ip), ctypes.cast(callback, POINTER), POINTER())
    return {**{key: getattr(header, key) for key, _ in CodeHeaderData._fields_}, "clauses": clauses}


def ask(what, library, core, ips):
    """What `what` says of `ips`, by a program that may die of it."""
    done = subprocess.run([sys.executable, "-B", __file__, what, library, core], input="".join(f"{ip:x}\n" for ip in ips),
                          stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def names(library, core, ips):
    """The names at `ips`."""
    return ask("names", library, core, ips)


def methods(library, core, ips):
    """The methods at `ips`."""
    return ask("methods", library, core, ips)


def code(library, core, ips):
    """The code at `ips`."""
    return ask("code", library, core, ips)


def frames(library, core, tids):
    """The frames of threads."""
    return ask("frames", library, core, tids)


def main():
    what, library, path = sys.argv[1:]
    answer = {"names": name_of, "methods": method_of, "code": code_of, "frames": frames_of}[what]
    target = DataTarget(Core(path))
    process, sos = open_services(library, target)
    for line in sys.stdin:
        print(json.dumps(answer(process if what == "frames" else sos, int(line, 16))))


if __name__ == "__main__":
    main()
