"""test_symbol_server.py: --symbol-server against servers on this machine: files that are right, wrong, too large, cut off,
absent or slow, redirects, and what is left in the folder of fetched files."""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "cli"), str(TESTS / "python")]

import test_unconfirmed  # noqa: E402

TOOL = os.environ["CDACQ_TOOL"]
CORE = os.path.join(os.environ["CDACQ_FIXTURES"], "crash-net10-x64", "core")
NAME = "/crash/dying-net10.0/Dying.dll"
KEY = "F4615FC710000"
PATH = f"/dying.dll/{KEY}/dying.dll"
PLAIN_PATH = f"/Dying.dll/{KEY}/Dying.dll"
STEP = 1 << 16


class Handler(http.server.BaseHTTPRequestHandler):
    """Gives what the server's `answer` says: (status, headers, bytes), or a function that writes an answer itself."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.answer(self.path)
        self.close_connection = True
        if callable(answer):
            with contextlib.suppress(OSError):
                answer(self)
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(answer):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.answer, server.asked, server.ended = answer, [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/symbols"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def found(content):
    """An answer to each path that is asked for the assembly; nothing else is there."""
    return lambda path: (200, {}, content) if path == "/symbols" + PATH else (404, {}, b"")


def answer_of(function):
    """Answers for the assembly with a function that writes to the handler."""
    return lambda path: function if path == "/symbols" + PATH else (404, {}, b"")


@unittest.skipUnless(shutil.which("curl"), "curl is not installed")
class SymbolServer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        test_unconfirmed.take_out(CORE, "/Dying.dll", self.folder.name)
        self.file = pathlib.Path(self.folder.name + NAME).read_bytes()
        self.cache = os.path.join(self.folder.name, "home", "cache")

    def info(self, url, *arguments, environment=None, status=(0, 1)):
        names = [] if url is None else ["--symbol-server", url, "--symbol-cache", self.cache]
        run = subprocess.run([TOOL, "info", "--json", CORE, *names, *arguments], capture_output=True, check=False,
                             timeout=600, env={**os.environ, **(environment or {})})
        self.assertIn(run.returncode, status, run.stderr)
        self.assertRegex(run.stderr, rb"\A(cdacq: [^\x00-\x1f\x7f]+\n)*\Z")
        module = None
        if run.stdout:
            module = next(one for one in json.loads(run.stdout)["modules"] if one["path"] == NAME)
        return module, run.stderr.decode()

    def cached(self):
        """The files in the folder, by path. There is nothing else in it."""
        files = [file for file in pathlib.Path(self.cache).rglob("*") if not file.is_dir()]
        return {str(file.relative_to(self.cache)): file.read_bytes() for file in files}

    def refused(self, server, why, *arguments):
        """The file is not used, nothing is kept, and one line names the URL and says why."""
        module, told = self.info(server.url, *arguments)
        self.assertIsNone(module["local_path"])
        lines = [line for line in told.splitlines() if PATH.lower() in line.lower()]
        self.assertEqual(len(lines), 1, told)
        self.assertRegex(lines[0], f"^cdacq: {server.url}{PATH}: .*{why}")
        self.assertEqual(self.cached(), {})

    def test_right_file(self):
        with serving(found(self.file)) as server:
            module, told = self.info(server.url + "/")
            copy = os.path.join(self.cache, PATH[1:])
            self.assertEqual((module["local_path"], module["verified"], module["problem"]), (copy, True, None))
            self.assertNotIn("Dying.dll", told)
            self.assertEqual(self.cached(), {PATH[1:]: self.file})
            self.assertEqual(stat.S_IMODE(os.stat(copy).st_mode), 0o600)
            for folder in (self.cache, os.path.dirname(copy), os.path.dirname(os.path.dirname(copy))):
                self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
            asked = [path for path in server.asked if path == "/symbols" + PATH]
            self.assertEqual(len(asked), 1)
            self.info(server.url)
            self.assertEqual([path for path in server.asked if path == "/symbols" + PATH], asked)  # the copy
        module, _ = self.info(server.url)  # nobody answers any more
        self.assertTrue(module["verified"])

    def test_nobody_is_asked_unless_told(self):
        with serving(found(self.file)) as server:
            module, told = self.info(None)
            self.assertIn("--symbol-server", module["problem"])
            self.assertEqual((told, server.asked), ("", []))
            module, _ = self.info(None, environment={"CDACQ_SYMBOL_SERVER": f" {server.url}  http://127.0.0.1:1 ",
                                                     "XDG_CACHE_HOME": self.folder.name})
            self.assertEqual(module["local_path"], f"{self.folder.name}/cdacq{PATH}")
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.folder.name, "cdacq")).st_mode), 0o700)

    def test_name_as_it_is(self):
        """A plain file server has the names that `bundle` writes."""
        with serving(lambda path: (200, {}, self.file) if path == "/symbols" + PLAIN_PATH else (404, {}, b"")) as server:
            self.assertTrue(self.info(server.url)[0]["verified"])
            self.assertEqual(list(self.cached()), [PATH[1:]])

    def test_second_server(self):
        with serving(lambda _: (404, {}, b"")) as empty, serving(found(self.file)) as server:
            module, _ = self.info(empty.url, "--symbol-server", server.url)
            self.assertTrue(module["verified"])

    def test_server_after_a_wrong_file(self):
        """The servers after one whose file is refused are asked, each of them once."""
        wrong = found(b"MZ, or something like that")
        with serving(wrong) as first, serving(wrong) as second, serving(found(self.file)) as third:
            module, told = self.info(first.url, "--symbol-server", second.url, "--symbol-server", third.url)
            self.assertTrue(module["verified"])
            self.assertEqual(self.cached(), {PATH[1:]: self.file})
            for server in (first, second, third):
                self.assertEqual(server.asked.count("/symbols" + PATH), 1)
            for server in (first, second):
                self.assertRegex(told, f"(?m)^cdacq: {server.url}{PATH}: .*is not the file that was mapped")
        shutil.rmtree(self.cache)
        with serving(wrong) as first, serving(wrong) as second:
            module, _ = self.info(first.url, "--symbol-server", second.url)
            self.assertIsNone(module["local_path"])
            self.assertEqual(self.cached(), {})

    def test_wrong_file(self):
        wrong = bytearray(self.file)
        struct.pack_into("<I", wrong, struct.unpack_from("<I", wrong, 0x3c)[0] + 8, 1)  # the time stamp
        with serving(found(bytes(wrong))) as server:
            self.refused(server, "is not the file that was mapped: its time stamp is 00000001")
        with serving(found(b"MZ, or something like that")) as server:
            self.refused(server, "is not the file that was mapped")
        with serving(found(b"")) as server:
            self.refused(server, "it is empty")

    def test_bad_copy(self):
        """A copy that was damaged since is not used, and stays for its owner to look at."""
        with serving(found(self.file)) as server:
            self.info(server.url)
            copy = pathlib.Path(self.cache, PATH[1:])
            copy.write_bytes(b"MZ")
            module, told = self.info(server.url)
            self.assertIsNone(module["local_path"])
            self.assertRegex(told, f"(?m)^cdacq: {copy}: .*is not the file that was mapped")
            self.assertTrue(copy.exists())

    def test_absent(self):
        with serving(lambda _: (404, {}, b"no")) as server:
            module, told = self.info(server.url)
            self.assertIsNone(module["local_path"])
            self.assertRegex(told, rf"(?m)^cdacq: {server.url}/\S+: the server has no such file \(404\)(, nor \d+ others?)?$")
            self.assertEqual(told.count("\n"), 1)
            self.assertIn("/symbols" + PLAIN_PATH, server.asked)
            self.assertEqual(self.cached(), {})

    def test_refusal(self):
        with serving(lambda path: (403, {}, b"") if path == "/symbols" + PATH else (404, {}, b"")) as server:
            self.refused(server, "the server answers 403")

    def test_too_large(self):
        with serving(found(self.file)) as server:
            self.refused(server, "it is larger than 16 KiB", "--store-max", "16K")

        def endless(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            while not handler.server.ended.is_set():
                handler.wfile.write(bytes(STEP))
        with serving(answer_of(endless)) as server:
            self.refused(server, "it is larger than 1 MiB", "--store-max", "1M")

    def test_cut_off(self):
        def cut(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.file) + self.file[:5000])
        with serving(answer_of(cut)) as server:
            self.refused(server, "")
        with serving(found(self.file[:5000])) as server:
            self.refused(server, "is not the file that was mapped")

    def test_redirects(self):
        with serving(found(self.file)) as server:
            def moved(path):
                return (302, {"Location": server.url + path.removeprefix("/symbols")}, b"")
            with serving(moved) as other:
                self.assertTrue(self.info(other.url)[0]["verified"])
        shutil.rmtree(self.cache)
        with serving(answer_of(lambda handler: handler.wfile.write(
                b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + handler.path.encode() + b"\r\n\r\n"))) as server:
            self.refused(server, "redirect")
            self.assertEqual(server.asked.count("/symbols" + PATH), 6)
        secret = pathlib.Path(self.folder.name, "secret")
        secret.write_bytes(self.file)
        with serving(answer_of(lambda handler: handler.wfile.write(
                f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: file://{secret}\r\n\r\n".encode()))) as server:
            self.refused(server, "")

    def test_slow(self):
        """The wait for a server that says nothing, or stops, ends."""
        def silent(handler):
            handler.server.ended.wait(600)

        def stops(handler):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.file) + self.file[:5000])
            handler.server.ended.wait(600)
        for slow in (silent, stops):
            with serving(answer_of(slow)) as server:
                self.refused(server, "no data came for 5 seconds")

    def test_no_server(self):
        """After three requests without an answer, no more are made."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/symbols"
            moved = pathlib.Path(self.folder.name, "core")
            moved.write_bytes(pathlib.Path(CORE).read_bytes().replace(b"/usr/share/dotnet/", b"/usr/gone/dotnet_/"))
            run = subprocess.run([TOOL, "info", moved, "--symbol-server", url, "--symbol-cache", self.cache],
                                 capture_output=True, check=False, timeout=600)
        lines = run.stderr.decode().splitlines()
        self.assertEqual(len(lines), 4, lines)
        for line in lines[:3]:
            self.assertRegex(line, f"^cdacq: {url}/.*/.*: .*[Cc]onnect")
        self.assertRegex(lines[3], f"^cdacq: {url}: too often, there was no answer")

    def test_no_curl(self):
        module, told = self.info("http://127.0.0.1:1", environment={"PATH": self.folder.name})
        self.assertIsNone(module["local_path"])
        self.assertEqual(told.count("\n"), 1, told)
        self.assertRegex(told, "^cdacq: http://127.0.0.1:1/.*: the program curl is not installed$")

    def test_wrong_urls(self):
        for url in ("", "example.com", "file:///etc", "ftp://example.com", "http://", "https://a b", "http://a/\x01",
                    "http://a/?key=", "http://a/#", "/etc/passwd", "http://" + "a" * 1020):
            _, told = self.info(url, status=(2,))
            self.assertRegex(told, "^cdacq: symbol server '.*': expected a URL", url)

    def test_folder_of_others(self):
        os.makedirs(self.cache)
        os.chmod(self.cache, 0o777)
        with serving(found(self.file)) as server:
            module, told = self.info(server.url)
            self.assertIsNone(module["local_path"])
            self.assertRegex(told, "others may write to it")
            self.assertEqual((told.count("\n"), server.asked), (1, []))

    def test_path_of_others(self):
        """Others could put another folder in the place of one that is above it, or of what a link leads through."""
        above = os.path.dirname(self.cache)
        os.makedirs(self.cache, 0o700)
        link = os.path.join(self.folder.name, "link")
        os.symlink(above, link)
        with serving(found(self.file)) as server:
            for self.cache in (self.cache, link + "/cache", link + "/other/cache"):
                os.chmod(above, 0o777)
                _, told = self.info(server.url)
                self.assertRegex(told, "others may write to it")
                self.assertEqual((told.count("\n"), server.asked), (1, []))
                os.chmod(above, 0o1777)
                self.assertTrue(self.info(server.url)[0]["verified"])
                server.asked.clear()
                shutil.rmtree(self.cache)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder away")
    def test_home_of_another_user(self):
        """As sudo may run it: nothing is written there."""
        home = pathlib.Path(self.folder.name, "other")
        home.mkdir(0o700)
        os.chown(home, 65534, 65534)
        with serving(found(self.file)) as server:
            _, told = self.info(None, environment={"CDACQ_SYMBOL_SERVER": server.url, "HOME": str(home),
                                                   "XDG_CACHE_HOME": ""})
            self.assertRegex(told, "belongs to others")
            self.assertEqual((list(home.iterdir()), server.asked), ([], []))

    def test_parent_without_children(self):
        """Whoever starts the tool may ignore SIGCHLD."""
        with serving(found(self.file)) as server:
            ignore = ("import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
                      "os.execv(sys.argv[1], sys.argv[1:])")
            run = subprocess.run([sys.executable, "-c", ignore, TOOL, "info", CORE, "--symbol-server", server.url,
                                  "--symbol-cache", self.cache], capture_output=True, check=False, timeout=600)
            self.assertNotIn(b"how curl ended", run.stderr)
            self.assertEqual(self.cached(), {PATH[1:]: self.file})

    def test_names_of_strangers(self):
        """A core names a file as it likes: what becomes of it is one component of a URL, and of a path."""
        for name in (b"Dying?.dl", b"..%2f..%2", b"a b\tc/../", b"../../../", b"\xff\n#&;$`'|"):
            self.assertEqual(len(name), len(b"Dying.dll"))
            core = pathlib.Path(self.folder.name, "core")
            core.write_bytes(pathlib.Path(CORE).read_bytes().replace(b"/Dying.dll\0", b"/" + name + b"\0"))
            with serving(lambda _: (200, {}, self.file)) as server:
                run = subprocess.run([TOOL, "info", core, "--symbol-server", server.url, "--symbol-cache", self.cache],
                                     capture_output=True, check=False, timeout=600)
                self.assertIn(run.returncode, (0, 1))
                for path in server.asked:
                    self.assertRegex(path, r"^/symbols/(?!\.\.?/)[\w.~%-]+/[\w.~%-]+/(?!\.\.?$)[\w.~%-]+$")
            for file in self.cached():
                self.assertRegex(file, r"^[\w.~%-]+/[\w.~%-]+/[\w.~%-]+$")
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.cache))), ["cache"])


if __name__ == "__main__":
    unittest.main()
