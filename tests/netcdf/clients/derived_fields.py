# SPDX-License-Identifier: LGPL-3.0-or-later
"""The parts of test_derived.py that run in a process with netCDF4-python.

    make FOLDER             writes the series A.nc and B.nc
    compare PLAIN ESDM …    each pair has the same numbers, bit for bit
    derived A B PLAIN ESDM …  each pair has the same numbers, unless they are some of those of A and B
    xarray IN OUT           statistics of IN with their attributes, as OUT-NAME
"""

import os
import sys

import netCDF4
import numpy as np


def make(folder):
    """A temperature with a trend of 0.002 K a step, and a flux of another magnitude."""
    random = np.random.default_rng(7)
    for part in range(2):
        with netCDF4.Dataset(f"{folder}/{'AB'[part]}.nc", "w", format="NETCDF4_CLASSIC") as nc:
            for name, length in ("time", None), ("lat", 4), ("lon", 6):
                nc.createDimension(name, length)
            time = nc.createVariable("time", "f8", ("time",))
            time.units, time.calendar = "days since 2001-01-01", "standard"
            time[:] = np.arange(20) * 10 + 5 + part * 200
            for name, units, values in (("lat", "degrees_north", np.linspace(-60.3, 60.3, 4)),
                                        ("lon", "degrees_east", np.linspace(0.1, 300.1, 6))):
                nc.createVariable(name, "f8", (name,))[:] = values
                nc[name].units = units
            steps = np.arange(20)[:, None, None] + part * 20
            for name, units, base, trend, noise in (("tas", "K", 285, 0.002, 0.004),
                                                    ("flux", "W m-2", 1e-5, 1e-8, 1e-7)):
                variable = nc.createVariable(name, "f4", ("time", "lat", "lon"), fill_value=1e20)
                variable.units = units
                zones = np.arange(4)[None, :, None] * 7 * base / 285
                variable[:] = base + zones + trend * steps + noise * random.standard_normal((20, 4, 6))


def bytes_of(path):
    """All numbers by variable; a statement must not have stayed."""
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_maskandscale(False)
        if path.startswith("esdm:"):
            for variable in nc.variables.values():
                wrong = {"esdm_absolute_tolerance", "esdm_relative_tolerance"} & set(variable.ncattrs())
                if wrong:
                    sys.exit(f"{path}: {variable.name} has {wrong}")
        return {name: (str(v.dtype), v.shape, np.ascontiguousarray(v[...]).tobytes())
                for name, v in nc.variables.items() if name == os.environ.get("FIELDS_ONLY", name)}


def compare(pairs):
    failures = []
    for plain, esdm in zip(pairs[::2], pairs[1::2]):
        expected, got = bytes_of(plain), bytes_of(esdm)
        failures += [f"{esdm}: {name} differs from {plain}" for name in sorted(set(expected) | set(got))
                     if expected.get(name) != got.get(name)]
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


def numbers_of(path):
    with netCDF4.Dataset(path) as nc:
        nc.set_auto_maskandscale(False)
        return {name: np.unique(v[...]) for name, v in nc.variables.items() if name in ("tas", "t2m")}


def derived(first, second, *pairs):
    """Who hands numbers on as they are may hand the accuracy on, too."""
    given = np.union1d(numbers_of(first)["tas"], numbers_of(second)["tas"])
    failures = []
    for plain, esdm in zip(pairs[::2], pairs[1::2]):
        expected, got = bytes_of(plain), bytes_of(esdm)
        for numbers in expected, got:  # cdo's eca_… and yseas… do not always fill it in
            numbers.pop("time", None)
        if "/file/" in esdm:
            for name, numbers in numbers_of(plain).items():
                if np.isin(numbers, given).all():
                    del expected[name], got[name]
        failures += [f"{esdm}: {name} differs" for name in sorted(set(expected) | set(got))
                     if expected.get(name) != got.get(name)]
    print("\n".join(failures))
    sys.exit(1 if failures else 0)


def statistics(source, target):
    import xarray

    xarray.set_options(keep_attrs=True)
    with xarray.open_dataset(source) as data:
        small = (data.tas * 1e-5).assign_attrs(esdm_absolute_tolerance="1e-4 K", units="K")
        for name, result in (("var", data.var("time")), ("std", data.std("time")),
                             ("diff", data.diff("time")), ("mean", data.mean("lon")),
                             ("anomaly", data - data.mean("time")), ("same", data),
                             ("own", small.to_dataset(name="small"))):
            result.to_netcdf(f"{target}-{name}")


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    {"make": make, "compare": lambda *pairs: compare(pairs), "derived": derived, "xarray": statistics}[kind](*rest)
