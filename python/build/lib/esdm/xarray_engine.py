# SPDX-License-Identifier: LGPL-3.0-or-later
"""The engine "esdm" of xarray: `xr.open_dataset("esdm://run1.nc")` with nothing imported but xarray."""

from xarray.backends import NetCDF4BackendEntrypoint

from . import activate

activate()


class EsdmBackend(NetCDF4BackendEntrypoint):
    """Containers by their esdm:// names, read as xarray reads netCDF files."""

    description = "Open containers of ESDM (esdm://NAME) in Xarray"

    def guess_can_open(self, filename_or_obj):
        """Names that begin with esdm:, and no others."""
        return isinstance(filename_or_obj, str) and filename_or_obj.startswith("esdm:")
