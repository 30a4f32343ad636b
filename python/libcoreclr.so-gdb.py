# gdb runs this file when it loads a libcoreclr.so, if it is found as libcoreclr.so-gdb.py beside that library or at the
# same path below one of gdb's auto-load directories (docs/gdb.md).
import os
import sys

package = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "lib", "python3", "dist-packages")
if os.path.exists(os.path.join(package, "cdacq", "gdb.py")) and package not in sys.path:
    sys.path.append(os.path.normpath(package))

import cdacq.gdb  # noqa: E402,F401
