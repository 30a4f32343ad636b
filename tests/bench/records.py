#!/usr/bin/env python3
"""Measures `cdacq records` and the library's reader on one jitdump, beside the Python reader of the tests.

    records.py CDACQ RECORDS_BENCH [JITDUMP]

Without JITDUMP a file of a million JIT_CODE_LOADs is written and read. Nothing passes or fails by a time.
"""
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, os.pardir, "support"), os.path.join(HERE, os.pardir, "dotnet")]

from jitdump import read_loads  # noqa: E402
from jitdump_writer import Jitdump  # noqa: E402

COUNT = 1_000_000
ROUNDS = 3


def write(path):
    dump = Jitdump()
    with open(path, "wb") as file:
        file.write(dump.data)
        for index in range(1, COUNT + 1):
            name = b"instance void [Lib] Ns.Type%d::Method%d(int32)[Tier1]\0" % (index % 999, index)
            address = 0x7F0000000000 + 128 * index
            body = dump.pack("IIQQQQ", 1, 2, address, address, 80, index) + name + bytes(range(80))
            file.write(dump.pack("IIQ", 0, 16 + len(body), index) + body)


def best(work):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main(tool, bench, path):
    print(subprocess.run([bench, path], check=True, capture_output=True, text=True).stdout, end="")
    run = lambda *options: subprocess.run([tool, "records", *options, path], check=True, stdout=subprocess.DEVNULL)
    text, json, python = best(run), best(lambda: run("--json")), best(lambda: read_loads(path))
    print(f"tool_text_ms={text * 1e3:.1f}\ntool_json_ms={json * 1e3:.1f}\npython_ms={python * 1e3:.1f}")
    print(f"python_over_text={python / text:.1f}")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        main(*sys.argv[1:])
    elif len(sys.argv) == 3:
        with tempfile.TemporaryDirectory() as directory:
            write(os.path.join(directory, "dump"))
            main(*sys.argv[1:], os.path.join(directory, "dump"))
    else:
        sys.exit("usage: records.py CDACQ RECORDS_BENCH [JITDUMP]")
