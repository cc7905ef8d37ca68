# SPDX-License-Identifier: LGPL-3.0-or-later
"""Read when Python starts, by esdm-start.pth: so that a program that imports nothing but xarray can write to an esdm://
name at once, `dataset.to_netcdf("esdm://run1.nc")`. xarray asks entry points when it opens files, but not when it writes
them. Nothing is loaded, and no other program is changed, until xarray is given such a name: then esdm is imported."""

import sys


class _WhenXarrayWrites:
    """A finder of modules, for that of xarray's netCDF4 engine alone."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname != "xarray.backends.netCDF4_":
            return None
        sys.meta_path.remove(_WhenXarrayWrites)
        from importlib.util import find_spec  # pylint: disable=import-outside-toplevel
        spec = find_spec(fullname)
        own = getattr(getattr(spec, "loader", None), "exec_module", None)
        if own is None:
            return spec

        def exec_module(module):
            del spec.loader.exec_module  # of this object: its class has one
            own(module)
            _watch(getattr(module, "NetCDF4DataStore", None))

        spec.loader.exec_module = exec_module
        return spec


def _watch(store):
    """Has the engine import esdm when it is given an esdm: name, once."""
    own = vars(store).get("open") if store is not None else None
    if not isinstance(own, classmethod):
        return
    from functools import wraps  # pylint: disable=import-outside-toplevel

    @classmethod
    @wraps(own.__func__)
    def open(cls, filename, *rest, **options):  # pylint: disable=redefined-builtin
        if isinstance(filename, str) and filename[:5].lower() == "esdm:":
            store.open = own
            import esdm  # pylint: disable=import-outside-toplevel,unused-import
        return own.__func__(cls, filename, *rest, **options)

    store.open = open


sys.meta_path.insert(0, _WhenXarrayWrites)
