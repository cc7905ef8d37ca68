# SPDX-License-Identifier: LGPL-3.0-or-later
"""Everything that takes part: ESDM's modes, libraries that bench_rivals.so was built with, wheels."""

import ctypes
import importlib
import math
import types
import zlib

import numpy

import measure

KINDS = ["lossless", "absolute", "relative"]


class Coder:
    """What encodes and decodes one field. `masked`: it got the filled copy."""
    masked, how = False, ""

    def bytes(self, encoded):
        return len(encoded)


class Entrant:
    def __init__(self, name, kinds, own=False):
        self.name, self.kinds, self.own = name, kinds, own

    def close(self):
        pass


def mask_bytes(field):
    """What a mask costs that compresses well."""
    if field.is_data.all():
        return 0
    return len(zlib.compress(numpy.packbits(field.is_data).tobytes(), 9))


def best_grouping(field, most, encode):
    """The shape with which `encode` gives the fewest bytes."""
    tried = []
    for shape in measure.groupings(field.shape, most):
        try:
            tried.append((len(encode(shape)), shape))
        except Exception as problem:  # pylint: disable=broad-except
            tried.append((float("inf"), problem))
    tried.sort(key=lambda pair: pair[0])
    if tried[0][0] == float("inf"):
        raise tried[0][1]
    return tried[0][1]


# ---- ESDM ----------------------------------------------------------------------------------------


class ModeCoder(Coder):
    def __init__(self, entrant, field, quantities):
        self.c, self.site = entrant.c, entrant.site
        self.again = numpy.empty(field.shape, numpy.float32)
        self.field = field  # the library borrows it
        self.check(self.c.own_prepare(self.site, ctypes.byref(field.raw), quantities.encode()))

    def check(self, good):
        if not good:
            raise RuntimeError("ESDM: " + self.c.own_error(self.site).decode())

    def encode(self):
        self.check(self.c.own_write(self.site))
        return b""

    def decode(self, _):
        self.check(self.c.own_read(self.site, self.again.ctypes.data))
        return self.again

    def bytes(self, _):
        stored = self.c.own_stored(self.site)
        self.check(stored > 0)
        self.how = self.c.own_chain(self.site).decode()
        return stored


class Mode(Entrant):
    def __init__(self, library, mode, folder):
        super().__init__(f"ESDM {mode}", KINDS, own=True)
        self.c, self.mode = library.c, mode
        self.site = self.c.own_open(f"{folder}/{mode}".encode())

    def prepare(self, field, kind, bound):
        stated = {"lossless": "", "absolute": f"abs={bound!r}; ", "relative": f"rel={bound!r}; "}
        return ModeCoder(self, field, stated[kind] + f"mode={self.mode}")

    def close(self):
        self.c.own_close(self.site)


# ---- libraries -----------------------------------------------------------------------------------


class LibraryCoder(Coder):
    def __init__(self, entrant, field, kind, bound):
        self.c, self.which = entrant.library.c, entrant.numbers[kind]
        self.masked = kind != "lossless" and entrant.shaped
        self.extra = mask_bytes(field) if self.masked else 0
        self.values = field.filled if self.masked else field.values
        self.again = numpy.empty(field.values.size, numpy.float32)
        self.out = numpy.empty(2 * field.values.nbytes + 65536, numpy.uint8)
        self.block = measure.Block(field.values.size, 0, (ctypes.c_uint64 * 4)(),
                                   bound if kind != "lossless" else 0.0, field.raw.block.fill)
        self.group(field.shape)
        if entrant.shaped:
            self.group(best_grouping(field, 4, self.encode_as))
            self.how = "x".join(map(str, self.block.shape[:self.block.rank]))

    def group(self, shape):
        self.block.rank = len(shape)
        self.block.shape[:len(shape)] = shape

    def encode_as(self, shape):
        self.group(shape)
        return self.encode()

    def encode(self):
        n = self.c.rivals_encode(self.which, ctypes.byref(self.block), self.values.ctypes.data,
                                 self.out.ctypes.data, self.out.nbytes)
        if n == 0:
            raise RuntimeError("encoding failed")
        return self.out[:n]

    def decode(self, encoded):
        if not self.c.rivals_decode(self.which, ctypes.byref(self.block), encoded.ctypes.data,
                                    len(encoded), self.again.ctypes.data):
            raise RuntimeError("decoding failed")
        return self.again

    def bytes(self, encoded):
        return len(encoded) + self.extra


class FromLibrary(Entrant):
    def __init__(self, library, name):
        super().__init__(name, [], own=name.startswith("field "))
        self.library, self.numbers, self.shaped = library, {}, False

    def add(self, kind, number):
        self.kinds.append(kind)
        self.numbers[kind] = number
        self.shaped |= self.library.c.rivals_is_shaped(number)

    def prepare(self, field, kind, bound):
        return LibraryCoder(self, field, kind, bound)


def from_library(library):
    found, number = {}, 0
    while (name := library.c.rivals_name(number)) is not None:
        name = name.decode()
        found.setdefault(name, FromLibrary(library, name)).add(
            KINDS[library.c.rivals_kind_of(number)], number)
        number += 1
    return list(found.values())


# ---- wheels --------------------------------------------------------------------------------------


class WheelCoder(Coder):
    def __init__(self, field, encode, decode, lossy_axes=0):
        self.encode_with, self.decode_with = encode, decode
        self.masked = lossy_axes > 0
        self.values = field.filled if self.masked else field.values
        self.extra = mask_bytes(field) if self.masked else 0
        if self.masked:
            shape = best_grouping(field, lossy_axes, lambda s: encode(self.values.reshape(s)))
            self.values = self.values.reshape(shape)
            self.how = "x".join(map(str, shape))

    def encode(self):
        return self.encode_with(self.values)

    def decode(self, encoded):
        return self.decode_with(encoded, self.values)

    def bytes(self, encoded):
        return len(encoded) + self.extra


class Wheel(Entrant):
    """`make(module, field, bound)` gives a coder."""

    def __init__(self, name, kind, module, make):
        super().__init__(name, [kind])
        self.module, self.make = module, make

    def prepare(self, field, kind, bound):
        return self.make(self.module, field, bound)


def sz3(module, field, bound):
    return WheelCoder(field, lambda v: module.sz3_encode(v, mode=module.SZ3.MODE.ABS, abs=bound),
                      lambda e, v: module.sz3_decode(e, shape=v.shape, dtype=v.dtype), lossy_axes=4)


def sperr(module, field, bound):
    def decode(encoded, values):
        return module.sperr_decode(encoded)
    return WheelCoder(field, lambda v: module.sperr_encode(v, bound, module.SPERR.MODE.PWE,
                                                           numthreads=1), decode, lossy_axes=3)


def log_sperr(module, field, bound):
    """SPERR of the natural logarithm of sizes, in double, within what keeps the relative bound on both sides. Zeros are
    filled in as missing values are; they and the signs are deflated masks beside it."""
    flat = field.values.reshape(-1)
    usable = field.is_data & (flat != 0)
    at = numpy.maximum.accumulate(numpy.where(usable, numpy.arange(flat.size), int(numpy.argmax(usable))))
    zero, negative = field.is_data & (flat == 0), field.is_data & (flat < 0)
    shape = field.shape

    def encode(sizes):
        return module.sperr_encode(numpy.log(sizes.astype(float)), math.log1p(bound), module.SPERR.MODE.PWE, numthreads=1)

    def decode(encoded, _):
        found = numpy.exp(module.sperr_decode(encoded)).reshape(-1)
        found[negative] *= -1
        found[zero] = 0
        return found.astype(numpy.float32)
    filled = types.SimpleNamespace(filled=numpy.abs(flat[at]).reshape(shape), is_data=field.is_data, shape=shape)
    coder = WheelCoder(filled, encode, decode, lossy_axes=3)
    coder.extra += sum(len(zlib.compress(numpy.packbits(mask).tobytes(), 9)) for mask in (zero, negative) if mask.any())
    return coder


def zfp(module, field, bound):
    return WheelCoder(field, lambda v: module.zfp_encode(v, bound, mode=module.ZFP.MODE.FIXED_ACCURACY,
                                                         numthreads=1),
                      lambda e, v: module.zfp_decode(e), lossy_axes=4)


def quantised(field, bound, encode, decode):
    """Multiples of twice the bound, as integers; what is off by rounding to float is not mended."""
    step = 2 * bound

    def to_codes(values):
        return numpy.rint(values.reshape(-1).astype(float) / step).astype(numpy.int32)
    return WheelCoder(field, lambda v: encode(to_codes(v)),
                      lambda e, v: (decode(e) * step).astype(numpy.float32), lossy_axes=1)


def quantised_pcodec(module, field, bound):
    config = module.ChunkConfig(compression_level=8)
    return quantised(field, bound, lambda codes: module.standalone.simple_compress(codes, config),
                     module.standalone.simple_decompress)


def quantised_zstd(module, field, bound):
    return quantised(field, bound, lambda codes: module.zstd_encode(codes.tobytes(), 3),
                     lambda e: numpy.frombuffer(module.zstd_decode(e), numpy.int32))


def pcodec(module, field, _):
    config = module.ChunkConfig(compression_level=8)
    return WheelCoder(field, lambda v: module.standalone.simple_compress(v.reshape(-1), config),
                      lambda e, v: module.standalone.simple_decompress(e))


def blosc2(module, field, _):
    module.set_nthreads(1)
    return WheelCoder(field, lambda v: module.compress2(v, typesize=4, codec=module.Codec.LZ4, clevel=5,
                                                        filters=[module.Filter.SHUFFLE], nthreads=1),
                      lambda e, v: numpy.frombuffer(module.decompress2(e, nthreads=1), v.dtype))


WHEELS = [("zfp", "absolute", "imagecodecs", zfp),
          ("quantise+pcodec-8", "absolute", "pcodec", quantised_pcodec),
          ("quantise+zstd-3", "absolute", "imagecodecs", quantised_zstd), ("SZ3", "absolute", "imagecodecs", sz3),
          ("SPERR", "absolute", "imagecodecs", sperr), ("log+SPERR", "relative", "imagecodecs", log_sperr),
          ("pcodec-8", "lossless", "pcodec", pcodec), ("blosc2", "lossless", "blosc2", blosc2)]


def from_wheels():
    found, absent = [], []
    for name, kind, module, make in WHEELS:
        try:
            loaded = importlib.import_module(module)
            if module == "imagecodecs" and not getattr(loaded, name.split("+")[-1].split("-")[0].upper()).available:
                raise ImportError(f"{module} was built without it")
            found.append(Wheel(name, kind, loaded, make))
        except ImportError as problem:
            absent.append((name, str(problem)))
    return found, absent


def all_of(library, folder):
    """Those that take part, and (name, reason) of those that cannot."""
    entrants = [Mode(library, mode, folder) for mode in ("speed", "balanced", "archive")]
    entrants += from_library(library)
    wheels, absent = from_wheels()
    names = {e.name for e in entrants}
    wheels = [w for w in wheels if w.name not in names]  # the library itself is there
    names |= {w.name for w in wheels}
    absent = [(name, why) for name, why in absent if name not in names]
    absent += [(name, "bench_rivals.so was built without its library")
               for name in ("zfp", "fpzip", "libaec") if name not in names]
    return entrants + wheels, absent
