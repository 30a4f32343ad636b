"""A process with the memory and the registers of a core (carrier/undump.c), which needs no .NET."""
import contextlib
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ.get("CDACQ_BUILD_DIR", "build/dev"), "tests", "undump")
ADDRESS_TAKEN = 3  # its exit code


@contextlib.contextmanager
def undumped(core):
    """The process, until the block ends; `folder` has the files that it maps. Skips the test if an address is taken."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([PROGRAM, str(core), folder], stdout=subprocess.PIPE)
        process.folder = folder
        try:
            if process.stdout.readline() == b"ready\n":
                yield process
            elif process.wait() == ADDRESS_TAKEN:
                raise unittest.SkipTest("an address is taken")
            else:
                raise AssertionError(f"undump {core}: exit code {process.returncode}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
