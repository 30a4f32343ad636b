#!/usr/bin/env python3
"""Compares every sequence point of real PDBs with what System.Reflection.Metadata reads of them: those that lie beside
assemblies in the NuGet packages of this machine, and those of the programs that are built here.

    pdbs.py [ASSEMBLY...]    default: the judge itself, and all assemblies with a PDB below the folders of packages

Exit 77 (skipped) where dotnet is missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import lab

HERE = pathlib.Path(__file__).parent
JUDGE = HERE.parent / "fixtures/pdb/judge"
PDB_POINTS = os.environ.get("CDACQ_PDB_POINTS", "pdb_points")
PACKAGES = [pathlib.Path.home() / ".nuget/packages", pathlib.Path("/opt/nuget/packages")]
MOST = 40  # assemblies: enough, and no more than a minute


def found_assemblies():
    """Large PDBs first. A PDB in the older format of Windows is left out."""
    pdbs = [pdb for packages in PACKAGES if packages.is_dir() for pdb in packages.rglob("*.pdb")]
    pdbs = [pdb for pdb in pdbs if pdb.read_bytes()[:4] == b"BSJB" and pdb.with_suffix(".dll").exists()]
    return [pdb.with_suffix(".dll") for pdb in sorted(pdbs, key=lambda pdb: -pdb.stat().st_size)[:MOST]]


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def compare(judge, assembly):
    """The number of sequence points; None if anything differs."""
    listed = output_of("dotnet", judge, assembly).splitlines(keepends=True)
    expected = b"".join(line for line in listed if not line.startswith(b"kickoff"))  # names need no PDB
    found = output_of(PDB_POINTS, assembly.with_suffix(".pdb"))
    points = sum(line[:1].isdigit() for line in expected.splitlines())
    if expected == found:
        return points
    for number, (left, right) in enumerate(zip(expected.splitlines(), found.splitlines()), 1):
        if left != right:
            print(f"  {assembly}: line {number}: expected {left!r}, found {right!r}")
            break
    return None


def main():
    os.environ.update(DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1")
    with tempfile.TemporaryDirectory() as folder:
        try:
            judge = pathlib.Path(lab.program_command(folder, JUDGE)[-1])  # it has a PDB of its own
        except lab.Skip as reason:
            print(reason)
            return 1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED
        assemblies = [pathlib.Path(name) for name in sys.argv[1:]] or [judge, *found_assemblies()]
        counts = {assembly: compare(judge, assembly) for assembly in assemblies}
    for assembly, count in counts.items():
        print(f"  {'FAIL' if count is None else 'ok  '} {assembly.name}: {count or 0} sequence points")
    failed = [count for count in counts.values() if not count]
    print(f"{sum(filter(None, counts.values()))} sequence points of {len(counts)} PDBs, {len(failed)} PDBs differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
