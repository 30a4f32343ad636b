#!/usr/bin/env python3
"""Rows of many cores on a cluster of Dask: python3 buckets_dask.py SCHEDULER < cores.txt > rows.jsonl

A batch whose worker dies goes to another one. A batch that takes several workers with it is asked for core by core, so
that only the core that does it is a row with `error`.
"""
import json
import sys

from distributed import Client, as_completed
from distributed.scheduler import KilledWorker

BATCH = 50


def rows(cores):
    from cdacq.buckets import row  # pylint: disable=import-outside-toplevel  # on the worker

    return [row(core) for core in cores]


def submit(client, batches):
    return {future: batch for batch, future in zip(batches, client.map(rows, batches, pure=False))}


def main():
    cores = [line.rstrip("\n") for line in sys.stdin]
    with Client(sys.argv[1]) as client:
        waiting = submit(client, [cores[i:i + BATCH] for i in range(0, len(cores), BATCH)])
        done = as_completed(waiting)
        for future in done:
            batch = waiting.pop(future)
            error = future.exception() if future.status == "error" else None
            if error and len(batch) > 1 and isinstance(error, KilledWorker):
                again = submit(client, [[core] for core in batch])
                waiting.update(again)
                done.update(again)
                continue
            for row in [{"target": core, "error": str(error)} for core in batch] if error else future.result():
                print(json.dumps(row))


if __name__ == "__main__":
    main()
