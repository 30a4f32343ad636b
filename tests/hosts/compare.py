"""compare.py TOOL OTHER FILE...: two builds of the tool, for different machines, print the same bytes about the same cores,
jitdumps and damaged files. Prints the first difference of each command and the number of outputs compared."""
import concurrent.futures
import difflib
import json
import os
import subprocess
import sys
import threading

COMMANDS = (["info", "--json"], ["info"], ["report", "--json"], ["report"], ["stack", "--json"], ["stack"],
            ["methods", "--json", "--stubs", "--r2r", "prepared"], ["methods", "--names", "source"],
            ["perfmap", "--r2r", "prepared"], ["jitdump"], ["descriptor"], ["snapshot", "--stacks", "-o", "/dev/stdout"])
IPS = 300  # of a core


def run(tool, arguments, text=None):
    done = subprocess.run([tool, *arguments], input=text, capture_output=True, check=False, timeout=600)
    return done.returncode, done.stdout, done.stderr


def first_difference(ours, theirs):
    for name, a, b in zip(("exit code", "output", "messages"), ours, theirs):
        if a == b:
            continue
        if isinstance(a, int):
            return f"{name} {a} and {b}"
        lines = [part.decode(errors="backslashreplace").splitlines() for part in (a, b)]
        return name + "\n" + "\n".join(line[:300] for line in list(difflib.unified_diff(*lines, lineterm="", n=0))[:8])
    return None


class Comparison:
    def __init__(self, tool, other):
        self.tools, self.compared, self.size, self.different = (tool, other), 0, 0, 0
        self.lock = threading.Lock()

    def compare(self, arguments, text=None):
        ours, theirs = (run(tool, arguments, text) for tool in self.tools)
        difference = first_difference(ours, theirs)
        with self.lock:
            self.compared += 1
            self.size += len(ours[1])
            if difference:
                self.different += 1
                print(f"{' '.join(arguments)}: {difference}")
        return ours[1]

    def addresses(self, core):
        """First, middle and last byte of methods, and one after it."""
        found = []
        for line in run(self.tools[0], ["methods", "--json", "--r2r", "prepared", core])[1].splitlines():
            method = json.loads(line)
            start, size = int(method.get("code_start") or "0", 16), method.get("code_size")
            if start and size:
                found += [start, start + size // 2, start + size - 1, start + size]
        step = max(1, len(found) // IPS)
        return "".join(f"{ip:x}\n" for ip in found[::step]).encode()

    def core(self, path):
        for command in COMMANDS:
            self.compare([*command, path])
        if ips := self.addresses(path):
            self.compare(["ip2method", "--json", path], ips)
            self.compare(["inspect", "--json", path], ips)

    def file(self, path):
        if "jitdump" in path:
            self.compare(["records", "--json", path])
        else:
            self.core(path)


def main(tool, other, *paths):
    comparison = Comparison(tool, other)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(comparison.file, paths))
    print(f"compared: {comparison.compared} outputs, {comparison.size} bytes, of {len(paths)} files: "
          f"{comparison.different} differ")
    return 1 if comparison.different or comparison.size < 1000 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
