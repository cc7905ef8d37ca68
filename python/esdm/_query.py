# SPDX-License-Identifier: LGPL-3.0-or-later
"""Queries in place of names: what they find opens as one container."""

from ._catalogue import virtual_save


def _escaped(text):
    return text.replace("%", "%25").replace("&", "%26")


def query(*expressions: str, ensemble=None, overlap=None, gaps=None, across=None, **attributes) -> str:
    """The name of all containers with these attributes, as one:
    `xarray.open_dataset(esdm.query(source_id="MPI-ESM1-2-LR", variable_id="tas", ensemble="variant_label"))`.

    @param expressions in the language of esdm-find. @param ensemble an attribute that becomes a dimension.
    @param overlap "first" or "newest": who wins where several have other values for the same times.
    @param gaps "fill": times that are in none get missing values. @param across "source_id,variant_label" or "*":
    attributes in which what is joined may differ although they tell one model, member, table or grid from another."""
    parts = [_escaped(text) for text in expressions]
    parts += [f"{name}={_escaped(str(value))}" for name, value in attributes.items()]
    options = {"ensemble": ensemble, "overlap": overlap, "gaps": gaps, "across": across}
    parts += [f"{name}={_escaped(value)}" for name, value in options.items() if value is not None]
    return "esdm://?" + "&".join(parts)


def link(question: str, name: str, pin: bool = False, replace: bool = False) -> None:
    """Gives a query a name, as esdm-ln does. @param pin its members stay as they are now."""
    virtual_save(question, name, pin, replace)
