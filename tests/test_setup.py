"""scripts/setup where there is no apt-get: it needs nothing where the build has what it needs, and else names that."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("CDACQ_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[1]))
NEEDED = ["bash", "cc", "make", "cmake", "pkg-config", "python3"]


class OtherSystems(unittest.TestCase):
    def run_setup(self, names, *packages, modules="libcjson check"):
        """With a folder that has these programs and no other. pkg-config knows `modules`."""
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                path = pathlib.Path(folder, name)
                if name == "bash":
                    path.symlink_to(shutil.which("bash"))
                    continue
                known = f'for name in "${{@:2}}"; do [[ " {modules} " == *" $name "* ]] || exit 1; done'
                path.write_text(f"#!{folder}/bash\n{known}\n")
                path.chmod(0o755)
            return subprocess.run([shutil.which("bash"), SOURCE / "scripts/setup", *packages], env={"PATH": folder},
                                  capture_output=True, text=True, check=False)

    def test_all_is_there(self):
        done = self.run_setup(NEEDED)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_something_is_missing(self):
        for name in NEEDED[1:]:
            with self.subTest(name):
                done = self.run_setup([other for other in NEEDED if other != name])
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("no apt-get here", done.stderr)
                self.assertIn("libcjson-dev", done.stderr)
        self.assertEqual(self.run_setup(NEEDED, modules="check").returncode, 1)

    def test_packages_by_name_cannot_be_looked_for(self):
        done = self.run_setup(NEEDED, "git")
        self.assertEqual(done.returncode, 1)
        self.assertIn("git", done.stderr)


if __name__ == "__main__":
    unittest.main()
