#!/usr/bin/env python3
"""Reads a world and lists what is in it: a reader written from docs/world-format.md, with nothing but Python.

    python3 tools/read_world.py tests/fixtures/world-format-1.txt

The world is a raw dump, as the documentation describes. Python has no zstd before version 3.14; older versions read only groups that
are stored without zstd, or whose zstd frames consist of raw and repeated blocks.
"""

import re
import struct
import sys
import zlib

SIGN = 1 << 63
# How to read a field, by letter. Lower case is for values: u u64, w u32, h u16, v u128, i i64, f f32, g f64, b bool, t text,
# y bytes, d duration. Upper case is for keys: N u64, W u32, B byte, C coordinate, M Morton key, U UUID, P text behind its
# length, T text to the end.
KINDS = {"u": lambda r: r.varint(64), "w": lambda r: r.varint(32), "h": lambda r: r.varint(16), "v": lambda r: r.varint(128)}
KINDS |= {"i": lambda r: r.signed(), "f": lambda r: f"{r.fixed('<I')[0]:08x}", "b": lambda r: (b"\0", b"\1").index(r.raw(1))}
KINDS |= {"t": lambda r: r.field("y").decode("utf-8"), "y": lambda r: r.raw(r.varint())}
KINDS |= {"g": lambda r: f"{r.fixed('<Q')[0]:016x}"}
KINDS |= {"d": lambda r: f"{r.varint()}.{r.varint(32):09}s", "N": lambda r: r.fixed(">Q")[0], "W": lambda r: r.fixed(">I")[0]}
KINDS |= {"B": lambda r: r.raw(1)[0], "C": lambda r: r.field("N") - SIGN, "M": lambda r: r.morton(), "U": lambda r: r.raw(16)}
KINDS |= {"P": lambda r: r.raw(r.field("W")).decode("utf-8"), "T": lambda r: r.raw(len(r.data) - r.at).decode("utf-8")}
# Several fields. 1 block, 2 position in it, 3 viewer, 4 component, 5 place, 6 child, 7, 8 types, 9 tick, x column, z loss, e waiting, r heights.
GROUPS = {"1": "iii", "2": "fff", "3": "www", "4": "ty", "5": "u12", "6": "?w?y?5?3*4", "7": "t*u", "8": "tw?w", "9": "hwu"}
GROUPS |= {"x": "ii", "z": "?xt", "e": "wu", "r": "*xy"}
# A ? before a letter is an option, a * a list. The letter a is an area, the only choice with fields.
RECORDS = {"header": "wuu", "play time": "d", "last dimension": "u", "dimension": "utwu", "heat": "u?e"}
RECORDS |= {"import": "y1wbuwtbuuuuuuuuuuu*zu", "seed": "u", "heights": "ii"}
IN_ENVELOPES = {"ticks": "*t*9", "pregeneration": "aviibd", "stored": None, "object": None, "clock": "d", "days": "g"}
IN_ENVELOPES |= {"history": "y*r"}
KEYS = {"sparse": "N", "removal": "N", "stored": "NCC", "history": "NCC", "summary": "NCC", "ticks": "NCCC", "place": "NCCU", "viewer": "NU"}
KEYS |= {"pregeneration": "NN", "heat": "NM", "cooling": "BNNM", "import": "NW", "dimension": "T", "player": "PU", "clock": "N", "days": "N", "seed": "N", "heights": "N"}
KEYS |= dict.fromkeys(["header", "play time", "last dimension", "adopted", "object", "damaged"], "")


def expect(condition, reason):
    if not condition:
        raise ValueError(reason)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def raw(self, count):
        expect(self.at + count <= len(self.data), "it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def end(self, read):
        expect(self.at == len(self.data), "something follows its end")
        return read

    def fixed(self, layout):
        return struct.unpack(layout, self.raw(struct.calcsize(layout)))

    def varint(self, bits=64):
        number = 0
        for shift in range(0, bits, 7):
            (byte,) = self.raw(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                expect(number < 1 << bits, "a number is too large")
                return number
        raise ValueError("a number is too long")

    def signed(self, before=0):
        number = self.varint()
        return (before + (number >> 1 ^ -(number & 1)) + SIGN) % (1 << 64) - SIGN

    def morton(self):
        bits = int.from_bytes(self.raw(24), "big")
        return tuple(sum((bits >> 3 * bit + axis & 1) << bit for bit in range(64)) - SIGN for axis in (2, 1, 0))

    def fields(self, kinds):
        return tuple(self.field(kind) for kind in re.findall("[?*]*.", kinds))

    def field(self, kind):
        if kind[0] == "*":
            return [self.field(kind[1:]) for _ in range(self.varint())]
        if kind[0] == "?":
            return self.field(kind[1:]) if self.field("b") else None
        if kind == "a":
            case = self.varint(32)
            return (case, *self.fields(("iiw", "iiw", "iiii")[case]))
        return self.fields(GROUPS[kind]) if kind in GROUPS else KINDS[kind](self)

    def packed(self, widths):
        bits, numbers = int.from_bytes(self.raw((sum(widths) + 7) // 8), "little"), []
        for width in widths:
            numbers.append(bits & (1 << width) - 1)
            bits >>= width
        expect(bits == 0, "the last byte is not filled up with zeros")
        return numbers


def show(value):
    if isinstance(value, (tuple, list)):
        begin, end = "()" if isinstance(value, tuple) else "[]"
        return begin + " ".join(map(show, value)) + end
    return value.hex() if isinstance(value, bytes) else "none" if value is None else str(value)


def checksum(layout, numbers):
    return f"{zlib.crc32(struct.pack(f'<{len(numbers)}{layout}', *numbers)):08x}"


def inside(place):
    return [place >> axis & 1 | (place >> axis + 3 & 1) << 1 for axis in (2, 1, 0)]


def record(data, schema, version=1):
    expect(data[:1] == bytes([version]), "it has another format")
    reader = Reader(data[1:])
    return reader.end(reader.fields(schema))


def envelope(data):
    version, stored = Reader(data).fixed("<QI")
    expect(stored == zlib.crc32(data[:8] + data[12:]), "its checksum is wrong")
    return version, Reader(data[12:])


def decompress(data, length):
    frame, whole, last = Reader(data), b"", 0
    magic, flags = frame.fixed("<IB")
    single = flags >> 5 & 1
    frame.raw(1 - single + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6])
    while not last:
        header = int.from_bytes(frame.raw(3), "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 2:
            from compression import zstd  # In Python 3.14 and later.
            return zstd.decompress(data)
        whole += frame.raw(1) * size if kind else frame.raw(size)
    expect(magic == 0xFD2FB528 and len(whole) == length, "it is no zstd frame of this length")
    return whole


class World:
    def __init__(self, entries):
        lists = {key: value for family, key, value in entries if family == "registry"}
        blocks, types = lists.get(b"blocks", b"\2\0"), lists.get(b"components", b"\1\0")
        self.blocks = [(name, []) for name in record(blocks, "*t")[0]] if blocks[0] == 1 else record(blocks, "*7", 2)[0]
        self.types = record(types, "*8")[0]

    def chunk(self, pos, value):
        if value == b"\0":
            return [f"  chunk {show(pos)} is lost"]
        version, reader = envelope(value)
        form, components_at, entities_at, layered, count = reader.fixed("<5Q")
        expect(form == 1 and count > 0, "the header of the chunk is wrong")
        palette, width = reader.fixed(f"<{count}Q"), (count - 1).bit_length()
        stacks = [[palette[number]] for number in reader.packed([width] * 4096)]
        layers = reader.packed([12, width] * layered)
        for cell, number in zip(layers[::2], layers[1::2]):
            stacks[cell].append(palette[number])
        expect(reader.at == components_at, "the components do not follow the layers")
        above = [(cell, layer, stack[layer]) for cell, stack in enumerate(stacks) for layer in range(1, len(stack))]
        blocks = f"palette {show(palette)} cells {checksum('I', [stack[0] for stack in stacks])} layers {show(above)}"
        components = self.components(Reader(reader.raw(entities_at - components_at)), stacks)
        expect(reader.end(reader.fixed("<Q")) == (0,), "a stored chunk has no entities")
        return [f"  chunk {show(pos)} version {version} {blocks}", *components]

    def components(self, reader, stacks):
        owners, lines = {}, []
        for cell, stack in enumerate(stacks):
            for layer, block in enumerate(stack):
                for number in self.blocks[block][1]:
                    owners.setdefault(number, []).append((cell, layer))
        while owners:
            (number,) = reader.fixed("<Q")
            places = owners.pop(number)
            if number < SIGN:
                sizes = [self.types[number][2]] * len(places)
            else:
                (width,) = reader.raw(1)
                offsets = [int.from_bytes(reader.raw(width), "little") for _ in range(len(places) + 1)]
                expect(offsets[0] == 0 and offsets == sorted(offsets), "the offsets do not ascend from 0")
                sizes = [end - start for start, end in zip(offsets, offsets[1:])]
            values = [(*place, reader.raw(size)) for place, size in zip(places, sizes)]
            told = [value for value in values if value[2].strip(b"\0")]
            lines.append(f"    component {number:016x}: {len(places)} values {checksum('I', sizes)} {show(told)}")
        return reader.end(sorted(lines))

    def cluster(self, family, first, value):
        length, version = struct.unpack("<2I", value[-8:])
        table, at, lines = value[:length], length, []
        expect(zlib.crc32(table[:-4]).to_bytes(4, "little") == table[-4:], "the checksum of the table is wrong")
        reader = Reader(table)
        (front, places), back = reader.fixed("<IQ"), value[-8 - length : -8]
        expect(front == version == 1 and back == table, "the tables differ, or have another version")
        for place in filter(lambda place: places >> place & 1, range(64)):
            mask, stored, raw, crc = reader.fixed("<Q3I")
            part = value[at : at + stored]
            at += stored
            expect(zlib.crc32(part) == crc, "the checksum of a group is wrong")
            group = tuple((axis & ~15) + 4 * step for axis, step in zip(first, inside(place)))
            expect(family == "chunkl2" or group == first, "a warm group is at another place")
            lines.append(f"  group {show(group)} chunks {mask:016x} stored {stored} of {raw or stored} bytes")
            lines += self.group(group, mask, decompress(part, raw) if raw else part)
        expect(at == len(value) - 8 - length, "the groups do not fill the value")
        return lines

    def group(self, first, mask, data):
        scale, *starts = struct.unpack("<QB64Q", data[:521])[1:]
        lines, chunks = [], [(place, start) for place, start in enumerate(starts) if start]
        expect(data[0] == scale == 1 and sum(1 << place for place, _ in chunks) == mask, "it is another cluster")
        for (place, start), end in zip(chunks, [start for _, start in chunks[1:]] + [len(data)]):
            lines += self.chunk(tuple(axis + step for axis, step in zip(first, inside(place))), data[start:end])
        return lines

    def meta(self, key, value):
        name, _, rest = key.partition(b":")
        name, reader = name.decode("ascii"), Reader(rest)
        where = reader.fields(KEYS[name])
        if name == "object":
            where = (reader.field("N"), *(reader.fields("CC") if reader.field("b") else ()), reader.field("T"))
        elif name == "damaged":
            family, _, kept = reader.raw(len(rest)).partition(b":")
            expect(zlib.crc32(value).to_bytes(4, "big") == kept[-4:], "its checksum is wrong")
            where = (family.decode("ascii"), kept[:-4])
        if name in RECORDS:
            read = show(record(value, RECORDS[name]))
        elif name in IN_ENVELOPES:
            (version, payload), kinds = envelope(value), IN_ENVELOPES[name]
            read = f"version {version} {show(record(payload.data, kinds) if kinds else payload.data)}"
        else:
            expect(not value or name in ("adopted", "damaged", "summary"), "it has a value")
            read = summary(*envelope(value)) if name == "summary" else value.hex()
        return reader.end(f"meta {name} {show(where)}: {read}")

    def lines(self, family, key, value):
        reader = Reader(key)
        if family == "meta":
            return [self.meta(key, value)]
        if family == "entities":
            entity = record(value, "y5?3*4*6", 3)
            expect(entity[0] == key, "it is another entity")
            return [f"entities {show(entity)}"]
        if family == "registry":
            lists = {b"blocks": self.blocks, b"components": self.types}
            return [f"registry {key.decode('ascii')}: {show(lists[key] if key in lists else record(value, '*t')[0])}"]
        if family == "opacity":
            return [f"opacity {show(reader.end(reader.fields('NCC')))}: {opacity(*envelope(value))}"]
        dimension, first = reader.end(reader.fields("NM"))
        inner = self.chunk(first, value) if family == "chunkl0" else self.cluster(family, first, value)
        return [f"{family} {dimension} {show(first)}", *inner]


def summary(version, reader):
    form, detail = reader.raw(2)
    expect(form in (1, 2) and detail <= 4, "it has another version")
    palette = [reader.varint(32) for _ in range(reader.varint())]
    count, bits = (16 >> detail) ** 2, len(palette).bit_length()
    packed = form == 2 and int.from_bytes(reader.raw((count * bits + 7) // 8), "little")
    places = [packed >> cell * bits & (1 << bits) - 1 if form == 2 else reader.varint() for cell in range(count)]
    height, cells = 0, []
    for place in places:
        height = reader.signed(height) if place else height
        cells += [palette[place - 1], height] if place else [0, 0]
    return reader.end(f"version {version} detail {detail} cells {checksum('q', cells)} {show(cells[:2])}")


def opacity(version, reader):
    counts, parts, (fingerprint,) = [], [], reader.fixed("<I")
    expect(reader.varint() == 1, "it has another version")
    while len(counts) < 4096:
        columns, runs = reader.varint(), reader.varint()
        counts += [runs] * columns
    for _ in range(2):
        zeros, before, part = 0, [], []
        for place in (place for count in counts for place in range(count)):
            if place == len(before):
                before.append(before[-1] if before else 0)
            number = before[place] if zeros else reader.signed(before[place])
            zeros = zeros - 1 if zeros else 0 if number != before[place] else reader.varint()
            before[place] = number
            part.append(number)
        expect(zeros == 0, "there are more numbers than runs")
        parts.append(part)
    runs = [number for bottom, length in zip(*parts) for number in (bottom, bottom + length)]
    sums = f"counts {checksum('I', counts)} runs {checksum('q', runs)} {show(runs[:2])}"
    return reader.end(f"version {version} fingerprint {fingerprint:08x} {sums}")


def main(path):
    with open(path, encoding="ascii") as dump:
        lines = [line.rstrip("\n").split(" ") for line in dump]
    entries = [(family, bytes.fromhex(key), bytes.fromhex(value)) for family, key, value in lines]
    family, key = "registry", b""
    try:
        world = World(entries)
        for family, key, value in entries:
            print("\n".join(world.lines(family, key, value)))
    except (ValueError, LookupError, ImportError, struct.error) as error:
        sys.exit(f"{path}: {family} {key.hex()}: {error!r}")


main(*sys.argv[1:])
