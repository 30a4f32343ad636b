"""Running the command line, which makes the reports. Private."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from typing import Any

from . import _abi
from .errors import Error


def find_tool() -> str:
    """The tool that CDACQ_TOOL names, that of the same installation, or the one in PATH. Raises FileNotFoundError."""
    chosen = os.environ.get("CDACQ_TOOL")
    if chosen:
        return chosen
    package = os.path.dirname(os.path.abspath(__file__))
    prefix = os.path.normpath(os.path.join(package, "..", "..", "..", ".."))  # PREFIX/lib/python3/dist-packages/cdacq
    near = [os.path.join(folder, "cdacq") for folder in (sysconfig.get_path("scripts"), os.path.join(prefix, "bin"))]
    for path in near:
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    found = shutil.which("cdacq")
    if found is None:
        raise FileNotFoundError("the program cdacq, which makes reports, is neither installed nor in PATH: "
                                "set CDACQ_TOOL to its path")
    return found


def run_report(arguments: list[str]) -> dict[str, Any]:
    """What `cdacq report --json` prints. Raises Error if it has no report."""
    done = subprocess.run([find_tool(), "report", "--json", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
        return report
    except ValueError:
        lines = done.stderr.decode(errors="replace").splitlines() or [f"cdacq report: exit code {done.returncode}"]
        raise Error(_abi.Status.ERR_IO, lines[-1].removeprefix("cdacq: ")) from None
