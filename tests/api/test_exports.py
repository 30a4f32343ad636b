"""libcdacq.so exports every function that the public headers declare, and nothing else. Debian's list has them all."""
import os
import pathlib
import re
import subprocess
import sys

header = "\n".join(path.read_text() for path in sorted(pathlib.Path("include").rglob("*.h")))
header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
header = re.sub(r"#define .*(\\\n.*)*", "", header)
declared = set(re.findall(r"CDACQ_API\b[^;(]*?\b(\w+)\s*\(", header))

listing = subprocess.run(["nm", "-D", "--defined-only", os.environ["CDACQ_LIBRARY"]],
                         check=True, capture_output=True, text=True).stdout
exported = set()
for line in listing.splitlines():
    kind, name = line.split()[-2:]
    name, _, version = name.partition("@@")
    if kind != "A":  # the version node itself
        exported.add(name)
        if version != "CDACQ_0":
            sys.exit(f"{name} has the version '{version}', not CDACQ_0")

if not declared or declared != exported:
    print("declared but not exported:", sorted(declared - exported))
    print("exported but not declared:", sorted(exported - declared))
    sys.exit(1)

listed = set(re.findall(r"^ (cdacq_\w+)@CDACQ_0 ", pathlib.Path("debian/libcdacq0.symbols").read_text(), re.M))
if listed != declared:
    print("not in debian/libcdacq0.symbols (run scripts/update-symbols):", sorted(declared - listed))
    print("in debian/libcdacq0.symbols, but gone (docs/versions.md):", sorted(listed - declared))
    sys.exit(1)
print(len(exported), "functions")
