# SPDX-License-Identifier: LGPL-3.0-or-later
"""Real fields with the coordinates of a grid, and what became of their numbers in a region. Arguments:
  make FILE SOURCE VARIABLE STEPS GRID [ATTRIBUTE=VALUE ...]   GRID: regular, late, curvilinear, masked
  check FILE CONTAINER VARIABLE INSIDE OUTSIDE REGION [LOW..HIGH]   REGION: WEST,SOUTH,EAST,NORTH or
                                                               mask=VARIABLE>=NUMBER
  mean FILE CONTAINER VARIABLE MOST OUTSIDE REGION [LOW..HIGH]   the mean of the points inside
`make` calls cesm_TS "ts", and `late` writes the coordinates after it. `check` ends with an error where
numbers are off by more than INSIDE and OUTSIDE, else it prints the points inside and both errors."""

import sys

import netCDF4
import numpy as np


def grid_of(kind, rows, columns):
    """Latitudes and longitudes: of the CESM grid, or of one whose pole lies in Greenland."""
    if kind != "curvilinear":
        return np.linspace(-90, 90, rows), np.arange(columns) * 360 / columns
    lat, lon = np.meshgrid(np.linspace(-78, 87, rows), np.arange(columns) * 360 / columns,
                           indexing="ij")
    lat, lon, pole = np.radians(lat), np.radians(lon), np.radians(14)
    x, y, z = np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)
    x, z = x * np.cos(pole) + z * np.sin(pole), z * np.cos(pole) - x * np.sin(pole)
    return np.degrees(np.arcsin(z)), np.degrees(np.arctan2(y, x))


def make(path, source, name, steps, kind, *attributes):
    with netCDF4.Dataset(source) as file:
        file.set_auto_mask(False)
        data = file[name][:int(steps)]
        fill = getattr(file[name], "_FillValue", None)
        units = file[name].units
    lat, lon = grid_of(kind, *data.shape[1:])
    with netCDF4.Dataset(path, "w") as out:
        for dimension, length in zip(("time", "y", "x"), (None, *data.shape[1:])):
            out.createDimension(dimension, length)
        on = (("y",), ("x",)) if lat.ndim == 1 else (("y", "x"), ("y", "x"))

        def coordinates():
            for what, dimensions, unit in (("lat", on[0], "north"), ("lon", on[1], "east")):
                out.createVariable(what, "f4", dimensions).units = f"degrees_{unit}"

        def fill_coordinates():
            out["lat"][...], out["lon"][...] = lat, lon

        if kind != "late":
            coordinates()
            fill_coordinates()
        if kind == "masked":  # fractions of land, somehow
            out.createVariable("zland", "f4", ("y", "x"))
            out["zland"][...] = 100 * (np.sin(np.radians(3 * lon)) *
                                       np.cos(np.radians(lat))[:, None] - 0.2).clip(0, 0.5)
        variable = out.createVariable(name.split("_")[1].lower(), "f4", ("time", "y", "x"), fill_value=fill)
        variable.units, variable.coordinates = units, "lat lon"
        variable.setncatts(dict(a.split("=", 1) for a in attributes))
        if kind == "late":
            coordinates()
        variable[...] = data
        if kind == "late":
            fill_coordinates()


def find(file, kind):
    for variable in file.variables.values():
        if getattr(variable, "units", "").startswith(kind):
            return np.asarray(variable[...], float), variable.dimensions
    sys.exit(f"no coordinate in {kind}")


def inside_of(file, variable, box, levels):
    """Whether points of (rows, columns), or of all dimensions, lie in the region."""
    if box.startswith("mask="):
        mask, least = box[5:].split(">=")
        return np.broadcast_to(np.asarray(file[mask][...]) >= float(least), variable.shape)
    west, south, east, north = map(float, box.split(","))
    lat, lon = find(file, "degrees_north"), find(file, "degrees_east")
    rows = (lat[0] >= south) & (lat[0] <= north)
    columns = (lon[0] - west) % 360 <= (east - west) % 360
    inside = np.ones(variable.shape, bool)
    tests = [(rows, lat[1]), (columns, lon[1])]
    if levels is not None:
        low, high = map(float, levels.split(".."))
        plev = find(file, "Pa")
        tests.append(((plev[0] >= low) & (plev[0] <= high), plev[1]))
    for test, dimensions in tests:
        shape = [n if d in dimensions else 1 for n, d in zip(variable.shape, variable.dimensions)]
        inside &= test.reshape(shape)
    return inside


def check(path, container, name, strict, loose, box, levels=None):
    with netCDF4.Dataset(path) as file, netCDF4.Dataset(container) as back:
        file.set_auto_mask(False)
        back.set_auto_mask(False)
        before, after = file[name][...], back[name][...]
        inside = inside_of(file, file[name], box, levels)
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    valid = np.isfinite(before) & (abs(before) < 1e30)
    if not same[~valid].all():
        sys.exit("fill values changed")
    error = np.where(valid, abs(after.astype(np.longdouble) - before), 0)
    if inside.any() and error[inside].max() > np.longdouble(strict):
        sys.exit(f"inside the region numbers are off by {error[inside].max()!r}")
    if (~inside).any() and error[~inside].max() > np.longdouble(loose):
        sys.exit(f"outside the region numbers are off by {error[~inside].max()!r}")
    print(f"{inside.sum()} {float(error[inside].max(initial=0))!r} "
          f"{float(error[~inside].max(initial=0))!r}")


def mean(path, container, name, most, loose, box, levels=None):
    """Of the points inside, which is off by no more than MOST."""
    with netCDF4.Dataset(path) as file, netCDF4.Dataset(container) as back:
        file.set_auto_mask(False)
        back.set_auto_mask(False)
        before, after = file[name][...].astype(np.longdouble), back[name][...].astype(np.longdouble)
        inside = inside_of(file, file[name], box, levels) & (abs(before) < 1e30)
    change = (after - before)[inside].mean()
    if abs(change) > np.longdouble(most) or abs(after - before)[abs(before) < 1e30].max() > np.longdouble(loose):
        sys.exit(f"the mean of the region changes by {change!r}")
    print(inside.sum(), float(change))


{"make": make, "check": check, "mean": mean}[sys.argv[1]](*sys.argv[2:])
