# SPDX-License-Identifier: LGPL-3.0-or-later
"""Statements of accuracy (esdm/accuracy.h): checked when they are made, and stated of variables."""

import collections.abc
import ctypes
import re
import sys

from . import _catalogue
from ._library import Error, EsdmError, check

LONG_NAMES = {"abs": "absolute_tolerance", "rel": "relative_tolerance", "finest": "relative_finest",
              "digits": "significant_digits", "range": "range_tolerance", "std": "std_tolerance", "bits": "significant_bits", "exact": "exact_values",
              "gradient": "gradient_tolerance", "vector": "vector_tolerance", "components": "vector_components", "mean": "mean_tolerance"}
# Of these the last one holds, as in esdm_accuracy_parse().
LAST_COUNTS = ("mode", "compression_speed", "decompression_speed")
# As src/model/accuracy.c cuts texts: regions, which have commas, end with a semicolon.
PART = re.compile(r"\s*((?:box|level|mask|regions)\s*=[^;]*|[^;,]*)[;,]?")
REGIONS = ("box", "level", "mask")  # how they begin
STATED_BYTES = 65536  # more than an esdm_accuracy takes


def _call(name, *arguments):
    function, error = getattr(_catalogue._api(), name), Error()  # pylint: disable=protected-access
    function.restype = ctypes.c_int
    check(function(*arguments, ctypes.byref(error)), error)


def _parts(text):
    """(quantity, value), by their long names; a text may have any number of regions."""
    for part in filter(None, (found.group(1).strip() for found in PART.finditer(text))):
        name, _, value = map(str.strip, part.partition("="))
        if name in REGIONS:
            yield "regions", part
        else:
            yield LONG_NAMES.get(name, name), value


def accuracy_attributes(text: str) -> "dict[str, str]":
    """The attributes `esdm_NAME` that state what a text such as "abs=0.01 K; mode=archive" does."""
    _call("esdm_accuracy_check_text", ctypes.c_char_p(text.encode()))
    stated = {}
    for name, value in _parts(text):
        key = "esdm_" + name
        if name == "regions" and key in stated:
            value = f"{stated[key]}; {value}"
        elif name == "exact_values" and key in stated:
            value = f"{stated[key]} {value}"
        elif key in stated and name not in LAST_COUNTS:
            raise ValueError(f"{name} is stated twice: '{stated[key]}' and '{value}'")
        stated[key] = value
    return stated


def _checked(variable, text):
    if not isinstance(variable, str) or not isinstance(text, str):
        raise TypeError("accuracy: names of variables and texts are needed, such as tas='abs=0.01 K', "
                        f"not {variable!r}: {text!r}")
    try:
        accuracy_attributes(text)
    except EsdmError as error:
        raise EsdmError(error.status, f"accuracy of '{variable}': {error.message}") from None
    except ValueError as error:
        raise ValueError(f"accuracy of '{variable}': {error}") from None
    return text


def _check_fits(variable, text, dtype, units):
    """Whether the text fits the type and the units of a variable; where these are not known yet, ESDM tells later."""
    if dtype is str or getattr(dtype, "kind", "") in ("S", "U"):
        raise ValueError(f"accuracy of '{variable}': an accuracy is of numbers, not of texts")
    if not isinstance(units, str):
        return
    stated = ctypes.create_string_buffer(STATED_BYTES)
    try:
        _call("esdm_accuracy_parse", stated, ctypes.c_char_p(text.encode()), ctypes.c_char_p(units.encode()))
    except EsdmError as error:
        raise EsdmError(error.status, f"accuracy of '{variable}': {error.message}") from None


def _unknown(variable, known):
    import difflib  # pylint: disable=import-outside-toplevel
    near = [k for k in known if k.endswith(f"/{variable}")] or difflib.get_close_matches(variable, known, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return ValueError(f"accuracy: there is no variable '{variable}'{hint}")


def _is_a(dataset, package):
    """Whether it is a Dataset of that package, which is not imported for that."""
    kind = getattr(sys.modules.get(package), "Dataset", None)
    return kind is not None and isinstance(dataset, kind)


def _variables_of(group, path=""):
    """Of an open netCDF4.Dataset, by path: {"tas": …, "ocean/tos": …}."""
    found = {path + name: variable for name, variable in group.variables.items()}
    for name, child in group.groups.items():
        found.update(_variables_of(child, f"{path}{name}/"))
    return found


class Accuracy(collections.abc.Mapping):
    """What must be kept of which variables: {"tas": "abs=0.01 K; mode=archive"}. Made by esdm.accuracy();
    does not change. Of esdm.write(), Dataset.esdm.to() and apply()."""

    def __init__(self, statements):
        self._texts = {}
        for variable, text in statements:
            plain = variable.strip("/") if isinstance(variable, str) else variable
            if plain in self._texts:
                raise ValueError(f"accuracy: of '{plain}' something is stated twice")
            self._texts[plain] = _checked(plain, text)

    def __getitem__(self, variable):
        return self._texts[variable]

    def __iter__(self):
        return iter(self._texts)

    def __len__(self):
        return len(self._texts)

    def __hash__(self):
        return hash(frozenset(self._texts.items()))

    def __repr__(self):
        return f"esdm.accuracy({self._texts!r})"

    def attributes(self, variable: str) -> "dict[str, str]":
        """The attributes that state it, for programs that write them by themselves:
        {"esdm_absolute_tolerance": "0.01 K", "esdm_mode": "archive"}."""
        return accuracy_attributes(self._texts[variable])

    def apply(self, dataset):
        """States it of the variables of an open netCDF4.Dataset, for what is written from then on; those of groups
        are called "ocean/tos". Or of an xarray.Dataset: a copy, which shares its data, has the attributes.
        Nothing is stated when a variable is not there, or has other units.
        @return the netCDF4.Dataset that was given, or the copy."""
        if _is_a(dataset, "netCDF4"):
            known = _variables_of(dataset)
            units = {name: getattr(variable, "units", None) for name, variable in known.items()}
        elif _is_a(dataset, "xarray"):
            dataset = dataset.copy(deep=False)
            known = dataset.variables
            units = {name: v.attrs.get("units", v.encoding.get("units")) for name, v in known.items()}
        else:
            raise TypeError(f"accuracy: a netCDF4.Dataset or an xarray.Dataset is needed, not {type(dataset).__name__}")
        for variable, text in self._texts.items():
            if variable not in known:
                raise _unknown(variable, [name for name in known if isinstance(name, str)])
            _check_fits(variable, text, known[variable].dtype, units[variable])
        for variable in self._texts:
            stated = self.attributes(variable)
            if hasattr(known[variable], "setncatts"):
                known[variable].setncatts(stated)
            else:
                known[variable].attrs.update(stated)
        return dataset


def accuracy(statements: "collections.abc.Mapping[str, str] | None" = None, **by_variable: str) -> Accuracy:
    """What must be kept of variables: `esdm.accuracy(tas="abs=0.01 K; mode=archive")`. Texts are checked at once; those
    that are wrong raise EsdmError, or ValueError, with ESDM's message. Units are compared where it is applied.
    @param statements the same as a dictionary, for names that are no names in Python: {"ocean/tos": "digits=4"}.
    @param by_variable a text for each variable. All quantities: docs/reference.md, "How accurate"."""
    if isinstance(statements, str):
        raise TypeError(f"accuracy: say of which variables, as in {{'tas': {statements!r}}}")
    return Accuracy([*(statements or {}).items(), *by_variable.items()])
