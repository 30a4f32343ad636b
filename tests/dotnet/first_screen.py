"""What the first screen of every report has: the verdict, its place, and the managed stack of the thread that it is about;
and that the report as JSON has the same. A module, which the tests of bundled cores and of real processes use."""

import re

LINES = 40
LABELS = ["verdict", "where", "certainty", "next"]


def problems_of_text(text):
    """Of the text alone, as that of a running process, which is in another place a moment later."""
    screen = text.splitlines()[:LINES]
    head = screen[:screen.index("")] if "" in screen else screen
    labels = [line[:12].rstrip() for line in head]
    if not labels or labels[0] != "verdict" or len(head) > 5:
        return [f"it does not begin with a verdict of at most five lines: {labels}"]
    problems = [f"the verdict has no line '{label}'" for label in ["certainty", "next"]
                if label not in labels and "there are no threads to look at" not in head[0]]
    where = head[1][12:] if "where" in labels[1:2] else ""
    found = re.search(r"TID (\d+)", where)
    return problems + (problems_of_stack(screen, int(found[1]), where) if found else [])


def problems_of_stack(screen, tid, where):
    """The thread's stack, or, of an exception with a long text, its stack trace, has managed code; the method of the verdict is
    in one of the two."""
    first = next((i + 1 for i, line in enumerate(screen) if re.match(rf"TID (\d+[^#]*, )?{tid}\b.*:$", line)), len(screen))
    last = next((i for i in range(first, len(screen)) if not screen[i]), len(screen))
    frames = [line for line in screen[first:last] if re.search(r"IL_[0-9a-f]{4}|\[(jit|r2r)|^ +\[async\]", line)]
    frames += [line for line in screen if re.match(r" +at \w", line)]
    if not frames:
        return [] if is_native(screen[first:last]) else [f"no managed code of thread {tid} in the first {LINES} lines"]
    # of a task, the thread has only the method that waits for it
    name = re.match(r"(?:(?:local function|lambda)[^(]* in )?([^( ]+)\(", re.sub(r".*, awaited by TID \d+( in )?", "", where))
    if not name:
        return []
    # the name of an async method's or iterator's state machine: the stack trace has the method's own
    plain = re.sub(r"\.<(\w+)>d__\w+(<[^(]*>)?\.MoveNext$", r".\1", name[1])
    parts = plain.split("<")[0].rsplit(".", 1)
    return [] if any(parts[-1] in line for line in frames) else [f"'{plain}' is in no frame in the first {LINES} lines"]


def is_native(stack):
    """Whether it is the whole stack of a thread that runs no managed code."""
    return bool(stack) and all(re.match(r"#\d+ +0x|     \.\.\. \d+ native frames? ", line) for line in stack)


def problems_of(text, report):
    """Of both forms of one report: the text and what `report --json` printed."""
    verdict = report["verdict"]
    head = text.partition("\n\n")[0].splitlines()
    lines = {line[:12].rstrip(): line[12:] for line in head}
    wanted = {"verdict": verdict["what"], "certainty": verdict["reason"], "next": verdict["next"]}
    problems = [f"'{label}' is {lines.get(label)!r} and in JSON {value!r}" for label, value in wanted.items()
                if lines.get(label) != value]
    where = lines.get("where", "")
    if verdict["method"] and verdict["method"] not in where:
        problems.append(f"'where' is {where!r} and in JSON {verdict['method']!r}")
    if verdict["line"] and f":{verdict['line']}" not in where:
        problems.append(f"'where' is {where!r}, with no line {verdict['line']}")
    if verdict["by"] and verdict["by"] not in [value for label, value in lines.items() if label not in LABELS]:
        problems.append(f"no line is {verdict['by']!r}")
    if verdict["tid"]:
        if f"TID {verdict['tid']}" not in where:
            problems.append(f"'where' is {where!r}, with no TID {verdict['tid']}")
        stack = report["stacks"][verdict["stack"]] if verdict["stack"] is not None else {"threads": []}
        if verdict["tid"] not in [thread["tid"] for thread in stack["threads"]]:
            problems.append("the verdict's stack is not that of its thread")
    return problems_of_text(text) + problems
