"""The Python package as it is installed: the tests of the package pass, with the library of the same installation."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

with tempfile.TemporaryDirectory() as work:
    prefix = pathlib.Path(work, "prefix")
    subprocess.run(["cmake", "--install", os.environ["CDACQ_BUILD_DIR"], "--prefix", str(prefix)], check=True,
                   stdout=subprocess.DEVNULL)
    packages = prefix / "lib/python3/dist-packages"
    environment = {**os.environ, "CDACQ_INSTALLED": "1", "PYTHONPATH": str(packages)}
    del environment["CDACQ_LIBRARY"]
    script = ("import cdacq; path = cdacq._library()._name; print(cdacq.__file__, path); "
              f"assert cdacq.__file__.startswith({work!r}) and path.startswith({work!r})")
    subprocess.run([sys.executable, "-B", "-c", script], env=environment, check=True, cwd=work)
    for test in ("test_package.py",):
        subprocess.run([sys.executable, "-B", str(ROOT / "tests/python" / test)], env=environment, check=True, cwd=ROOT)
