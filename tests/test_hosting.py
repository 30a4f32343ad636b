"""What a host of repositories and OSS-Fuzz read: workflows, issue forms and the OSS-Fuzz project. They are YAML, what they
run is there, and no address is invented."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    sys.exit(77)  # Debian's python3-yaml

SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))


def load(path):
    return yaml.safe_load(path.read_text())


class Workflows(unittest.TestCase):
    def test_steps_run_what_is_there(self):
        programs = set()
        for path in (SOURCE / ".github/workflows").glob("*.yml"):
            workflow = load(path)
            self.assertTrue({"name", "permissions", "jobs"} <= workflow.keys(), path)
            self.assertIn("push", workflow[True])  # `on`, which is true in YAML 1.1
            for name, job in workflow["jobs"].items():
                self.assertTrue({"runs-on", "timeout-minutes", "steps"} <= job.keys(), name)
                for machine in job.get("strategy", {}).get("matrix", {}).get("machine", []):
                    self.assertIn(f"\n{machine}) ", (SOURCE / "scripts/test-host").read_text())
                for step in job["steps"]:
                    self.assertEqual(len({"run", "uses"} & step.keys()), 1, step)
                    programs |= set(re.findall(r"^((?:\.ci|scripts|tests|oss-fuzz)/[\w./-]+)", step.get("run", ""), re.MULTILINE))
        self.assertTrue({".ci/run", "scripts/test-host", "tests/packages/run", "oss-fuzz/check"} <= programs, programs)
        for program in programs:
            self.assertTrue(os.access(SOURCE / program, os.X_OK), program)


class Forms(unittest.TestCase):
    def test_they_ask_for_info(self):
        forms = [path for path in (SOURCE / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
        self.assertTrue(forms)
        for path in forms:
            form = load(path)
            self.assertTrue({"name", "description", "body"} <= form.keys(), path)
            fields = {field["id"]: field["attributes"]["label"] for field in form["body"] if field["type"] != "markdown"}
            self.assertIn("`cdacq info --json", fields["info"], path)


class Fuzzing(unittest.TestCase):
    def test_project(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [SOURCE / "oss-fuzz/project"]
            subprocess.run([*command, "https://host.invalid/a/cdacq.git", folder], check=True)
            project = load(pathlib.Path(folder, "project.yaml"))
            self.assertEqual((project["homepage"], project["main_repo"]),
                             ("https://host.invalid/a/cdacq", "https://host.invalid/a/cdacq.git"))
            maintainer = re.search(r"^Maintainer: .*<(.*)>$", (SOURCE / "debian/control").read_text(), re.MULTILINE)
            self.assertEqual(project["primary_contact"], maintainer[1])
            docker = pathlib.Path(folder, "Dockerfile").read_text()
            self.assertIn("https://host.invalid/a/cdacq.git cdacq\n", docker)
            self.assertNotIn("@", docker)
            self.assertTrue(os.access(os.path.join(folder, "build.sh"), os.X_OK))
            for wrong in ("git@host:cdacq", "https://host/a b"):
                done = subprocess.run([*command, wrong, folder], stderr=subprocess.DEVNULL, check=False)
                self.assertEqual(done.returncode, 64)

    def test_targets_have_what_they_start_from(self):
        targets = {path.stem.removeprefix("fuzz_") for path in (SOURCE / "tests/fuzz").glob("fuzz_*.c")}
        seeds = {path.name.removeprefix("fuzz_") for path in (SOURCE / "tests/fuzz/corpus").iterdir()}
        dictionaries = {path.stem for path in (SOURCE / "oss-fuzz/dictionaries").iterdir()}
        self.assertEqual((seeds - targets, dictionaries - targets, targets - seeds), (set(), set(), set()))


if __name__ == "__main__":
    unittest.main()
