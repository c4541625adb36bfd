# SPDX-License-Identifier: MIT
"""Reads and writes GGUF and safetensors files in tests (standard library only)."""
import array
import json
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B",
           U64: "<Q", I64: "<q", F64: "<d"}
ALIGNMENT = 32

# Types of tensors: id, weights of a block, bytes of a block.
TYPES = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q5_0": (6, 32, 22),
    "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74), "IQ3_XXS": (18, 256, 98),
    "IQ3_S": (21, 256, 110), "IQ2_S": (22, 256, 82),
    "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
    "BF16": (30, 1, 2), "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66), "I2_S": (36, 4, 1),
    "TL1": (38, 4, 1), "MXFP4": (39, 32, 17), "TL2": (39, 4, 1), "Q1_0": (41, 128, 18),
    "Q2_0": (42, 64, 18),
    "Q2_0_g128": (42, 128, 34), "IQ1_BN": (134, 64, 13), "IQ2_BN": (135, 64, 16),
    "PQ2_0": (142, 128, 34), "PTQ1_0": (143, 128, 28), "IQ2_BN_R4": (335, 64, 16),
}
ROW_SCALES = {"IQ1_BN": 2, "IQ2_BN": 4, "IQ2_BN_R4": 4}  # bytes before a row


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def packed(kind, value):
    if kind == STRING:
        return text(value)
    if isinstance(kind, tuple):  # (ARRAY, kind of an element)
        return struct.pack("<IQ", kind[1], len(value)) + b"".join(packed(kind[1], v) for v in value)
    return struct.pack(FORMATS[kind], value)


def key(name, kind, value):
    return (text(name) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) +
            packed(kind, value))


def tensor_bytes(kind, shape):
    """Bytes of a tensor; a shape is (rows, columns) or (values,)."""
    n = 1
    for d in shape:
        n *= d
    _, block, n_bytes = TYPES[kind]
    size = n // block * n_bytes + n // shape[-1] * ROW_SCALES.get(kind, 0)
    return size + 32 if kind in ("I2_S", "TL1", "TL2") else size


def header(keys, tensors, alignment=ALIGNMENT):
    """keys: (name, kind, value); tensors: (name, type, shape, ...)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(key(*k) for k in keys)
    at = 0
    for name, kind, shape, *_ in tensors:
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", TYPES[kind][0], at)
        at += tensor_bytes(kind, shape) + -tensor_bytes(kind, shape) % alignment
    return head + bytes(-len(head) % alignment)


def write(path, keys, tensors):
    """tensors: (name, type, shape, bytes)."""
    with open(path, "wb") as f:
        f.write(header(keys, tensors))
        for name, kind, shape, data in tensors:
            assert len(data) == tensor_bytes(kind, shape), name
            f.write(data + bytes(-len(data) % ALIGNMENT))


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def text(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        """(kind, value) as key() takes them."""
        if kind == STRING:
            return kind, self.text()
        if kind == ARRAY:
            kind, n = self.take("<I"), self.take("<Q")
            return (ARRAY, kind), [self.value(kind)[1] for _ in range(n)]
        return kind, self.take(FORMATS[kind])


def read(path):
    """(keys, tensors) of a file with the usual alignment, as write() takes them."""
    with open(path, "rb") as f:
        r = Reader(f.read())
    assert r.data[:4] == b"GGUF"
    r.at = 8
    n_tensors, n_keys = r.take("<Q"), r.take("<Q")
    keys = [(r.text(), *r.value(r.take("<I"))) for _ in range(n_keys)]
    numbers = {row[0]: name for name, row in reversed(TYPES.items())}
    infos = []
    for _ in range(n_tensors):
        name, shape = r.text(), [0] * r.take("<I")
        for i in reversed(range(len(shape))):
            shape[i] = r.take("<Q")
        infos.append((name, numbers[r.take("<I")], tuple(shape), r.take("<Q")))
    start = r.at + -r.at % ALIGNMENT
    return keys, [(name, kind, shape, r.data[start + at:start + at + tensor_bytes(kind, shape)])
                  for name, kind, shape, at in infos]


def write_hollow(path, keys, tensors):
    """The same with zeros for data, as a sparse file; tensors: (name, type, shape)."""
    head = header(keys, tensors)
    size = sum(tensor_bytes(k, s) + -tensor_bytes(k, s) % ALIGNMENT for _, k, s in tensors)
    with open(path, "wb") as f:
        f.write(head)
        f.truncate(len(head) + size)


def read_tensors(data):
    """Of a whole file: (name, shape, type, offset of the type, offset of the data)."""
    def number(form):
        nonlocal at
        at += struct.calcsize(form)
        return struct.unpack_from(form, data, at - struct.calcsize(form))[0]

    def read(kind):
        nonlocal at
        if kind == STRING:
            n = number("<Q")
            at += n
            return data[at - n:at]
        if kind == ARRAY:
            kind, n = number("<I"), number("<Q")
            return [read(kind) for _ in range(n)]
        return number(FORMATS[kind])

    at, found, alignment = 8, [], ALIGNMENT
    n_tensors, n_keys = number("<Q"), number("<Q")
    for _ in range(n_keys):
        name, value = read(STRING), read(number("<I"))
        alignment = value if name == b"general.alignment" else alignment
    for _ in range(n_tensors):
        name = read(STRING).decode()
        shape = [number("<Q") for _ in range(number("<I"))][::-1]
        place, kind = at, number("<I")
        found.append((name, shape, kind, place, number("<Q")))
    begin = at + -at % alignment
    return [(*t[:4], begin + t[4]) for t in found]


# ---- floats ----

def f32(values):
    data = array.array("f", values)
    if sys.byteorder != "little":
        data.byteswap()
    return data.tobytes()


def of_bf16(data):
    """BF16 bytes as a list of floats."""
    wide = bytearray(2 * len(data))
    wide[2::4], wide[3::4] = data[0::2], data[1::2]
    return list(struct.unpack(f"<{len(data) // 2}f", bytes(wide)))


def to_bf16(values):
    """Floats that BF16 holds exactly, as bytes."""
    data = f32(values)
    assert not any(data[0::4]) and not any(data[1::4])
    out = bytearray(len(data) // 2)
    out[0::2], out[1::2] = data[2::4], data[3::4]
    return bytes(out)


# ---- safetensors ----

def read_safetensors(path):
    """name -> (dtype, shape, bytes)"""
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<Q", data)[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + n + t["data_offsets"][0]:
                                                8 + n + t["data_offsets"][1]])
            for name, t in head.items()}


def write_safetensors(path, tensors):
    head, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text_of_head = json.dumps(head).encode()
    text_of_head += b" " * (-len(text_of_head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text_of_head)) + text_of_head)
        for _, _, data in tensors.values():
            f.write(data)
