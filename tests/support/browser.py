"""browser.py: a headless Chromium that is driven through a pipe, for tests of files that people open in it."""

import contextlib
import fcntl
import functools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ["chromium", "chromium-browser", "google-chrome"]
FIRST_FREE = 10  # the browser uses the descriptors 3 and 4
DEVTOOLS = "devtools://devtools/bundled/inspector.html"
READY_SECONDS, START_SECONDS = 200, 60

# What DevTools' memory panel does with the files that are chosen: it loads them in its worker, which checks them and
# finds what dominates what. Of the first file: its classes. Of the last one: how many more objects of each it has.
READ_SNAPSHOTS = """(async () => {
    const {HeapSnapshotView} = await import("./panels/profiler/profiler.js");
    const {HeapSnapshotModel} = await import("./models/heap_snapshot/heap_snapshot.js");
    const type = new HeapSnapshotView.HeapSnapshotProfileType();
    const snapshots = [];
    for (const file of document.querySelector("#given").files) {
        const profile = new HeapSnapshotView.HeapProfileHeader(null, type);
        const error = await profile.loadFromFile(file);
        if (error)
            throw error;
        snapshots.push(await profile.loadPromise);
    }
    const [first, last] = [snapshots[0], snapshots.at(-1)];
    const classes = Object.values(await first.aggregatesWithFilter(new HeapSnapshotModel.NodeFilter()));
    const retainers = {};
    for (const {name, idxs} of classes) {
        const edges = await first.createRetainingEdgesProvider(idxs[0]).serializeItemsRange(0, 20);
        retainers[name] = edges.items.map(edge => [edge.name, edge.node.name]);
    }
    const difference = await last.calculateSnapshotDiff("first", await first.aggregatesForDiff(await last.interfaceDefinitions()));
    return {
        classes: Object.fromEntries(classes.map(c => [c.name, [c.count, c.self]])),
        retained: Object.fromEntries(classes.map(c => [c.name, c.maxRet])),
        retainers,
        growth: Object.fromEntries(Object.values(difference).map(d => [d.name, d.countDelta])),
    };
})()"""


class BrowserError(Exception):
    """What the browser did not do."""


class Page:
    """One page. Commands of the DevTools protocol are messages of JSON that end with NUL."""

    def __init__(self, write, read, patience):
        self._write, self._read, self._patience = write, read, patience
        self._buffer, self._number, self._session = b"", 0, None
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise BrowserError("the browser does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise BrowserError("the browser ended")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _send(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._patience
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url):
        """Opens a page, and returns when all of it is loaded."""
        answer = self._send("Page.navigate", url=url)
        if "errorText" in answer:
            raise BrowserError(f"{url}: {answer['errorText']}")
        deadline = time.monotonic() + READY_SECONDS
        while self.evaluate("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise BrowserError(f"{url} is not loaded")
            time.sleep(0.05)

    def evaluate(self, expression):
        """The value of an expression of JavaScript, which may be a promise."""
        answer = self._send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"])[:1000])
        return answer["result"].get("value")

    def read_snapshots(self, *paths):
        """What DevTools has of heap snapshots: READ_SNAPSHOTS."""
        self.open(DEVTOOLS)
        self.evaluate("document.body.insertAdjacentHTML('beforeend', '<input type=file multiple id=given>')")
        root = self._send("DOM.getDocument")["root"]["nodeId"]
        node = self._send("DOM.querySelector", nodeId=root, selector="#given")["nodeId"]
        self._send("DOM.setFileInputFiles", nodeId=node, files=list(paths))
        return self.evaluate(READ_SNAPSHOTS)


def find():
    """The program; None: there is none."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


@functools.cache
def works():
    """Whether there is a browser that starts here, as not in every container."""
    try:
        with page(START_SECONDS):
            return True
    except (BrowserError, OSError):
        return False


def _high_pipe():
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for end in ends]
    for end in ends:
        os.close(end)
    return high


@contextlib.contextmanager
def page(patience=120):
    """A page of a browser of its own; an answer may take `patience` seconds."""
    program = find()
    if not program:
        raise BrowserError("there is no browser")
    with tempfile.TemporaryDirectory(prefix="cdacq-browser-", ignore_cleanup_errors=True) as folder:
        to_browser, from_browser = _high_pipe(), _high_pipe()

        def give_pipes():
            os.dup2(to_browser[0], 3)
            os.dup2(from_browser[1], 4)

        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        with subprocess.Popen(command, preexec_fn=give_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            os.close(to_browser[0])
            os.close(from_browser[1])
            try:
                yield Page(to_browser[1], from_browser[0], patience)
            finally:
                process.kill()
                os.close(to_browser[1])
                os.close(from_browser[0])
