"""Sorts many cores by defect: a row for each core, then a table and a summary of the rows.

    python3 -P -m cdacq.buckets rows CORE... > rows.jsonl      # or the cores' paths on standard input, one a line
    python3 -P -m cdacq.buckets summary rows.jsonl
    python3 -P -m cdacq.buckets csv rows.jsonl > rows.csv

Without -P, Python would also import from the current folder, to which strangers may write cores. Before Python 3.11, the
option is -I.

A row is what `cdacq report --signature --json` prints. The tool runs in a process of its own for each core, so a core
that takes too long, or is damaged, costs a row with `error` and nothing else. Any engine can spread the cores over
workers and machines: rows of one core are equal, so a row that comes twice, from a worker that was killed and its
successor, counts once.
"""
from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any, Iterable, Iterator, NamedTuple

from ._debugger import data, note

Row = dict[str, Any]

COLUMNS = ["target", "signature", "error", "cause", "exception_type", "signal", "runtime", "machine", "program",
           "arguments", "pid", "time", "complete"]


class Bucket(NamedTuple):
    """The cores of one defect. Times are seconds since 1970, or None if no core has one."""
    signature: str
    count: int
    first_seen: int | None
    last_seen: int | None
    example: str


def _several(values: Iterable[str], what: str) -> Iterable[str]:
    """A text is refused: it would be taken for a list of its letters."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"expected a list of {what}, not {type(values).__name__}")
    return values


def _checked(one: Row) -> Row:
    if not isinstance(one, dict):
        raise TypeError(f"expected a row, which is a dict, not {type(one).__name__}")
    return one


def row(core: str, *, options: Iterable[str] = (), timeout: float = 60, tool: str | None = None) -> Row:
    """The row of one core. It has `error` in place of a signature if there is none. `options` are those of the tool."""
    path = os.path.join(".", core)  # no number, which would be a pid, and no option
    program = tool or os.environ.get("CDACQ_TOOL", "cdacq")
    command = [program, "report", "--signature", "--json", *_several(options, "options"), path]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {"target": core, "error": f"no answer within {timeout:g} s"}
    lines = done.stdout.splitlines()
    if done.returncode in (0, 1) and len(lines) == 1:
        found: Row = json.loads(lines[0])
        found["target"] = core
        return found
    messages = done.stderr.decode("utf-8", "replace").splitlines()
    code = done.returncode
    died = f"the tool was killed by signal {-code}" if code < 0 else f"the tool had no row, and exit code {code}"
    message = messages[-1].removeprefix("cdacq: ").replace(path, core) if messages else died
    return {"target": core, "error": message}


def read_rows(paths: Iterable[str]) -> list[Row]:
    """The rows of files of JSON lines, one for each core: the last. A line that was cut is left out."""
    rows: dict[str, Row] = {}
    for path in _several(paths, "paths"):
        with sys.stdin if path == "-" else open(os.fspath(path), encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                if isinstance(found, dict) and "target" in found:
                    rows[str(found["target"])] = found
    return list(rows.values())


def buckets(rows: Iterable[Row]) -> list[Bucket]:
    """The rows by signature, the most frequent first. Failures are sorted by their messages, without the paths."""
    found: dict[str, list[Row]] = {}
    for one in rows:
        key = _checked(one).get("signature") or "[error] " + str(one.get("error")).replace(str(one["target"]), "CORE")
        found.setdefault(key, []).append(one)
    ret = []
    for signature, members in found.items():
        times = [member["time"] for member in members if isinstance(member.get("time"), int)]
        ret.append(Bucket(signature, len(members), min(times, default=None), max(times, default=None),
                          min(str(member["target"]) for member in members)))
    return sorted(ret, key=lambda bucket: (-bucket.count, bucket.signature))


def flat(one: Row) -> Row:
    """A row with a column for each name of COLUMNS."""
    signal = _checked(one).get("signal")
    return {name: one.get(name) for name in COLUMNS} | {"signal": signal["name"] if signal else None}


def _day(seconds: int | None) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d") if seconds is not None else "-"
    except (OverflowError, OSError, ValueError):
        return "-"  # no file was written then


def _cores(arguments: list[str]) -> Iterator[str]:
    if arguments:
        yield from arguments
    else:
        for line in sys.stdin:
            yield line.rstrip("\n")


def _write_csv(rows: list[Row]) -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for one in rows:
        row_ = flat(one)
        texts = {name: note(value) for name, value in row_.items() if isinstance(value, str)}
        writer.writerow(row_ | texts | {"target": data(str(one["target"]))})


def _write_parquet(rows: list[Row], path: str) -> None:
    try:
        import pyarrow  # type: ignore[import-not-found]  # pylint: disable=import-outside-toplevel
        import pyarrow.parquet  # type: ignore[import-not-found]  # pylint: disable=import-outside-toplevel
    except ImportError:
        sys.exit("cdacq.buckets: Parquet needs pyarrow, for which Debian has no package; 'csv' writes the same table")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(map(flat, rows))), path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m cdacq.buckets", description="Sorts many cores by defect.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("rows", help="print a row of JSON for each core")
    one.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="for each core (60)")
    one.add_argument("--option", action="append", default=[], metavar="OPTION", help="of cdacq report (repeatable)")
    one.add_argument("cores", nargs="*", metavar="CORE", help="without any: a path a line on standard input")
    for name, text in [("summary", "print the defects, the most frequent first"), ("csv", "print a table"),
                       ("parquet", "write a table; needs pyarrow")]:
        one = commands.add_parser(name, help=text)
        if name == "parquet":
            one.add_argument("output", metavar="OUTPUT")
        one.add_argument("rows", nargs="+", metavar="ROWS", help="a file of JSON lines; '-' is standard input")
    return parser.parse_args()


def _is_safe() -> bool:
    """Whether Python imports only from where it is installed, and from what PYTHONPATH names."""
    return bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def main() -> int:
    if not _is_safe():
        option = "-P" if sys.version_info >= (3, 11) else "-I"
        sys.exit(f"cdacq.buckets: run it as 'python3 {option} -m cdacq.buckets': without {option}, Python also imports from "
                 "the current folder")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # a path may have any bytes
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # the locale may lack letters of a name
    arguments = _arguments()
    if arguments.command == "rows":
        for core in _cores(arguments.cores):
            print(json.dumps(row(core, options=arguments.option, timeout=arguments.timeout)), flush=True)
        return 0
    rows = read_rows(arguments.rows)
    if arguments.command == "csv":
        _write_csv(rows)
    elif arguments.command == "parquet":
        _write_parquet(rows, arguments.output)
    else:
        print(f"{'cores':>8}  {'first seen':10}  {'last seen':10}  defect")
        for bucket in buckets(rows):
            print(f"{bucket.count:8}  {_day(bucket.first_seen):10}  {_day(bucket.last_seen):10}  "
                  f"{note(bucket.signature)}\n{'':34}{data(bucket.example)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as failure:  # no tool, or no file of rows: not a property of a core
        sys.exit(f"cdacq.buckets: {failure}")
