# SPDX-License-Identifier: LGPL-3.0-or-later
"""Variables of xarray as a container stores them, for writing into one that is there. What the container's type, packing
or units cannot hold is refused: xarray would wrap numbers round, or change the units, of which the container knows nothing."""

import warnings

import numpy
import xarray

# What says how numbers are stored; taken from the container when data are added to it.
ENCODINGS = ("dtype", "units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value",
             "_Unsigned")


class _Fits:
    """Hands values through that the stored type can hold; for dask's blocks in any process, too."""

    def __init__(self, name, stored):
        encoding = stored.encoding
        self.name, self.dtype = name, numpy.dtype(encoding["dtype"])
        self.scale, self.offset = (float(numpy.asarray(encoding.get(k, default)).reshape(-1)[0])
                                   for k, default in (("scale_factor", 1), ("add_offset", 0)))
        self.packed = "scale_factor" in encoding or "add_offset" in encoding
        self.fills = [float(f) for k in ("_FillValue", "missing_value") if k in encoding
                      for f in numpy.asarray(encoding[k]).reshape(-1)]
        self.low, self.high = None, None
        if self.dtype.kind == "f":
            self.high = float(numpy.finfo(self.dtype).max)
            self.low = -self.high
        else:
            kind = {"true": "u", "false": "i"}.get(encoding.get("_Unsigned"), self.dtype.kind)
            limits = numpy.iinfo(f"{kind}{self.dtype.itemsize}")
            self.low, self.high = int(limits.min), int(limits.max)

    def _refuse(self, value, why):
        packing = f" with scale_factor {self.scale:g} and add_offset {self.offset:g}" if self.packed else ""
        raise ValueError(f"'{self.name}': {value} cannot be stored as {self.dtype.name}{packing}, as the container has it: {why}")

    def __call__(self, values):
        self._check(values.reshape(-1))
        return values

    def _check(self, values):
        known = values
        if values.dtype.kind == "f":
            if self.dtype.kind != "f":
                if numpy.isinf(values).any():
                    self._refuse("infinity", "whole numbers have none")
                if not self.fills and numpy.isnan(values).any():
                    self._refuse("a missing value", "it has no _FillValue")
            known = values[numpy.isfinite(values)]
        if not known.size:
            return
        stored = known
        if self.packed:
            stored = (known.astype("f8") - self.offset) / self.scale
        if self.dtype.kind != "f" and stored.dtype.kind == "f":
            stored = numpy.rint(stored)
        for index in (stored.argmin(), stored.argmax()):
            # Whole numbers of Python: 64 bits as floats would be rounded to what does not fit.
            if not self.low <= stored[index].item() <= self.high:
                ends = sorted((self.low * self.scale + self.offset, self.high * self.scale + self.offset))
                self._refuse(known[index], f"that holds {ends[0]:.10g} to {ends[1]:.10g}")
        if values.dtype.kind == "f" and self.dtype.kind != "f":
            for fill in self.fills:
                same = stored == fill
                if same.any():
                    self._refuse(known[same.argmax()], "it would be read as missing")


def _checked(variable, stored, name):
    """The same values; those of dask are looked at when they are computed."""
    target = stored.encoding.get("dtype")
    # xarray's own type of texts, times, what is refused elsewhere
    if not isinstance(target, (numpy.dtype, type)) or numpy.dtype(target).kind not in "iuf" or variable.dtype.kind not in "iuf":
        return variable
    target, fits = numpy.dtype(target), _Fits(name, stored)
    if not fits.packed and numpy.can_cast(variable.dtype, target, "safe"):
        return variable
    data = variable.data
    if hasattr(data, "__dask_graph__"):
        return variable.copy(deep=False, data=data.map_blocks(fits, dtype=data.dtype, meta=data._meta))
    fits(numpy.asarray(data))
    return variable


def _unit(units):
    """'days' of "day since 2000-01-01"; of a length of time that is all of it."""
    word = str(units).partition(" since ")[0].strip().lower()
    return word if word.endswith("s") else word + "s"


def bounds(variables):
    """{name of bounds: name of what they are bounds of}."""
    found = {}
    for name, variable in variables.items():
        for key in ("bounds", "climatology"):
            told = variable.attrs.get(key, variable.encoding.get(key))
            if isinstance(told, str) and told in variables and told != name:
                found[told] = name
    return found


def terms(variables):
    """Names that formulas of vertical coordinates take (CF, appendix D): "ap: ap b: b ps: ps"."""
    found = set()
    for variable in variables.values():
        told = variable.attrs.get("formula_terms", variable.encoding.get("formula_terms"))
        if isinstance(told, str):
            found.update(told.split()[1::2])
    return found


def _said(variable, of):
    """Units and calendar; bounds without their own have those of what they are bounds of (CF, 7.1)."""
    for told in (variable.attrs, *((of.attrs, of.encoding) if of is not None else ())):
        if "units" in told:
            return {k: told[k] for k in ("units", "calendar") if k in told}
    return {}


def encoded(variable, stored, name, of=(None, None)):
    """As the container stores it, by its own packing and units of time.
    @param stored the container's variable, opened without decoding times. @param of if these are bounds: what they are
    bounds of, the given variable and the container's; may be None."""
    variable = variable.transpose(*stored.dims).copy(deep=False)
    own, there = _said(variable, of[0]), _said(stored, of[1])
    is_time = " since " in str(there.get("units"))
    numbers = variable.dtype.kind in "iuf"
    if is_time and numbers and own and (
            own["units"] != there["units"] or own.get("calendar", "standard") != there.get("calendar", "standard")):
        # Numbers that count from elsewhere, of a dataset opened with decode_times=False.
        variable = variable.copy(deep=False)
        variable.attrs = {**variable.attrs, **own}
        variable = xarray.conventions.decode_cf_variable(name, variable, mask_and_scale=False, decode_timedelta=False)
    elif not is_time and numbers and "units" in variable.attrs and "units" in stored.attrs and own["units"] != there["units"]:
        warnings.warn(f"'{name}' is in '{own['units']}', and in '{there['units']}' in the container: its numbers are stored as "
                      "they are", stacklevel=2)
    variable.encoding = {k: stored.encoding[k] for k in ENCODINGS if k in stored.encoding}
    if variable.dtype.kind == "m" or is_time:
        variable.encoding |= there
    counted = variable.dtype.kind in "mMO" and "units" in variable.encoding
    result = xarray.conventions.encode_cf_variable(
        variable if counted else _checked(variable, stored, name), name=name)
    if counted and _unit(result.attrs.get("units")) != _unit(there.get("units")):
        raise ValueError(f"'{name}' has times that are no whole numbers of '{there.get('units')}', which the container stores as "
                         f"{numpy.dtype(stored.encoding['dtype']).name}: they would need '{result.attrs.get('units')}'")
    return result
