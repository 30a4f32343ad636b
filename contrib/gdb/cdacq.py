# gdb reads this file at each start, from its folder gdbinit.d. It loads cdacq.gdb when gdb first loads a libcoreclr.so,
# so that other programs are debugged without it. A single-file application has no such file and needs
# `python import cdacq.gdb`.
import os

import gdb


def _load_cdacq(event):
    if os.path.basename(event.new_objfile.filename or "") != "libcoreclr.so":
        return
    gdb.events.new_objfile.disconnect(_load_cdacq)
    try:
        import cdacq.gdb  # noqa: F401
    except Exception as error:  # a debugger without cdacq is better than none
        gdb.write(f"cdacq: {error}\n", gdb.STDERR)


gdb.events.new_objfile.connect(_load_cdacq)
