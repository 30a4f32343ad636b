#!/bin/bash
# test_wheel.sh PACKAGES: the wheel that `scripts/package wheel PACKAGES` made, in a fresh virtual environment and without
# a network: pip installs it, the package answers with the library in it, the tool runs, and nothing stays behind.
set -euo pipefail
packages=$(realpath "${1:?the folder of the packages}")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/scripts/setup" python3-venv
alone=()
((EUID)) || alone=(unshare --net)
unset CDACQ_LIBRARY CDACQ_TOOL PYTHONPATH
cd "$work"

"${alone[@]}" /usr/bin/python3 -m venv env
"${alone[@]}" env/bin/pip --disable-pip-version-check --quiet install --no-index "$packages"/cdacq-*.whl
cat >check.py <<'END'
import os
import subprocess
import sys

import cdacq

here, fixtures = sys.prefix, sys.argv[1]
library, tool = cdacq._library()._name, os.path.join(here, "bin", "cdacq")
assert cdacq.__file__.startswith(here) and library.startswith(here), (cdacq.__file__, library)
with cdacq.open(f"{fixtures}/net10-x64/core") as target:
    name = target.method_at(0x7f91e58aed0f).name
    assert name == "Demo.Outer<T>.Inner<int>..ctor()", name
with cdacq.open(f"{fixtures}/crash-net10-x64/core") as target:
    verdict = target.report()["verdict"]
    assert verdict["kind"] == "unhandled", verdict
    assert target.session().report()["verdict"] == verdict
version = subprocess.run([tool, "version"], check=True, capture_output=True, text=True).stdout
assert cdacq.version() in version, version
print(repr(target), verdict["what"])
END
PATH=/usr/bin:/bin "${alone[@]}" env/bin/python -B check.py "$source/tests/fixtures"
"${alone[@]}" env/bin/pip --disable-pip-version-check --quiet uninstall --yes cdacq
left=$(find env -path '*cdacq*')
[[ -z $left ]] || { echo "FAILED: an uninstalled wheel leaves $left" >&2; exit 1; }
echo 'wheel: ok'
