"""Reads a profile of pprof. Source: protobuf.dev, "Encoding"; github.com/google/pprof, proto/profile.proto."""
import collections
import gzip
import re


def fields(data):
    """The fields of a message of protobuf: (number, value); a value is a number or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            if at + size > len(data):
                raise ValueError("a field is longer than the message")
            yield key >> 3, data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {key & 7}")


def packed(data):
    numbers = re.findall(rb"[\x80-\xff]*[\x00-\x7f]", data)
    return [value for number in numbers for _, value in fields(b"\x08" + number)]


def read(data):
    """((kind, unit), {names from the outermost: the sum of the values}, {(name, file, line)})"""
    parts = collections.defaultdict(list)
    for number, value in fields(gzip.decompress(data)):
        parts[number].append(value)
    strings = [value.decode() for value in parts[6]]
    if strings[0]:
        raise ValueError("the first string is not empty")
    functions = {(part := dict(fields(value)))[1]: (strings[part[2]], strings[part.get(4, 0)]) for value in parts[5]}
    locations, places = {}, set()
    for value in parts[4]:
        part = dict(fields(value))
        line = dict(fields(part[4]))
        locations[part[1]], file = functions[line[1]]
        places.add((locations[part[1]], file, line.get(2, 0)))
    kind = dict(fields(parts[1][0]))
    found = collections.Counter()
    for value in parts[2]:
        part = dict(fields(value))
        found[tuple(locations[number] for number in reversed(packed(part.get(1, b""))))] += packed(part[2])[0]
    return (strings[kind[1]], strings[kind[2]]), found, places
