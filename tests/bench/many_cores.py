#!/usr/bin/env python3
"""Rows of many cores by GNU parallel, Slurm and Dask: each core has one row, and how many a second.

    /usr/bin/python3 tests/bench/many_cores.py --cores 10000 --engines parallel,slurm,dask [CORE...]

The cores are links to CORE..., or to the bundled cores of processes that died, one in a hundred is damaged, and a
worker is killed in the middle of each run. Engines are Debian's packages parallel, slurm-wlm and python3-distributed;
Slurm needs root, and gets a controller and a node of its own.
"""
import argparse
import contextlib
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import cdacq.buckets  # noqa: E402

CONTRIB = ROOT / "contrib/buckets"
DAMAGED = 100  # one core of so many
SLURM_TASKS = 20


def damage(source, path, at):
    """A core that was cut, has no header, or has some bytes of another file in it."""
    data = bytearray(pathlib.Path(source).read_bytes())
    kind = at // DAMAGED % 3
    if kind == 0:
        data = data[:len(data) // 3]
    elif kind == 1:
        data[:64] = bytes(64)
    else:
        generator = random.Random(at)
        for _ in range(2000):
            data[generator.randrange(64, len(data))] = generator.randrange(256)
    path.write_bytes(data)


def make_cores(folder, sources, count):
    folder.mkdir()
    first = []
    for i, source in enumerate(sources):
        copy = folder.parent / f"source-{i}"
        shutil.copyfile(source, copy)
        first.append(copy)
    for i in range(count):
        path = folder / f"{i:05}.core"
        if i % DAMAGED == DAMAGED - 1:
            damage(first[i % len(first)], path, i)
        else:
            os.link(first[i % len(first)], path)
    return [str(folder / f"{i:05}.core") for i in range(count)]


@contextlib.contextmanager
def killer(name, after):
    """Kills the first process whose command line contains `name`, some seconds after it was first seen."""
    killed, ended = [], threading.Event()

    def find():
        found = subprocess.run(["pgrep", "-f", name], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        return [int(pid) for pid in found]

    def kill():
        while not find():
            if ended.wait(0.2):
                return
        while not killed and not ended.wait(after):
            for pid in reversed(find()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    break

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def by_parallel(work, workers):
    rows = work / "rows.jsonl"
    command = ["parallel", f"--jobs={workers}", "-n", "50", "--retries", "3", "--will-cite", sys.executable, "-P", "-m",
               "cdacq.buckets", "rows", "::::", str(work / "cores.txt")]
    with open(rows, "wb") as out:
        subprocess.run(command, stdout=out, check=True)
    return [rows]


# ---- Slurm ----

SLURM = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={work}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/spool
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/slurmd.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmdLogFile={work}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxArraySize=10001
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def slurm(work, workers):
    """The environment of a cluster of one node."""
    conf = work / "slurm.conf"
    for name in ("state", "spool"):
        (work / name).mkdir()
    conf.write_text(SLURM.format(work=work, host=socket.gethostname(), ports=free_ports(2),
                                 cpus=max(workers, os.cpu_count())))
    key = work / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    socket_path = work / "munge.socket"
    daemons = [
        ["munged", "-F", f"--key-file={key}", f"--socket={socket_path}", f"--pid-file={work}/munge.pid",
         f"--log-file={work}/munge.log", f"--seed-file={work}/munge.seed", "--force"],
        ["slurmctld", "-D", "-f", str(conf)],
        ["slurmd", "-D", "-f", str(conf), "-N", socket.gethostname()],
    ]
    environment = dict(os.environ, SLURM_CONF=str(conf))
    running = []
    try:
        for command in daemons:
            running.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL,
                                            stderr=open(work / f"{command[0]}.err", "wb")))
            time.sleep(1)
        yield environment
    finally:
        for daemon in reversed(running):
            daemon.terminate()
            daemon.wait()


def by_slurm(work, workers):
    rows = work / "rows"
    rows.mkdir()
    waiting = range(SLURM_TASKS)
    with slurm(work, workers) as environment:
        for _ in range(3):  # as the recipe says: tasks that left no file are submitted again
            numbers = ",".join(map(str, waiting))
            subprocess.run(["sbatch", "--wait", f"--array={numbers}%{workers}", str(CONTRIB / "buckets.sbatch"),
                            str(work / "cores.txt"), str(rows), str(SLURM_TASKS)],
                           env=environment, check=False, stdout=subprocess.DEVNULL)
            waiting = [i for i in range(SLURM_TASKS) if not (rows / f"{i}.jsonl").exists()]
            if not waiting:
                break
    return sorted(rows.glob("*.jsonl"))


# ---- Dask ----

def by_dask(work, workers):
    rows = work / "rows.jsonl"
    address = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    log = open(work / "dask.log", "wb")

    def start(program, *options):
        return subprocess.Popen([sys.executable, "-m", f"distributed.cli.{program}", *options, "--no-dashboard"],
                                stdout=log, stderr=log)

    scheduler = start("dask_scheduler", "--host", address)
    nannies = [start("dask_worker", address, "--nthreads", "1", "--local-directory", str(work / f"worker-{i}"))
               for i in range(workers)]
    try:
        with open(rows, "wb") as out, open(work / "cores.txt", "rb") as cores:
            command = [sys.executable, str(CONTRIB / "buckets_dask.py"), address]
            subprocess.run(command, stdin=cores, stdout=out, check=True)
    finally:
        for process in [*nannies, scheduler]:
            process.terminate()
            process.wait()
    return [rows]


ENGINES = {  # what runs it, and what a worker's command line contains
    "parallel": (by_parallel, "cdacq.buckets rows"),
    "slurm": (by_slurm, "cdacq.buckets rows"),
    "dask": (by_dask, "multiprocessing.spawn"),
}


def processor_time():
    """Of all processes that have ended, with what they waited for. Those of Slurm are not: it detaches them."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_engine(name, cores, work, workers, kill_after):
    run, worker = ENGINES[name]
    work.mkdir()
    (work / "cores.txt").write_text("".join(core + "\n" for core in cores))
    began, before = time.monotonic(), processor_time()
    with killer(worker, kill_after) as killed:
        files = run(work, workers)
    seconds, worked = time.monotonic() - began, processor_time() - before
    rows = cdacq.buckets.read_rows(map(str, files))
    failed = sum("error" in row for row in rows)
    complete = {row["target"] for row in rows} == set(cores)
    print(f"{name}: {workers} workers, {len(rows)} rows of {len(cores)} cores, {failed} with an error, "
          f"{len(killed)} worker killed, {len(cores) / seconds:.0f} cores a second"
          f"{'' if name == 'slurm' else f', {1000 * worked / len(cores):.1f} ms of processor time a core'}"
          f"{'' if complete and killed else ': FAILED'}", flush=True)
    return complete and bool(killed), cdacq.buckets.buckets(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, default=10000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--workers", default="1,2", help="for each engine one run with so many (1,2)")
    parser.add_argument("--kill-after", type=float, default=5, metavar="SECONDS")
    parser.add_argument("sources", nargs="*", metavar="CORE")
    arguments = parser.parse_args()
    sources = arguments.sources or sorted(map(str, ROOT.glob("tests/fixtures/crash-*/core")))
    os.environ["PYTHONPATH"] = str(ROOT / "python")
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    good, found = True, []
    with tempfile.TemporaryDirectory(prefix="cdacq-many-") as folder:
        work = pathlib.Path(folder)
        cores = make_cores(work / "cores", sources, arguments.cores)
        for name in arguments.engines.split(","):
            for workers in map(int, arguments.workers.split(",")):
                passed, table = run_engine(name, cores, work / f"{name}-{workers}", workers, arguments.kill_after)
                good &= passed
                found.append([(bucket.signature, bucket.count) for bucket in table])
    same = all(table == found[0] for table in found)
    if not same:
        print(*found, sep="\n")
    print("all runs agree" if same else "the runs DIFFER")
    return 0 if good and same else 1


if __name__ == "__main__":
    sys.exit(main())
