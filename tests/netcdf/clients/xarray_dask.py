# SPDX-License-Identifier: LGPL-3.0-or-later
"""What analysis scripts do with xarray on dask, on a path prefix given as the first argument; the
others are real files of one series. Prints what it reads, so that two runs can be compared."""

import sys
import warnings

import dask
import netCDF4
import numpy as np
import xarray as xr

warnings.simplefilter("ignore")
prefix, sources = sys.argv[1], sys.argv[2:]
NAME = "ta"


def path(name):
    return f"{prefix}/{name}.nc"


def show(title, values):
    values = np.asarray(values, dtype="f8")
    print(title, values.shape, np.nansum(values), values.ravel()[:4].tolist())


def open_many(paths, **options):
    return xr.open_mfdataset(paths, combine="nested", concat_dim="time", data_vars="minimal",
                             coords="minimal", compat="override", **options)


def make_parts():
    """One file a year, all of them written by dask."""
    with open_many(sources, chunks={"time": 24}) as series:
        years, groups = zip(*series[[NAME]].groupby("time.year"))
        names = [path(f"year-{year}") for year in years]
        xr.save_mfdataset(groups, names)
    return names


def read(parts, scheduler):
    """All in one computation: each starts its processes anew."""
    with dask.config.set(scheduler=scheduler, num_workers=3):
        with open_many(parts, chunks={"time": 5}) as data:
            results = dask.compute(data[NAME].mean(("lat", "lon")), data[NAME].max("time"),
                                   data[NAME].groupby("time.month").mean(),
                                   data[NAME].isel(time=slice(3, 50, 7), lat=0))
    for number, result in enumerate(results):
        show(f"{scheduler} {number}", result)


def open_in_parallel(parts):
    with open_many(parts, parallel=True) as data:
        show("opened in parallel", data[NAME].max("time"))


def square(source, target):
    with xr.open_dataset(source) as data:
        (data[NAME] ** 2).to_dataset().to_netcdf(target)


def write_one_file_each(parts):
    """xarray cannot write one file from several processes; this is what people do."""
    targets = [path(f"square-{number}") for number in range(len(parts))]
    tasks = [dask.delayed(square)(*pair) for pair in zip(parts, targets)]
    dask.compute(*tasks, scheduler="processes", num_workers=2)
    with open_many(targets) as data:
        show("squares", data[NAME])


def write(parts, scheduler):
    name = f"written-{scheduler}"
    with dask.config.set(scheduler=scheduler, num_workers=3):
        with open_many(parts, chunks={"time": 7}) as data:
            anomaly = (data[NAME] - data[NAME].mean("time")).rename("anomaly").to_dataset()
            delayed = anomaly.to_netcdf(path(name), unlimited_dims=["time"], compute=False)
            delayed.compute()
            scaled = (data[NAME] * 2).rename("scaled").to_dataset()
            scaled.to_netcdf(path(name), mode="a")  # another variable beside
    with xr.open_dataset(path(name)) as back:
        show(name, back["anomaly"])
        show(name, back["scaled"])
        print(sorted(back.variables), back.encoding["unlimited_dims"])


def append_steps():
    """Grows a file step by step, as scripts that have no region writes do."""
    start = xr.Dataset({"v": (("time", "x"), np.arange(6.0).reshape(2, 3))},
                       coords={"time": [0.0, 1.0]})
    start.to_netcdf(path("steps"), unlimited_dims=["time"])
    for step in range(2, 6):
        with netCDF4.Dataset(path("steps"), "a") as data:
            data["v"][step] = step * np.ones(3)
            data["time"][step] = step
        with xr.open_dataset(path("steps"), chunks={"time": 1}) as data:
            show(f"step {step}", data["v"].sum("x"))
    with xr.open_dataset(path("steps")) as data:
        data.load()
    data["v"][1:3] = -1
    data.to_netcdf(path("steps"), mode="a")  # replaces the values in place
    with xr.open_dataset(path("steps")) as data:
        show("in place", data["v"])


def main():
    parts = make_parts()
    for scheduler in ("threads", "processes"):
        read(parts, scheduler)
    open_in_parallel(parts)
    write(parts, "threads")
    write_one_file_each(parts[:4])
    append_steps()


if __name__ == "__main__":  # dask's processes import this file
    main()
