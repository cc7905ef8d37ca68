# SPDX-License-Identifier: LGPL-3.0-or-later
"""How far a variable of a container is off. Arguments: FILE CONTAINER VARIABLE SHARE [ROW]
Prints the largest error, as a share of the range; ends with an error where special values have changed, or
a number is off by more than SHARE of the range. With ROW that row alone is read, in steps."""

import sys

import netCDF4
import numpy as np

path, container, name, share, *row = sys.argv[1:]
with netCDF4.Dataset(path) as file, netCDF4.Dataset(container) as stored:
    file.set_auto_maskandscale(False)
    stored.set_auto_maskandscale(False)
    part = (Ellipsis, int(row[0]), slice(None, None, 3)) if row else Ellipsis
    before, after = file[name][part], stored[name][part]
    whole = file[name][:]
    fill = [getattr(file[name], a) for a in ("_FillValue", "missing_value") if a in file[name].ncattrs()]
    exact = ~np.isfinite(whole) | np.isin(whole, fill)
    bits = before.dtype.str.replace("f", "u")
    special = ~np.isfinite(before) | np.isin(before, fill)
    if (before[special].view(bits) != after[special].view(bits)).any():
        sys.exit("special values have changed")
    span = float(whole[~exact].max()) - float(whole[~exact].min())
    error = np.abs(before[~special].astype("f8") - after[~special].astype("f8"))
    largest = float(error.max()) / span if error.size else 0.0
    if not largest <= float(share):
        sys.exit(f"off by {largest} of the range")
    print(largest)
