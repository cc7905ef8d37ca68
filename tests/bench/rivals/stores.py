# SPDX-License-Identifier: LGPL-3.0-or-later
"""The rivals, each behind the same few calls: create, define, put, close; open, get, close.

Every one is used as its own documentation shows it to a Python program. Values are float32. Chunks
are what the pattern asks for, wherever a store wants to be told.
"""

import json
import os
import pathlib
import urllib.parse

import numpy


class NetCDF4:
    """Stock netCDF through netCDF4 for Python."""
    needs = ("netCDF4",)
    format, options = "NETCDF4", {}

    def url(self, path):
        return str(path)

    def create(self, path):
        import netCDF4
        self.file = netCDF4.Dataset(self.url(path), "w", format=self.format)
        self.file.set_auto_mask(False)
        self.file.set_fill_off()

    def define(self, name, shape, chunks, most=None):
        dimensions = []
        for length in shape:
            dimension = f"d{len(self.file.dimensions)}" if length is None else f"n{length}"
            if dimension not in self.file.dimensions:
                self.file.createDimension(dimension, length)
            dimensions.append(dimension)
        variable = self.file.createVariable(name, "f4", dimensions, **self.how(chunks))
        variable.set_auto_maskandscale(False)

    def how(self, chunks):
        return {"chunksizes": chunks, **self.options}

    def put(self, name, first, values):
        self.file.variables[name][first:first + len(values)] = values

    def open(self, path):
        import netCDF4
        self.file = netCDF4.Dataset(self.url(path))
        self.file.set_auto_maskandscale(False)

    def get(self, name, key):
        return self.file.variables[name][key]

    def close(self):
        self.file.close()


class NetCDF4Deflate(NetCDF4):
    options = {"compression": "zlib", "complevel": 1, "shuffle": True}


class NetCDF4Zstd(NetCDF4):
    options = {"compression": "zstd", "complevel": 3, "shuffle": True}


class CDF5(NetCDF4):
    format = "NETCDF3_64BIT_DATA"

    def how(self, chunks):
        return {}


class NCZarr(NetCDF4):
    def url(self, path):
        return f"file://{urllib.parse.quote(str(path))}#mode=nczarr,file"


class Esdm(NetCDF4):
    """The same program with another name: nothing is told of chunks or codecs."""
    needs = ("esdm", "netCDF4")  # as a program begins: what the first opening needs is made meanwhile

    def site(self, path):
        """A site beside the container, made when the container is."""
        folder = path.with_name(path.name + ".site")
        os.environ["ESDM_CONFIG"] = str(folder / "site.json")
        return folder

    def url(self, path):
        return f"esdm://{path.name}"

    def create(self, path):
        folder = self.site(path)
        folder.mkdir()
        (folder / "site.json").write_text(json.dumps({
            "site": {"name": path.name.replace(".", "-")},
            "targets": [{"name": "disk", "plugin": "posix", "directory": "packs"}],
            "metadata": {"plugin": "sqlite", "directory": "metadata"},
            "engine": {"codec": "none"}}))
        import subprocess
        subprocess.run([os.environ["ESDM_BENCH_MKFS"]], check=True, stdout=subprocess.DEVNULL)
        import esdm
        esdm.activate()
        super().create(path)

    def how(self, chunks):
        return {}

    def open(self, path):
        self.site(path)
        import esdm
        esdm.activate()
        super().open(path)


class EsdmLossless(Esdm):
    """The program asks for deflate, of which ESDM takes that nothing may be lost."""

    def how(self, chunks):
        return NetCDF4Deflate.options


class H5py:
    needs = ("h5py",)
    options = {}

    def create(self, path):
        import h5py
        self.file = h5py.File(path, "w")

    def define(self, name, shape, chunks, most=None):
        maximum = None if most is None else shape
        shape = tuple(0 if n is None else n for n in shape)
        self.file.create_dataset(name, shape, "f4", maxshape=maximum, chunks=chunks, **self.options)

    def put(self, name, first, values):
        data = self.file[name]
        if first + len(values) > len(data):
            data.resize(first + len(values), 0)
        data[first:first + len(values)] = values

    def open(self, path):
        import h5py
        self.file = h5py.File(path, "r")

    def get(self, name, key):
        return self.file[name][key]

    def close(self):
        self.file.close()


class H5pyGzip(H5py):
    options = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


class Zarr:
    """zarr-python 3 in a folder."""
    needs = ("zarr",)
    compressors = None

    def prepare(self):
        pass

    def create(self, path):
        import zarr
        self.prepare()
        self.group = zarr.open_group(path, mode="w", zarr_format=3)
        self.arrays = {}

    def define(self, name, shape, chunks, most=None):
        shape = tuple(0 if n is None else n for n in shape)
        chunks = tuple(min(c, n) or c for c, n in zip(chunks, shape))
        self.arrays[name] = self.group.create_array(
            name, shape=shape, chunks=chunks, dtype="f4",
            **({} if self.compressors else {"compressors": None}))

    def put(self, name, first, values):
        array = self.arrays[name]
        if first + len(values) > array.shape[0]:
            array.resize((first + len(values), *array.shape[1:]))
        array[first:first + len(values)] = values

    def open(self, path):
        import zarr
        self.prepare()
        self.group = zarr.open_group(path, mode="r")
        self.arrays = {}

    def get(self, name, key):
        if name not in self.arrays:
            self.arrays[name] = self.group[name]
        return self.arrays[name][key]

    def close(self):
        pass


class ZarrZstd(Zarr):
    compressors = True  # its default: zstd


class Zarrs(Zarr):
    """zarr-python with the codecs of zarrs."""
    needs = ("zarr", "zarrs")

    def prepare(self):
        import zarr
        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class ZarrsZstd(Zarrs):
    compressors = True


class Icechunk(Zarr):
    needs = ("zarr", "icechunk")

    def storage(self, path):
        import icechunk
        return icechunk.local_filesystem_storage(str(path))

    def create(self, path):
        import icechunk
        import zarr
        self.session = icechunk.Repository.create(self.storage(path)).writable_session("main")
        self.group = zarr.group(self.session.store)
        self.arrays = {}

    def open(self, path):
        import icechunk
        import zarr
        self.session = icechunk.Repository.open(self.storage(path)).readonly_session("main")
        self.group = zarr.open_group(self.session.store, mode="r")
        self.arrays = {}

    def close(self):
        if not self.session.read_only:
            self.session.commit("written")


class IcechunkZstd(Icechunk):
    compressors = True


class TensorStore:
    """Zarr 3 by TensorStore."""
    needs = ("tensorstore",)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]

    def create(self, path):
        self.path, self.arrays = path, {}

    def spec(self, name):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{self.path}/{name}/"}}

    def define(self, name, shape, chunks, most=None):
        import tensorstore
        shape = [0 if n is None else n for n in shape]
        chunks = [min(c, n) or c for c, n in zip(chunks, shape)]
        self.arrays[name] = tensorstore.open({**self.spec(name), "metadata": {
            "shape": shape, "data_type": "float32", "codecs": self.codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}}}},
            create=True).result()

    def put(self, name, first, values):
        array = self.arrays[name]
        if first + len(values) > array.shape[0]:
            array = self.arrays[name] = array.resize(
                exclusive_max=[first + len(values), *array.shape[1:]]).result()
        array[first:first + len(values)].write(values).result()

    def open(self, path):
        self.path, self.arrays = path, {}

    def get(self, name, key):
        import tensorstore
        if name not in self.arrays:
            self.arrays[name] = tensorstore.open(self.spec(name), open=True, read=True).result()
        return self.arrays[name][key].read().result()

    def close(self):
        pass


class TensorStoreZstd(TensorStore):
    codecs = TensorStore.codecs + [{"name": "zstd", "configuration": {"level": 1}}]


class TileDB:
    needs = ("tiledb",)
    filters = False

    def create(self, path):
        self.path, self.arrays = pathlib.Path(path), {}
        self.path.mkdir()

    def define(self, name, shape, chunks, most=None):
        import tiledb
        lengths = [most if n is None else n for n in shape]
        filters = [tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(level=3)] if self.filters else None
        domain = tiledb.Domain(*(tiledb.Dim(f"d{i}", (0, n - 1), min(c, n), dtype="uint64")
                                 for i, (n, c) in enumerate(zip(lengths, chunks))))
        tiledb.Array.create(str(self.path / name), tiledb.ArraySchema(
            domain, attrs=[tiledb.Attr("v", dtype="f4", filters=filters)]))

    def put(self, name, first, values):
        import tiledb
        if name not in self.arrays:
            self.arrays[name] = tiledb.open(str(self.path / name), "w")
        self.arrays[name][first:first + len(values)] = numpy.ascontiguousarray(values)

    def open(self, path):
        self.path, self.arrays = pathlib.Path(path), {}

    def get(self, name, key):
        import tiledb
        if name not in self.arrays:
            self.arrays[name] = tiledb.open(str(self.path / name))
        return self.arrays[name][key]["v"]

    def close(self):
        for array in self.arrays.values():
            array.close()


class TileDBZstd(TileDB):
    filters = True


class Adios2:
    """A step of ADIOS2 has each variable once, with the shape of what was put."""
    needs = ("adios2",)

    def create(self, path):
        import adios2
        self.file = adios2.Stream(str(path), "w")
        self.step = {}  # what was put in the open step; ADIOS2 takes it at its end

    def define(self, name, shape, chunks, most=None):
        pass

    def end_step(self):
        if self.step:
            self.file.end_step()
        self.step = {}

    def put(self, name, first, values):
        if name in self.step:
            self.end_step()
        if not self.step:
            self.file.begin_step()
        values = self.step[name] = numpy.ascontiguousarray(values)
        self.file.write(name, values, values.shape, [0] * values.ndim, values.shape)

    def open(self, path):
        import adios2
        self.file = adios2.FileReader(str(path))
        self.shapes = {}

    def parts(self, name, key):
        """Step, start and count of what the steps have of the region."""
        if name not in self.shapes:
            self.shapes[name] = [[int(n) for n in blocks[0]["Count"].split(",")]
                                 for blocks in self.file.engine.all_blocks_info(name)]
        shapes = self.shapes[name]
        ends = numpy.cumsum([s[0] for s in shapes]).tolist()
        first, last, _ = key[0].indices(ends[-1])
        for step in range(int(numpy.searchsorted(ends, first, "right")), len(shapes)):
            begin = ends[step] - shapes[step][0]
            if begin >= last:
                return
            start = [max(first - begin, 0)]
            count = [min(last - begin, shapes[step][0]) - start[0]]
            for part, length in zip(key[1:], shapes[step][1:]):
                low, high, _ = part.indices(length)
                start.append(low)
                count.append(high - low)
            yield step, start, count

    def get(self, name, key):
        variable = self.file.inquire_variable(name)
        parts = list(self.parts(name, key))
        # Several steps in one call, where all have the same region of equal shapes.
        if parts[0][2][0] == 1 and all(p[1:] == parts[0][1:] for p in parts):
            groups = [(parts[0][0], len(parts), *parts[0][1:])]
        else:
            groups = [(step, 1, start, count) for step, start, count in parts]
        results = []
        for step, steps, start, count in groups:
            variable.set_step_selection([step, steps])
            variable.set_selection([start, count])
            results.append(numpy.empty((steps * count[0], *count[1:]), "f4"))
            self.file.engine.get(variable, results[-1])
        self.file.engine.perform_gets()
        return results[0] if len(results) == 1 else numpy.concatenate(results)

    def close(self):
        if hasattr(self, "step"):
            self.end_step()
        self.file.close()


# Each kind without compression, and with what its users take for no loss.
PLAIN = {"ESDM": Esdm, "netCDF-4": NetCDF4, "CDF-5": CDF5, "NCZarr": NCZarr, "h5py": H5py,
         "Zarr 3": Zarr, "zarrs": Zarrs, "TensorStore": TensorStore, "Icechunk": Icechunk,
         "TileDB": TileDB, "ADIOS2": Adios2}
LOSSLESS = {"ESDM deflate 1": EsdmLossless, "netCDF-4 deflate 1": NetCDF4Deflate,
            "netCDF-4 zstd 3": NetCDF4Zstd, "h5py gzip 1": H5pyGzip, "Zarr 3 zstd": ZarrZstd,
            "zarrs zstd": ZarrsZstd, "TensorStore zstd": TensorStoreZstd,
            "Icechunk zstd": IcechunkZstd, "TileDB zstd 3": TileDBZstd}
STORES = {**PLAIN, **LOSSLESS}
