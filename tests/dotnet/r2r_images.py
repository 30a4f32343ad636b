#!/usr/bin/env python3
"""Real ReadyToRun images of every architecture that crossgen2 compiles for, each function of which test_r2r_images asks
for.

    r2r_images.py                 builds all, and runs the test on them
    r2r_images.py --fixtures OUT  builds those that are bundled in tests/fixtures/r2r

Beside each image goes what r2r_image.py reads of it and of the compiler's map. Exit 77 (skipped) where dotnet is
missing, unless CDACQ_REQUIRE_DOTNET=1: then that is a failure.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import lab
import r2r_image

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(HERE), "fixtures", "r2r", "source")
TARGETS = [("linux", "x64"), ("linux", "arm"), ("linux", "arm64"), ("windows", "x86")]
FUNCTION_FIELDS = 15  # of a line of r2r_image.py
FRAMEWORK = "System.Text.Json.dll"  # some thousand functions of all kinds
FRAMEWORK_ASYNC = "System.IO.Compression.dll"  # since .NET 11, the runtime suspends its async methods
# More than the 18 bits of a length in unwind data can tell, on arm and arm64: the method is described in fragments. It
# takes crossgen2 half a minute for each.
HUGE_STATEMENTS = 36000
HUGE_TARGETS = [("linux", "arm"), ("linux", "arm64")]

HUGE = """namespace Ahead;
public static class Huge
{{
    static int F(int a, int b, int c) => a * b + c;
    public static int Method(int a, int b, int[] s)
    {{
        try
        {{
{body}
        }}
        catch (System.IndexOutOfRangeException) {{ a = -1; }}
        finally {{ System.Console.WriteLine(a); }}
        return a;
    }}
    public static int After(int a) => F(a, a, a);
}}
"""


def build(work, source, name, constant="", runtime="installed"):
    """The assembly of a project's folder. For .NET 11, the runtime suspends its async methods."""
    folder = lab.build(work, source, runtime, OutputType="Library", AssemblyName=name, DefineConstants=constant, RuntimeAsync="on")
    return os.path.join(folder, name + ".dll")


def build_huge(work):
    folder = os.path.join(work, "huge-source")
    os.makedirs(folder)
    body = "\n".join(f"            a = F(a + {i % 97}, b ^ {i % 89}, s[{i % 7}]);" for i in range(HUGE_STATEMENTS))
    with open(os.path.join(folder, "Huge.cs"), "w", encoding="ascii") as file:
        file.write(HUGE.format(body=body))
    with open(os.path.join(SOURCE, "Ahead.csproj"), encoding="utf-8") as project:
        with open(os.path.join(folder, "Huge.csproj"), "w", encoding="utf-8") as file:
            file.write(project.read())
    return build(work, folder, "Huge")


def compile_image(compile_, assembly, out, name, target, *options):
    """OUT/NAME.dll and what is expected of it, OUT/NAME.txt."""
    system, architecture = target
    image = os.path.join(out, name + ".dll")
    compile_(assembly, "-o", image, "--map", "--mapcsv", *options, system=system, architecture=architecture)
    with open(os.path.join(out, name + ".txt"), "w", encoding="ascii") as file:
        r2r_image.write_expected(image, os.path.join(out, name + ".map.csv"), file)
    for suffix in (".map", ".map.csv", ".nodestats.csv"):
        os.remove(os.path.join(out, name + suffix))


def build_bundled(work, out):
    compile_ = lab.crossgen2(work)
    assembly = build(work, SOURCE, "Ahead")
    for target in TARGETS:
        compile_image(compile_, assembly, out, "-".join(target), target)
    compile_image(compile_, assembly, out, "linux-x64-split", TARGETS[0], "--hot-cold-splitting")
    # Where the body of a method has cold code too, crossgen2 10.0 ends with "Specified method is not supported" for
    # arm64: a relocation that it cannot write.
    assembly = build(work, SOURCE, "Ahead", "FUNCLETS_ALONE_ARE_COLD")
    compile_image(compile_, assembly, out, "linux-arm64-split", ("linux", "arm64"), "--hot-cold-splitting")
    compile_async = lab.crossgen2(work, lab.NEWEST[11])
    assembly = build(work, SOURCE, "Ahead", runtime=lab.NEWEST[11])
    for target in TARGETS:
        compile_image(compile_async, assembly, out, "async-" + "-".join(target), target)
    compile_image(compile_async, assembly, out, "async-linux-x64-split", TARGETS[0], "--hot-cold-splitting")
    return compile_, compile_async


def build_all(work, out):
    compile_, compile_async = build_bundled(work, out)
    framework = os.path.join(lab.framework_of(work, lab.NEWEST[11])[0], FRAMEWORK_ASYNC)
    for target in TARGETS:
        compile_image(compile_async, framework, out, "framework-async-" + "-".join(target), target)
    compile_image(compile_async, framework, out, "framework-async-linux-x64-split", TARGETS[0], "--hot-cold-splitting")
    huge, framework = build_huge(work), os.path.join(lab.installed_framework()[0], FRAMEWORK)
    for target in HUGE_TARGETS:
        compile_image(compile_, huge, out, "huge-" + "-".join(target), target)
    for target in TARGETS:
        compile_image(compile_, framework, out, "framework-" + "-".join(target), target)
    compile_image(compile_, framework, out, "framework-linux-x64-split", TARGETS[0], "--hot-cold-splitting")


def count_functions(out, name):
    with open(os.path.join(out, name), encoding="ascii") as file:
        lines = [line.split() for line in file if not line.startswith("#")]
    functions = [line for line in lines if len(line) == FUNCTION_FIELDS]
    fragments = sum(line[0] != line[7] and line[8] == "0" for line in functions)
    stubs = sum(int(line[6], 16) == r2r_image.RID_OF_STUB for line in functions)
    print(f"  {name[:-4]}: {len(functions)} functions, {sum(line[8] == '1' for line in functions)} funclets, "
          f"{sum(line[9] == '1' for line in functions)} filters, {fragments} fragments, {stubs} stubs, "
          f"{len(lines) - len(functions)} clauses")
    return fragments, stubs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", metavar="OUT")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdacq-r2r-") as work:
        if arguments.fixtures:
            build_bundled(work, arguments.fixtures)
            return 0
        out = os.path.join(work, "images")
        os.makedirs(out)
        build_all(work, out)
        counts = {name: count_functions(out, name) for name in sorted(os.listdir(out)) if name.endswith(".txt")}
        if not counts["huge-linux-arm.txt"][0] or not counts["huge-linux-arm64.txt"][0]:
            print("the huge method is not described in fragments: HUGE_STATEMENTS is too small")
            return 1
        if not all(stubs for name, (_, stubs) in counts.items() if "async-" in name):
            print("an image of .NET 11 has no stub that continues an async method")
            return 1
        test = os.path.join(os.environ.get("CDACQ_BUILD_DIR", "."), "tests", "test_r2r_images")
        return subprocess.run([test], env=dict(os.environ, CDACQ_R2R_IMAGES=out), check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except lab.Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(1 if os.environ.get("CDACQ_REQUIRE_DOTNET") == "1" else lab.SKIPPED)
