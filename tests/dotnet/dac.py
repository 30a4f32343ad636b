#!/usr/bin/env python3
"""What the runtime's own debugger services say of the methods of a core, through ISOSDacInterface.

    dac.py names LIBMSCORDACCORE CORE < IPS     GetMethodDescName: one JSON string for each IP, or null
    dac.py methods LIBMSCORDACCORE CORE < IPS   GetMethodDescPtrFromIP: one JSON object for each IP, or null
    dac.py code LIBMSCORDACCORE CORE < IPS      GetCodeHeaderData, TraverseEHInfo: one JSON object for each IP, or null

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
CLAUSE_KINDS = ["fault", "finally", "filter", "typed", "unknown"]  # EHClauseType
MACHINE_AMD64 = 0x8664
PT_LOAD, PT_NOTE, NT_FILE = 1, 4, 0x46494C45
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
            at += size + 3 & ~3

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
        ] + [method(lambda this: ctypes.c_int32(E_NOTIMPL).value)] * 11
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
    """ISOSDacInterface of the core."""
    services = ctypes.CDLL(library)
    if hasattr(services, "DllMain"):
        services.DllMain(POINTER(1), ctypes.c_uint32(1), None)
    process, sos = POINTER(), POINTER()
    failed = services.CLRDataCreateInstance(IXCLR_DATA_PROCESS, POINTER(target.address), ctypes.byref(process))
    if failed or call(process, 0, ctypes.c_char_p(ISOS_DAC_INTERFACE), ctypes.cast(ctypes.byref(sos), POINTER)):
        sys.exit(f"dac.py: {library} does not read this core")
    return sos


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


def main():
    what, library, path = sys.argv[1:]
    answer = {"names": name_of, "methods": method_of, "code": code_of}[what]
    target = DataTarget(Core(path))
    sos = open_services(library, target)
    for line in sys.stdin:
        print(json.dumps(answer(sos, int(line, 16))))


if __name__ == "__main__":
    main()
