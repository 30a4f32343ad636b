"""perf_script_reader.py: counts the stacks of `perf script`, by the fields that it was asked for.

Shares no code with cdacq: it is told the fields of -F and takes them one by one, from the left and from the right, as
perf-script(1) lists them. A file of tests/fixtures/perf_script names its fields in its first line.
"""
import collections
import re

HEX = r"[0-9a-f]+"
HEADER = {  # the fields of a sample's first line, in perf's order
    "comm": r"\s*(?P<comm>.*?\S)",
    "pid": r" +(?P<pid>-?\d+)/(?P<tid>-?\d+)",
    "tid": r" *(?P<tid>-?\d+)",
    "cpu": r" +\[\d+\]",
    "misc": r" +[KUHGgMESp]+",
    "time": r" *\d+\.\d+:",
    "period": r" +\d+",
    "event": r" +(?P<event>\S+):",
    "trace": r"(?P<trace> .*?)",
    "addr": rf" +{HEX}(?: .+ \(.+\))?",  # of a page fault, with its own symbol
}
RECORD = r" *PERF_RECORD_"


def frame(text, fields):
    name = text
    if "dso" in fields and not name.endswith("(inlined)"):
        name, _, file = name.rpartition(" (")
    name = name.removesuffix(" (inlined)")
    if "symoff" in fields:
        name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    if "dso" in fields and name == "[unknown]" and file != "[unknown])":
        name = "[" + file.removesuffix(")").rpartition("/")[2] + "]"
    return name.replace(";", ":")


def header_of(fields, upto=None):
    wanted = [field for field in HEADER if field in fields and not (field == "tid" and "pid" in fields)]
    if upto:
        wanted = wanted[:wanted.index(upto) + 1] if upto in wanted else wanted
    optional = ("cpu", "period") if "trace" in fields else ()  # which only one kind of event has
    return "".join(f"(?:{HEADER[field]})?" if field in optional else HEADER[field] for field in wanted)


def read(text):
    """Returns the counts of (event, thread, frames from the outermost), and the number of other records."""
    first, _, text = text.partition("\n")
    fields = first.removeprefix("# fields: ").split()
    only = rf" {{1,2}}(?=[ 0-9a-f]{{16}}(?: |$)) *{HEX}" + (r" (?P<frame>.+)" if "sym" in fields else "")  # 16 columns
    stacks, records, sample = collections.Counter(), 0, None

    def close():
        nonlocal sample
        if sample:
            event, thread, frames = sample
            stacks[event, thread, tuple(reversed(frames))] += 1
        sample = None

    has_fields = bool(header_of(fields))
    for line in text.split("\n"):
        if line.startswith("\t"):
            if sample is None and not has_fields:
                sample = ("", "[unknown]", [])
            sample[2].append(frame(line.strip().partition(" ")[2], fields))
        elif not line.strip():
            close()
        elif sample and line.startswith("  ") and "srcline" in fields:
            continue
        elif re.match(header_of(fields, "time") + RECORD, line):
            close()
            records += 1
        else:
            close()
            # A sample has its frame in the line, or its call chain below, or neither.
            match = ("ip" in fields and re.fullmatch(header_of(fields) + only, line)) or \
                re.fullmatch(header_of(fields) + r" *", line)
            if not match:
                raise ValueError(line)
            found = match.groupdict()
            thread = found.get("comm") or found.get("tid")
            sample = (found.get("event", ""), thread, [frame(found["frame"], fields)] if found.get("frame") else [])
    close()
    return stacks, records


def folded(text):
    """What `cdacq filter --folded` is to write."""
    stacks, _ = read(text)
    several = len({event for event, _, _ in stacks}) > 1
    return sorted(";".join([*([event or "[no event]"] if several else []), thread, *frames]) + f" {count}"
                  for (event, thread, frames), count in stacks.items())
