"""The tool ends when a page of a running process never comes."""
import os
import platform
import subprocess
import sys
import time
import unittest

TOOL = os.environ.get("CDACQ_TOOL")
SYSCALL = {"x86_64": 323, "aarch64": 282}.get(platform.machine())  # userfaultfd
# Maps a file of its own of which userfaultfd supplies the pages, and supplies none.
TARGET = f"""
import ctypes, fcntl, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
try:
    fd = libc.syscall({SYSCALL}, os.O_CLOEXEC)
    fcntl.ioctl(fd, 0xc018aa3f, bytearray(struct.pack("<QQQ", 0xaa, 0, 0)))  # UFFDIO_API
    file = os.memfd_create("never")
    os.ftruncate(file, 65536)
    address = libc.mmap(None, 65536, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    fcntl.ioctl(fd, 0xc020aa00, bytearray(struct.pack("<QQQQ", address, 65536, 1, 0)))  # UFFDIO_REGISTER, missing pages
    print("ready", flush=True)
except OSError as error:
    print(error, flush=True)
sys.stdin.read()
"""


class Watchdog(unittest.TestCase):
    def test_a_page_that_never_comes(self):
        if not SYSCALL:
            self.skipTest("the number of userfaultfd is not known here")
        if os.environ.get("CDACQ_EMULATED"):
            self.skipTest("qemu-user has no process_vm_readv")
        target = subprocess.Popen([sys.executable, "-c", TARGET], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            said = target.stdout.readline().strip()
            if said != "ready":
                self.skipTest(f"userfaultfd: {said}")
            began = time.monotonic()
            done = subprocess.run([TOOL, "info", str(target.pid)], capture_output=True, text=True, timeout=60, check=False)
            took = time.monotonic() - began
        finally:
            target.kill()
            target.communicate()
        if "CDACQ_RUN" in os.environ and "which a 32-bit program cannot read" in done.stderr:  # i386 (scripts/test-host)
            self.skipTest("the process has 64 bits, and the tool 32")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr, f"cdacq: process {target.pid}: its memory, or a file that it maps, could not be read for "
                                      "5 seconds\n")
        self.assertGreater(took, 4)


if __name__ == "__main__":
    unittest.main()
