"""Runs inside lldb: writes every frame of every thread as JSON lines to the file that CDACQ_FRAMES names.

Of a call and what was inlined into it, the innermost has the program counter; the others are left out.
"""

import json
import os

import lldb  # pylint: disable=import-error


def write_frames(debugger, _command, _result, _dictionary):
    process = debugger.GetSelectedTarget().GetProcess()
    with open(os.environ["CDACQ_FRAMES"], "w", encoding="utf-8") as output:
        for thread in process:
            inlined = False
            for frame in thread:
                is_call, inlined = not inlined, frame.IsInlined()
                if not is_call:
                    continue
                entry = frame.GetLineEntry()
                file = entry.GetFileSpec()
                output.write(json.dumps({
                    "tid": thread.GetThreadID(), "ip": frame.GetPC(), "name": frame.GetFunctionName(),
                    "file": file.fullpath if entry.IsValid() and file.IsValid() else None,
                    "line": entry.GetLine() if entry.IsValid() else None}) + "\n")


def __lldb_init_module(debugger, _dictionary):
    debugger.HandleCommand(f"command script add -f {__name__}.write_frames write-frames")
