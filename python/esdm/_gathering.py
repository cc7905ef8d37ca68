# SPDX-License-Identifier: LGPL-3.0-or-later
"""What many processes write into one container, published in one commit, or not at all: they write to a branch."""

import contextlib
import os
import time

from . import _catalogue, _history
from ._library import plain_name


class _Line(str):
    """The name of the branch, for esdm.write_region() in any process. `snapshot` of the container is known at the end."""
    snapshot = None

    def __reduce__(self):  # other processes need the name alone
        return str, (str(self),)


def _named(name):
    """A branch that nobody else has, told by node, process and time, so that people see whose it is."""
    return f"gather-{os.uname().nodename.replace('@', '-').replace(':', '-')[:40]}-{os.getpid()}-{time.time_ns():x}"


@contextlib.contextmanager
def gather(name, message=None):
    """See esdm.gather()."""
    plain = plain_name(name)
    container, _, base = plain.partition("@branch:")
    line = _Line(_history.branch(plain, _named(plain)))
    try:
        yield line
        told = _history.merge(f"{container}@branch:{base}" if base else container, line.partition("@branch:")[2],
                              message=message or f"gathered from {line}")
        line.snapshot = told["snapshot"] or _catalogue.stat(plain).snapshot
    except _history.MergeConflict as conflict:
        conflict.message += (f" (others wrote the same to '{plain}' meanwhile: what was gathered is in the branch '{line}'. "
                             f"esdm-rm '{line}', or esdm.remove(), removes it, before the data are written anew; "
                             f"esdm.merge('{plain}', '{line.partition('@branch:')[2]}', prefer=\"theirs\") takes it in place "
                             "of what others wrote)")
        raise
    except BaseException:
        with contextlib.suppress(_catalogue.EsdmError):  # what went wrong first is told
            _catalogue._call("esdm_container_erase", line.encode())  # pylint: disable=protected-access
        raise
    _catalogue._call("esdm_container_erase", line.encode())  # pylint: disable=protected-access
