#!/usr/bin/env python3
"""Random addresses of a process, put to cdacq and to the runtime's own debugger services. They may differ in two ways,
and each difference has to be proven by what neither of them says:

 - outside functions: the services name an address where no function is. Proof: no entry of the image's own table of
   functions covers it, or no live record of the runtime's jitdump does.
 - not prepared: for ReadyToRun code that the runtime has not prepared yet, the services name the nearest prepared
   method before it, or none. Proof: where cdacq says that the method starts, the image's own table has a function,
   followed by GC info with the length that cdacq reports; and its rid, if the table of methods has one, is cdacq's.

    random_ips.py CDACQ LIBMSCORDACCORE CORE JITDUMP RELEASED [COUNT]
"""

import bisect
import collections
import json
import os
import random
import subprocess
import sys

import dac
from jitdump import live_records, read_loads, read_released
from r2r_image import Functions, Image, gc_code_length, gc_version, methoddefs

SEED, COUNT = 20261121, int(os.environ.get("CDACQ_RANDOM_IPS", "50000"))


class LoadedImage:
    """An image and where it is loaded."""

    def __init__(self, path, base):
        with open(path, "rb") as file:
            self.image = Image(file.read())
        self.base, self.functions, self.rids = base, Functions(self.image), methoddefs(self.image)
        self.begins = [self.functions.begin(i) for i in range(len(self.functions.entries))]
        self.end = self.begins[-1] + self.functions.length(len(self.begins) - 1)

    def function_at(self, address):
        """The number of the function that covers an address, or None."""
        i = bisect.bisect_right(self.begins, address - self.base) - 1
        return i if i >= 0 and address - self.base < self.begins[i] + self.functions.length(i) else None

    def proves(self, answer):
        """Whether a method is there as cdacq says."""
        start = int(answer["code_start"], 16)
        i = self.function_at(start)
        if i is None or start - self.base != self.begins[i]:
            return False
        at = self.functions.unwind(i) + self.functions.unwind_size(i)
        size = gc_code_length(self.image.at(at, 10), "x64", gc_version(self.image))
        rid = self.rids.get(i)
        return size == answer["code_size"] and (rid is None or f"0x{0x06000000 | rid:08x}" == answer["token"])


def answers(tool, command, core, ips, *options):
    done = subprocess.run([tool, command, "--json", *options, core], input="".join(f"{ip:x}\n" for ip in ips),
                          capture_output=True, encoding="utf-8", check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def load_images(tool, core):
    """
    All ReadyToRun images, also those of which no method is prepared: their delay-load thunks are listed, and addresses
    near these are in methods. One method of each image shows where the image is. Methods that are prepared do not show
    it: an instance of a generic method can be in the image of another module.
    """
    listed = answers(tool, "methods", core, (), "--r2r", "all")
    first = {method["module"]: int(method["code_start"], 16) for method in listed
             if method["kind"] == "r2r" and method["method_desc"] is None and method["module"]}
    bases = [int(found["unwind_info_base"], 16) for found in answers(tool, "inspect", core, first.values())]
    return [LoadedImage(path, base) for path, base in zip(first, bases, strict=True)]


def pick(images, blocks, count):
    """Half anywhere in the images' code, by size; half within and around blocks of compiled code."""
    random_numbers = random.Random(SEED)
    sizes = [image.end - image.begins[0] for image in images]
    ips = [image.base + image.begins[0] + random_numbers.randrange(image.end - image.begins[0])
           for image in random_numbers.choices(images, sizes, k=count // 2)]
    for begin, size in random_numbers.choices(blocks, k=count - len(ips)):
        ips.append(random_numbers.randrange(begin - 64, begin + size + 320))
    return ips


def classify(ip, answer, told, images, records):
    """The class of a pair of answers; one that begins with FAILED is none of those above."""
    image = next((image for image in images if image.base <= ip < image.base + image.end), None)
    if answer["status"] == "error":
        return "FAILED: no answer"
    if answer["status"] != "managed":
        if told is None:
            return "both name nothing"
        if image:
            return "FAILED: a function is there" if image.function_at(ip) is not None else "outside functions of an image"
        i = bisect.bisect_right(records, (ip, 1 << 64)) - 1
        covered = i >= 0 and ip < records[i][0] + records[i][1]
        return "FAILED: a record is there" if covered else "outside compiled methods"
    if answer["method_desc"] is None:
        return "not prepared" if image and image.proves(answer) else "FAILED: not proven"
    mine = int(answer["method_desc"], 16), int(answer["code_start"], 16)
    if told is None or mine != (told["method_desc"], told["code_start"]):
        return "FAILED: another method"
    if answer["token"] and int(answer["token"], 16) != told["token"]:
        return "FAILED: another token"
    return "the same method, start and token"


def judge(tool, services, core, loads, released, count=COUNT):
    """How many addresses are of each class."""
    listed = answers(tool, "methods", core, (), "--stubs")
    images = load_images(tool, core)
    blocks = [(int(method["code_start"], 16), method["code_size"] or 64) for method in listed
              if method["status"] in ("managed", "stub") and method["kind"] != "r2r"]
    records = sorted((load.address, load.size) for load in live_records(loads, released))
    ips = pick(images, blocks, count)
    counts = collections.Counter()
    for ip, answer, told in zip(ips, answers(tool, "ip2method", core, ips), dac.methods(services, core, ips), strict=True):
        kind = classify(ip, answer, told, images, records)
        if kind.startswith("FAILED") and counts[kind] < 5:
            print(f"{kind}: {ip:x}: {answer}, {told}", file=sys.stderr)
        counts[kind] += 1
    return counts


def main():
    tool, services, core, jitdump, released, *count = sys.argv[1:]
    counts = judge(tool, services, core, read_loads(jitdump), read_released(released), *map(int, count))
    for kind, number in counts.most_common():
        print(f"{number:8} {kind}")
    return any(kind.startswith("FAILED") for kind in counts)


if __name__ == "__main__":
    sys.exit(main())
