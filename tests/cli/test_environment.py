"""`info --environment`: of a running process and of a core; values that look secret are masked. A snapshot has neither the
environment nor, unless it is asked for, the command line."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.environ.get("CDACQ_TOOL", "cdacq")
FIXTURE = sorted(glob.glob(os.path.join(TESTS, "fixtures", "crash-net10*", "core")))[0]
SECRET = {name: "hidden" for name in (
    "DB_PASSWORD", "GITHUB_TOKEN", "ApiKey", "API_KEY", "AWS_SECRET_ACCESS_KEY", "ConnectionStrings__Main", "MYSQL_PWD",
    "client-secret", "KESTREL__PASS", "SENTRY_DSN", "AZURE_SAS", "ADO_PAT", "PASSPHRASE")} | {
        "MAIN": "Server=db;User Id=sa;Password=hidden", "QUEUE": "amqp://guest:hidden@host/v", "STORE": "AccountKey=hidden"}
PLAIN = {"PATH": "/usr/bin:/bin", "PWD": "/tmp", "COMPATIBILITY": "x", "PATTERN": "a=b", "EMPTY": "", "TEXT": "ä\tb",
         "ASPNETCORE_URLS": "http://localhost:5000/a@b"}


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, encoding="utf-8", check=False, timeout=120)


class Environment(unittest.TestCase):
    def check(self, target):
        text, done = run("info", "--environment", target), run("info", "--environment", "--json", target)
        self.assertEqual((text.returncode, done.returncode), (0, 0), text.stderr + done.stderr)
        self.assertNotIn("hidden", text.stdout + done.stdout)
        items = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({item["name"]: item["value"] for item in items if not item["masked"]}, PLAIN | {"TEXT": "ä\\x09b"})
        self.assertEqual({item["name"] for item in items if item["masked"]}, set(SECRET))
        self.assertIn("\nDB_PASSWORD=***\n", "\n" + text.stdout)

    def test_process_and_core(self):
        process = subprocess.Popen([shutil.which("sleep"), "100"], env=SECRET | PLAIN)
        try:
            while not pathlib.Path(f"/proc/{process.pid}/environ").read_bytes():  # until it has executed the program
                time.sleep(0.01)
            self.check(str(process.pid))
            if not shutil.which("gcore"):
                return
            with tempfile.TemporaryDirectory() as folder:
                subprocess.run(["gcore", "-o", f"{folder}/core", str(process.pid)], capture_output=True, check=True)
                self.check(f"{folder}/core.{process.pid}")
        finally:
            process.kill()
            process.wait()

    def test_a_target_without_it(self):
        done = run("info", "--environment", FIXTURE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("lacks the environment", done.stderr)

    def test_arguments_of_a_snapshot(self):
        arguments = json.loads(run("report", "--json", FIXTURE).stdout)["arguments"]
        self.assertTrue(arguments)
        with tempfile.TemporaryDirectory() as folder:
            for options, kept in (([], None), (["--arguments"], arguments)):
                path = f"{folder}/core{len(options)}"
                self.assertLessEqual(run("snapshot", "--stacks", *options, FIXTURE, "-o", path).returncode, 1)
                process = json.loads(run("report", "--json", path).stdout)
                self.assertEqual(process["arguments"], kept)
                self.assertIn("program", process)
        self.assertEqual(run("snapshot", "--arguments", FIXTURE, "-o", "/nowhere/core").returncode, 64)


if __name__ == "__main__":
    unittest.main(verbosity=0)
