"""Runs inside gdb: writes every frame of every thread as JSON lines to the file that CDACQ_FRAMES names.

Calls that were inlined, or that gdb infers from tail calls, have no frame of their own, and are left out.
"""

import json
import os

import gdb  # pylint: disable=import-error


def frames_of(thread):
    thread.switch()
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            place = frame.find_sal()
            yield {"tid": thread.ptid[1], "ip": frame.pc(), "name": frame.name(),
                   "file": place.symtab.filename if place.symtab else None, "line": place.line if place.symtab else None}
        frame = frame.older()


with open(os.environ["CDACQ_FRAMES"], "w", encoding="utf-8") as output:
    for one in gdb.selected_inferior().threads():
        for found in frames_of(one):
            output.write(json.dumps(found) + "\n")
