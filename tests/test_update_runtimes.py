"""scripts/update-runtimes with a program in place of dotnet, whose package sources are invented."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
RUNTIME, COMPILER = "Microsoft.NETCore.App.Runtime.linux-x64", "Microsoft.Net.Compilers.Toolset"
PROPS = """<Project>
  <!-- Net8Runtime stays here as it is. -->
  <PropertyGroup>
    <Net8Runtime>8.0.9</Net8Runtime>
    <Net11Runtime>11.0.0</Net11Runtime>
    <OlderRuntimes>8.0.1;8.0.2</OlderRuntimes>
    <CompilerToolset>5.9.0</CompilerToolset>
  </PropertyGroup>
</Project>
"""
# What it has is in DOTNET_HAS: versions by package. With "search": false, only a restore finds them, which fails, as it
# does for packages that no project may refer to.
DOTNET = f"""#!{sys.executable}
import json, os, pathlib, re, sys
has = json.loads(os.environ["DOTNET_HAS"])
if sys.argv[1] == "package":
    found = [{{"id": sys.argv[3].lower(), "version": version}} for version in has.get(sys.argv[3], [])]
    print(json.dumps({{"searchResult": [{{"sourceName": "a", "packages": []}}, {{"sourceName": "b", "packages": found}}]}})
          if has["search"] else "error: the source cannot be searched")
    sys.exit()
folder = pathlib.Path(sys.argv[2])
package, pattern = re.search('Include="(.*?)" Version="(.*?)"', (folder / "newest.csproj").read_text()).groups()
found = [version for version in has.get(package, []) if version.startswith(pattern.rstrip("*")) and "-" not in version]
(folder / "obj").mkdir()
if found:
    newest = max(found, key=lambda version: [int(part) for part in version.split(".")])
    (folder / "obj/project.assets.json").write_text(json.dumps({{"libraries": {{package + "/" + newest: {{}}, "NETStandard.Library/2.0.3": {{}}}}}}))
sys.exit(1)
"""


class UpdateRuntimes(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.props = self.work / "runtimes.props"
        self.props.write_text(PROPS)
        (self.work / "dotnet").write_text(DOTNET)
        (self.work / "dotnet").chmod(0o755)

    def run_script(self, has, *arguments):
        environment = dict(os.environ, PATH=f"{self.work}:{os.environ['PATH']}", CDACQ_RUNTIMES_PROPS=str(self.props),
                           DOTNET_HAS=json.dumps({"search": True} | has))
        return subprocess.run([SOURCE / "scripts/update-runtimes", *arguments], env=environment, capture_output=True, text=True,
                              check=False)

    def test_moves_forward(self):
        has = {RUNTIME: ["7.0.20", "8.0.8", "8.0.10", "8.0.9", "8.0.11-rc.1.1", "11.0.0", "12.0.0-preview.2.3"],
               COMPILER: ["5.9.0", "5.10.0", "6.0.0-1.final"]}
        for search, said in (True, ""), (False, "no package source can be searched: restores floating versions instead\n"):
            self.props.write_text(PROPS)
            done = self.run_script({**has, "search": search}, "--check")
            self.assertEqual((done.returncode, self.props.read_text()), (1, PROPS))
            done = self.run_script({**has, "search": search})
            self.assertEqual((done.returncode, done.stderr), (0, said))
            self.assertEqual(done.stdout, ".NET 8: 8.0.9 -> 8.0.10\nthe compiler: 5.9.0 -> 5.10.0\n")
            self.assertEqual(self.props.read_text(), PROPS.replace(">8.0.9<", ">8.0.10<").replace("5.9.0", "5.10.0"))
            done = self.run_script({**has, "search": search}, "--check")
            self.assertEqual((done.returncode, done.stdout), (0, "all versions are the newest\n"))

    def test_never_back(self):
        done = self.run_script({RUNTIME: ["8.0.8", "11.0.0"], COMPILER: ["4.0.0"]})
        self.assertEqual((done.returncode, done.stdout, self.props.read_text()), (0, "all versions are the newest\n", PROPS))

    def test_a_newer_line_is_reported(self):
        done = self.run_script({RUNTIME: ["8.0.9", "10.0.1", "11.0.0", "12.0.0", "12.0.1"], COMPILER: ["5.9.0"]})
        self.assertEqual(done.stdout, "all versions are the newest\n.NET 12 is there, too; the tests do not know it yet\n")
        self.assertEqual(self.props.read_text(), PROPS)

    def test_a_source_that_lacks_something(self):
        for has in ({RUNTIME: ["8.0.10"], COMPILER: ["5.10.0"]}, {}):
            for search in True, False:
                done = self.run_script({**has, "search": search})
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"(?m)^no package source has a release of .*\.NET 11.*; runtimes\.props is left as it was$")
                self.assertEqual(self.props.read_text(), PROPS)

    def test_usage(self):
        done = self.run_script({}, "--help")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("scripts/update-runtimes [--check]", done.stderr)


if __name__ == "__main__":
    unittest.main()
