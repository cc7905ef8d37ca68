# SPDX-License-Identifier: LGPL-3.0-or-later
"""xarray's own tests of its netCDF4 engine, on containers: to be run by pytest, in a site of its own.

Where they make a file, they get an esdm:// name; netCDF4 writes it, and this package's engine reads it."""

import contextlib
import itertools

import pytest
import xarray.tests.test_backends as theirs

import esdm  # noqa: F401  to write with nothing but xarray imported

_numbers = itertools.count()
_of_files = theirs.create_tmp_file

@contextlib.contextmanager
def create_tmp_file(suffix=".nc", allow_cleanup_failure=False):
    if suffix == ".nc":
        yield f"esdm://suite/{next(_numbers)}.nc"
        return
    with _of_files(suffix, allow_cleanup_failure) as path:
        yield path


@contextlib.contextmanager
def create_tmp_files(nfiles, suffix=".nc", allow_cleanup_failure=False):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(create_tmp_file(suffix, allow_cleanup_failure)) for _ in range(nfiles)]


@pytest.fixture(autouse=True)
def _containers(monkeypatch):
    monkeypatch.setattr(theirs, "create_tmp_file", create_tmp_file)
    monkeypatch.setattr(theirs, "create_tmp_files", create_tmp_files)


class _Read:
    """What is opened is opened by our engine."""

    @contextlib.contextmanager
    def open(self, path, **options):
        with theirs.open_dataset(path, engine="esdm", **options) as dataset:
            yield dataset


class TestEngine(_Read, theirs.TestNetCDF4Data):
    pass


class TestEngineWithDask(_Read, theirs.TestNetCDF4ViaDaskData):
    pass


class TestDataArray(theirs.TestDataArrayToNetCDF):
    pass


def _differs(test, reason):
    """xarray does what it says before any engine is asked."""
    return pytest.mark.xfail(reason=reason, strict=True)(test)


WILD_CARDS = "xarray looks for wild cards in a single name, and refuses all that have ://; a list of names is taken"


class TestDask(theirs.TestDask):
    test_open_mfdataset_attrs_file_path = _differs(theirs.TestDask.test_open_mfdataset_attrs_file_path,
                                                   "a pathlib.Path of esdm://a is esdm:/a: xarray does not find it in its list")
    test_preprocess_mfdataset = _differs(theirs.TestDask.test_preprocess_mfdataset, WILD_CARDS)
    test_open_and_do_math = _differs(theirs.TestDask.test_open_and_do_math, WILD_CARDS)
    test_deterministic_names = _differs(theirs.TestDask.test_deterministic_names, WILD_CARDS)


class TestClassicModel(_Read, theirs.TestNetCDF4ClassicViaNetCDF4Data):
    pass
