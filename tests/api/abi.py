"""
abi.py [--store] LIBRARY: compares the binary interface of a libcdacq.so that has debug information with that of the last
release, libcdacq.abi beside this file; --store replaces the description instead. Needs abigail-tools.

Compatible are new functions, new enumerators with their COUNT, and new members at the end of a struct, whose `size` says
how many of them a caller knows. An array of COUNT elements would change its struct, which is reported.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STORED = ROOT / "tests/api/libcdacq.abi"
OPTIONS = ["--headers-dir", str(ROOT / "include"), "--drop-private-types", "--exported-interfaces-only",
           "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--no-architecture",
           "--type-id-style", "hash"]
STRUCT = re.compile(r"<class-decl name='(cdacq_\w+)' size-in-bits='(\d+)'.*?</class-decl>", re.S)
MEMBER = re.compile(r" *<data-member [^>]*layout-offset-in-bits='(\d+)'.*?</data-member>\n", re.S)
COUNT = re.compile(r" *<enumerator name='CDACQ_\w+_COUNT' [^>]*/>\n")


def describe(library):
    text = subprocess.run(["abidw", *OPTIONS, library], check=True, capture_output=True, text=True).stdout
    return text.replace(f"path='{ROOT}/", "path='")


def without_additions(new, old):
    """The new description, in which each struct ends where it did in the old one."""
    sizes = {match[1]: int(match[2]) for match in STRUCT.finditer(old)}

    def cut(match):
        size = sizes.get(match[1], int(match[2]))
        text = MEMBER.sub(lambda member: member[0] if int(member[1]) < size else "", match[0])
        return text.replace(f"size-in-bits='{match[2]}'", f"size-in-bits='{size}'", 1)
    return STRUCT.sub(cut, new)


def main():
    library = sys.argv[-1]
    if not shutil.which("abidiff"):
        print("skipped: no abidiff (Debian package abigail-tools)")
        return 77
    new = describe(library)
    if not STRUCT.search(new):
        print(f"skipped: {library} has no debug information")
        return 77
    if "--store" in sys.argv:
        STORED.write_text(new)
        return 0
    with tempfile.TemporaryDirectory() as work:
        old = STORED.read_text()
        paths = [pathlib.Path(work, name) for name in ("old.abi", "new.abi")]
        for path, text in zip(paths, (old, without_additions(new, old))):
            path.write_text(COUNT.sub("", text))
        status = subprocess.run(["abidiff", "--no-added-syms", *map(str, paths)], check=False).returncode
    print("abi: compatible with the last release" if not status else
          f"abi: abidiff reports changes that are not compatible ({status}); see docs/versions.md")
    return 1 if status else 0


sys.exit(main())
