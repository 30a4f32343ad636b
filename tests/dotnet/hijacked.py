"""The Threads of a stopped process whose return address the runtime has replaced, read without cdacq's reader. Only the
offsets are those of `cdacq descriptor`, so that a wrong one is found: it does not lead to code of the runtime."""

import json
import os
import re
import subprocess

HIJACKED = 0x80  # ThreadState
LINKS_TO_THREADS = 2  # version of the descriptor since which links have the addresses of Threads and not of their links
POINTER = 8


class Threads:
    def __init__(self, tool, pid):
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        done = subprocess.run([tool, "descriptor", "--json", str(pid)], stdout=subprocess.PIPE, check=True)
        self.descriptor = json.loads(done.stdout)
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            self.runtime = [range(int(found[1], 16), int(found[2], 16))
                            for found in re.finditer(r"^(\w+)-(\w+) r-xp .*/libcoreclr\.so$", file.read(), re.MULTILINE)]

    def close(self):
        os.close(self.memory)

    def _number(self, address, size=POINTER):
        return int.from_bytes(os.pread(self.memory, size, address), "little")

    def _offset(self, type_name, field):
        return self.descriptor["types"][type_name][field]["offset"]

    def _all(self):
        inside = self._offset("Thread", "LinkNext")
        before = 0 if self.descriptor["version"] >= LINKS_TO_THREADS else inside
        store = self._number(int(self.descriptor["globals"]["ThreadStore"]["value"], 16))
        link = self._number(store + self._offset("ThreadStore", "FirstThreadLink"))
        while link:
            yield link - before
            link = self._number(link - before + inside)

    def hijacked(self):
        """(thread's number, whether the return address that was replaced is there, and is code of the runtime) of each."""
        for thread in self._all():
            if self._number(thread + self._offset("Thread", "State"), 4) & HIJACKED:
                slot = self._number(thread + self._offset("Thread", "m_ppvHJRetAddrPtr"))
                original = self._number(thread + self._offset("Thread", "m_pvHJRetAddr"))
                found = self._number(slot) if slot else 0
                yield (self._number(thread + self._offset("Thread", "OSId")),
                       any(found in part for part in self.runtime) and found != original != 0)
