# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a site holds, over the C API (esdm/session.h)."""

import ctypes
import dataclasses
import datetime
import functools
import os
import re
import sys
import threading
import warnings

from ._library import PLUGIN, Error, EsdmError, NotFound, check, load, plain_name

# A snapshot as a text: a number, -1, a day or time, tag:NAME; branch:NAME is the newest one of a branch.
SNAPSHOT = re.compile(r"-?[0-9]+$|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?Z?$|(tag|branch):.", re.DOTALL)
MODES = re.compile(r"[rwax][+s]?s?$|r\+s?$")  # of netCDF4.Dataset()
ASKED = re.compile(r"\?(?:accuracy=.*|digest)$", re.DOTALL)  # as src/api/coarse.c and digest.c have it


class _Info(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p)] + [
        (name, ctypes.c_uint64) for name in ("snapshot", "created_ns", "modified_ns", "raw_bytes",
                                             "stored_bytes", "fragments")] + [
        ("datasets", ctypes.c_uint32)]


class _Match(ctypes.Structure):
    _fields_ = [("container", ctypes.c_char_p), ("dataset", ctypes.c_char_p)]


class _Snapshot(ctypes.Structure):
    _fields_ = [("snapshot", ctypes.c_uint64), ("parent", ctypes.c_uint64),
                ("time_ns", ctypes.c_uint64), ("writer", ctypes.c_char_p),
                ("message", ctypes.c_char_p)]


class _View(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("template_text", ctypes.c_char_p), ("levels", ctypes.c_size_t),
                ("built_in", ctypes.c_bool)]


class _Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("containers", ctypes.c_uint64), ("is_last", ctypes.c_bool)]


def _visitor(structure):
    return ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.POINTER(structure), ctypes.c_void_p)


@functools.lru_cache(maxsize=None)
def _api():
    library = load("libesdm.so.0")
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, arguments in {
            "esdm_site_find": [pointer, pointer],
            "esdm_session_open": [pointer, ctypes.POINTER(pointer), pointer],
            "esdm_session_site_name": [pointer],
            "esdm_container_list": [pointer, text, pointer, pointer, pointer],
            "esdm_container_stat": [pointer, text, pointer, pointer],
            "esdm_container_snapshots": [pointer, text, pointer, pointer, pointer],
            "esdm_container_remove": [pointer, text, pointer],
            "esdm_container_erase": [pointer, text, pointer],
            "esdm_container_move": [pointer, text, text, ctypes.c_bool, pointer],
            "esdm_container_clone": [pointer, text, text, ctypes.c_bool, pointer],
            "esdm_virtual_save": [pointer, text, text, ctypes.c_bool, ctypes.c_bool, pointer],
            "esdm_view_list": [pointer, pointer, pointer, pointer],
            "esdm_view_level": [pointer, text, pointer, pointer, pointer],
            "esdm_view_containers": [pointer, text, pointer, pointer, pointer],
            "esdm_find": [pointer, text, pointer, pointer, pointer],
            "esdm_find_explain": [pointer, text, pointer, pointer, pointer],
            "esdm_find_facets": [pointer, text, pointer, ctypes.c_size_t, pointer, pointer, pointer]}.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = ctypes.c_int
    library.esdm_view_is_said.argtypes = [pointer, text]
    library.esdm_view_is_said.restype = ctypes.c_bool
    library.esdm_session_site_name.restype = text
    library.esdm_version.restype = text
    library.esdm_container_suggest.argtypes = [pointer, text, text, ctypes.c_size_t]
    library.esdm_container_suggest.restype = library.esdm_records_keep.restype = None
    return library


def version() -> str:
    """The version of the library that runs."""
    return _api().esdm_version().decode()


_lock = threading.Lock()
_session = None


def _forget_session():
    """In a forked process: a session does not survive fork(), and the lock may have been held."""
    global _lock, _session
    _lock = threading.Lock()
    _session = None


os.register_at_fork(after_in_child=_forget_session)


class NoSite(NotFound):
    """Nobody has used the default site yet, and no other is configured."""


def _check_for_site():
    """Whoever only asks makes no default site."""
    path, error = ctypes.c_void_p(), Error()
    if _api().esdm_site_find(ctypes.byref(path), ctypes.byref(error)) != 0:
        return  # opening says why
    if path.value is not None:
        ctypes.CDLL(None).free(path)
        return
    data = os.environ.get("XDG_DATA_HOME", "")
    data = data if data.startswith("/") else os.path.join(os.environ.get("HOME", ""), ".local/share")
    if data.startswith("/") and not os.path.lexists(os.path.join(data, "esdm")):
        raise NoSite(2, "there is no site yet: the default one is made when something is first written; "
                        "one that others have made is named by ESDM_CONFIG")


def _open_session(makes=False):
    """The session of this process: opened at the first question, as programs open theirs.
    @param makes the default site, when it is not there yet; else NoSite."""
    global _session
    with _lock:
        if _session is None:
            handle, error = ctypes.c_void_p(), Error()
            if not makes:
                _check_for_site()
            _api().esdm_records_keep()  # for esdm.report()
            check(_api().esdm_session_open(None, ctypes.byref(handle), ctypes.byref(error)), error)
            _session = handle
        return _session


def _call(name, *arguments):
    error = Error()
    session = _open_session()
    check(getattr(_api(), name)(session, *arguments, ctypes.byref(error)), error)


def _visiting(structure, take, call):
    """Calls `call` with a visitor; an exception of `take` ends the visit and is raised again."""
    raised = []

    def visit(item, _):
        try:
            take(item.contents)
            return True
        except BaseException as error:  # pylint: disable=broad-except
            raised.append(error)
            return False

    callback = _visitor(structure)(visit)
    result = call(ctypes.cast(callback, ctypes.c_void_p))
    if raised:
        raise raised[0]
    return result


def _visit(name, structure, take, *arguments):
    """Calls a function of the session that visits."""
    _visiting(structure, take, lambda visitor: _call(name, *arguments, visitor, None))


def _has_site():
    """Whether there is one to be listed; says it where there is none."""
    try:
        _open_session()
        return True
    except NoSite as none:
        warnings.warn(str(none), stacklevel=3)
        return False


def _time(nanoseconds):
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(microseconds=nanoseconds // 1000)  # a float would round


def _bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def _open_xarray(url, options):
    import xarray  # pylint: disable=import-outside-toplevel
    from .xarray_engine import EsdmBackend  # pylint: disable=import-outside-toplevel
    # By its class: of a package that is in PYTHONPATH alone xarray does not know the engine's name.
    return xarray.open_dataset(url, engine=EsdmBackend, **options)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """One published state of a container."""
    name: str
    snapshot: int
    time: datetime.datetime
    writer: str
    message: str

    @property
    def url(self) -> str:
        """What NetCDF programs open."""
        return f"esdm://{self.name}@{self.snapshot}"

    def row(self):
        return {"snapshot": self.snapshot, "time": f"{self.time:%Y-%m-%d %H:%M:%S}",
                "writer": self.writer, "message": self.message}


@dataclasses.dataclass(frozen=True)
class Container:
    """A container of the site, as it was when it was asked for."""
    name: str
    snapshot: int
    created: datetime.datetime
    modified: datetime.datetime
    raw_bytes: int
    stored_bytes: int
    fragments: int
    datasets: int

    @property
    def url(self) -> str:
        """What NetCDF programs open."""
        return f"esdm://{self.name}"

    def snapshots(self) -> "Table":
        """The snapshots that are kept, oldest first."""
        return snapshots(self.name)

    def open(self, snapshot=None, mode="r", **options):
        """A netCDF4.Dataset. @param snapshot a number, -1 (the one before the newest), or a time."""
        return open_dataset(self.name, snapshot, mode, **options)

    def to_xarray(self, snapshot=None, **options):
        """An xarray.Dataset, read when it is needed."""
        return _open_xarray(_url(self.name, snapshot), options)

    def row(self):
        return {"name": self.name, "modified": f"{self.modified:%Y-%m-%d %H:%M:%S}",
                "data": _bytes(self.raw_bytes), "stored": _bytes(self.stored_bytes),
                "variables": self.datasets, "snapshot": self.snapshot}


@dataclasses.dataclass(frozen=True)
class Match:
    """What a question found: a container, or a variable in one."""
    container: str
    variable: "str | None"

    @property
    def url(self) -> str:
        return f"esdm://{self.container}"

    def open(self, snapshot=None, mode="r", **options):
        """The container as a netCDF4.Dataset."""
        return open_dataset(self.container, snapshot, mode, **options)

    def to_xarray(self, snapshot=None, **options):
        """The container as an xarray.Dataset."""
        return _open_xarray(_url(self.container, snapshot), options)

    def row(self):
        return {"container": self.container, "variable": self.variable or ""}


@dataclasses.dataclass(frozen=True)
class Place:
    """A place in a view: a folder, or with all levels what opens as one container."""
    name: str
    containers: int
    is_folder: bool

    @property
    def url(self) -> str:
        """What NetCDF programs open, unless it is a folder."""
        return f"esdm://{self.name}"

    def ls(self) -> "Table":
        """What lies below it; the containers that are there when it is no folder."""
        return ls(self.name)

    def open(self, mode="r", **options):
        """All that is there as one netCDF4.Dataset."""
        return open_dataset(self.name, None, mode, **options)

    def to_xarray(self, **options):
        """All that is there as one xarray.Dataset, read when it is needed."""
        return _open_xarray(self.url, options)

    def row(self):
        return {"place": self.name + ("/" if self.is_folder else ""), "containers": self.containers}


@dataclasses.dataclass(frozen=True)
class View:
    """A view of the site, and the attributes of its levels."""
    name: str
    template: str

    def ls(self) -> "Table":
        """The first level."""
        return ls(f"{self.name}:")

    def row(self):
        return {"view": self.name, "template": self.template}


@dataclasses.dataclass(frozen=True)
class Facet:
    """A value of an attribute, and how many containers have it."""
    name: str
    value: str
    containers: int

    def row(self):
        return {"attribute": self.name, "value": self.value, "containers": self.containers}


# So many rows are shown; the list has all.
ROWS_SHOWN = 60


class Table(list):
    """A list that is shown as a table, in notebooks too."""

    def _left_out(self):
        return f"… and {len(self) - ROWS_SHOWN} more" if len(self) > ROWS_SHOWN else ""

    def __repr__(self):
        rows = [item.row() for item in self[:ROWS_SHOWN]]
        if not rows:
            return "(nothing)"
        heads = list(rows[0])
        lines = [heads] + [[str(row[h]) for h in heads] for row in rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip()
                         for line in lines) + (self._left_out() and "\n" + self._left_out())

    def _repr_html_(self):
        import html  # pylint: disable=import-outside-toplevel  # a fifth of what `import esdm` takes
        rows = [item.row() for item in self[:ROWS_SHOWN]]
        if not rows:
            return "<p>(nothing)</p>"
        head = "".join(f"<th>{html.escape(h)}</th>" for h in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in row.values())
                       + "</tr>" for row in rows)
        more = self._left_out() and f"<p>{self._left_out()}</p>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _container(info, name):
    return Container(name, info.snapshot, _time(info.created_ns), _time(info.modified_ns),
                     info.raw_bytes, info.stored_bytes, info.fragments, info.datasets)


def site() -> str:
    """The name of the site that this process uses."""
    return _api().esdm_session_site_name(_open_session()).decode()


def views() -> Table:
    """The views of the site, by name."""
    found = Table()
    if not _has_site():
        return found
    _visit("esdm_view_list", _View,
           lambda view: found.append(View(view.name.decode(), view.template_text.decode("utf-8", "replace"))))
    return found


def _places(place):
    found = Table()
    place = place.removeprefix("esdm://").strip("/")
    _visit("esdm_view_level", _Entry,
           lambda e: found.append(Place(f"{place}/{e.name.decode()}", e.containers, not e.is_last)),
           place.encode())
    if not found:
        _visit("esdm_view_containers", _Info,
               lambda info: found.append(_container(info, info.name.decode("utf-8", "replace"))),
               place.encode())
    return found


def ls(prefix: "str | None" = None) -> Table:
    """The containers of the site, or of what lies below `prefix`, by name. Where `prefix` is a place of
    a view, "cmip6:/CMIP6", the places directly below it, and at the last level the containers there."""
    if not _has_site():
        return Table()
    if prefix is not None and _api().esdm_view_is_said(_open_session(), prefix.encode()):
        return _places(prefix)
    found = Table()
    _visit("esdm_container_list", _Info,
           lambda info: found.append(_container(info, info.name.decode("utf-8", "replace"))),
           prefix.encode() if prefix is not None else None)
    return found


def stat(name: str) -> Container:
    """One container. NotFound when there is none."""
    info, plain = _Info(), plain_name(name)
    _call("esdm_container_stat", plain.encode(), ctypes.byref(info))
    return _container(info, plain)


def find(question: str) -> Table:
    """Containers and variables by their attributes, in the language of esdm-find:
    `find("source_id = MPI-ESM1-2-LR and table_id = Amon")`. Names that nothing in the site has
    are told by a warning."""
    found = Table()
    if not _has_site():
        return found

    def take(match):
        variable = match.dataset.decode("utf-8", "replace") if match.dataset else None
        found.append(Match(match.container.decode("utf-8", "replace"), variable))

    _visit("esdm_find", _Match, take, question.encode())
    if not found:
        for reason in _why_nothing(question):
            warnings.warn(reason, stacklevel=2)
    return found


def _why_nothing(question):
    """Names in it that nothing has: a slip of the pen must not look like an answer."""
    reasons = []

    def take(reason, _):
        reasons.append(reason.decode("utf-8", "replace"))
        return True

    callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_char_p, ctypes.c_void_p)(take)
    _call("esdm_find_explain", question.encode(), ctypes.cast(callback, ctypes.c_void_p), None)
    return reasons


def facets(question: "str | None", *names: str) -> Table:
    """How many of the containers that a question finds have each value of some attributes, the most frequent value of
    each first: `facets("table_id = Amon", "source_id", "experiment_id")`, as `esdm-find --facets` counts. No container is
    opened. @param question None: all containers. @param names attributes, without variables; those that nothing in the
    site has are told by a warning."""
    if not names:
        raise TypeError('facets() takes a question and the names of attributes: facets("table_id = Amon", "source_id")')
    found = Table()
    if not _has_site():
        return found
    if question is None:
        for name in names:
            _count_facets(_has(name), (name,), found)
    else:
        _count_facets(question, names, found)
    for name in {*names}.difference(facet.name for facet in found):
        for reason in _why_nothing(_has(name)):
            warnings.warn(reason, stacklevel=2)
    return found


def _has(name):
    """The question for containers that have an attribute, with whatever characters."""
    quoted = name.replace("\\", r"\\").replace('"', r'\"')
    return f'exists :"{quoted}"'


def _count_facets(question, names, found):
    raised = []

    def take(index, value, containers, _):
        try:
            found.append(Facet(names[index], value.decode("utf-8", "replace"), containers))
            return True
        except BaseException as error:  # pylint: disable=broad-except  # Ctrl-C
            raised.append(error)
            return False

    callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p)(take)
    listed = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
    _call("esdm_find_facets", question.encode(), listed, len(names), ctypes.cast(callback, ctypes.c_void_p), None)
    if raised:
        raise raised[0]


def snapshots(name: str) -> Table:
    """The snapshots of a container that are kept, oldest first."""
    found = Table()
    plain = plain_name(name)
    _visit("esdm_container_snapshots", _Snapshot,
           lambda s: found.append(Snapshot(plain, s.snapshot, _time(s.time_ns),
                                           s.writer.decode("utf-8", "replace"),
                                           s.message.decode("utf-8", "replace"))),
           plain.encode())
    return found


def remove(name: str) -> None:
    """Removes a container. The site keeps it for a while (esdm-restore)."""
    _call("esdm_container_remove", plain_name(name).encode())


def move(name: str, new_name: str, replace: bool = False) -> None:
    """Gives a container another name. No data are copied."""
    _call("esdm_container_move", plain_name(name).encode(), plain_name(new_name).encode(), replace)


def clone(name: str, new_name: str, replace: bool = False) -> None:
    """Makes a container of a snapshot of another one ("run.nc", "run.nc@7", "run.nc@-1"), without
    copying data: both share what is stored, and each goes on without the other."""
    _call("esdm_container_clone", plain_name(name).encode(),
          plain_name(new_name).encode(), replace)


def virtual_save(question: str, name: str, pin: bool, replace: bool) -> None:
    """esdm_virtual_save()."""
    _open_session(makes=True)
    _call("esdm_virtual_save", question.encode(), name.encode(), pin, replace)


def split_asked(name):
    """A name, and how it is to be read ("?accuracy=1%", "?digest"), or ""."""
    asked = ASKED.search(name, 1)
    return (name[:asked.start()], asked.group()) if asked and not name.startswith("?") else (name, "")


def asked_of(name):
    """How a name, or the one container that a query finds, is to be read: "?accuracy=1%", "?digest", or ""."""
    if not name.startswith("?"):
        return split_asked(name)[1]
    return next((f"?{part}" for part in name[1:].split("&") if part.startswith("accuracy=")), "")


def _snapshot_text(snapshot):
    """What stands behind the '@'. Whatever names no snapshot is refused: "there is no container 'x.nc@w'" would be
    told else."""
    if isinstance(snapshot, datetime.datetime):
        if snapshot.tzinfo is not None:
            snapshot = snapshot.astimezone(datetime.timezone.utc)
        return snapshot.replace(tzinfo=None).isoformat()  # with the parts of a second that it has
    text = str(snapshot)
    a_number = hasattr(snapshot, "__index__") and not isinstance(snapshot, bool)
    is_text = isinstance(snapshot, (str, datetime.date)) or type(snapshot).__name__ == "datetime64"
    if (a_number or is_text) and SNAPSHOT.match(text):
        return text
    why = f"{snapshot!r} names no snapshot: that is a number, -1 (the one before the newest), a time (\"2026-11-20T12:00\", UTC) or \"tag:NAME\""
    if isinstance(snapshot, str) and MODES.match(snapshot):
        why += (". If it is a mode: esdm.write() and Dataset.esdm.to() write datasets of xarray, netCDF4.Dataset(\"esdm://NAME\", "
                f"{snapshot!r}) and esdm.open(NAME, mode={snapshot!r}) open for netCDF4")
    raise (ValueError if is_text else TypeError)(why)


def _url(name, snapshot):
    plain = plain_name(name)
    if snapshot is None:
        return f"esdm://{plain}"
    plain, asked = split_asked(plain)
    return f"esdm://{plain}@{_snapshot_text(snapshot)}{asked}"


def open_dataset(name: str, snapshot=None, mode: str = "r", **options):
    """A container as a netCDF4.Dataset. @param snapshot a number, -1 (the one before the newest), or
    a time (datetime, or a text such as "2026-11-20T12:00", UTC), "tag:NAME". @param mode of netCDF4, by its name alone:
    mode="a"."""
    import netCDF4  # pylint: disable=import-outside-toplevel
    url = _url(name, snapshot)
    told, failed = ctypes.create_string_buffer(8192), None
    plugin = load(PLUGIN)
    plugin.esdm_netcdf_listen(told, ctypes.c_size_t(len(told)))
    try:
        return netCDF4.Dataset(url, mode, **options)
    except OSError as error:
        failed = error
    finally:
        plugin.esdm_netcdf_listen(None, ctypes.c_size_t(0))
        said = told.value.decode("utf-8", "replace")
        if failed is None and said:  # it is open, or has another error
            print("\n".join(f"esdm: {line}" for line in said.splitlines()), file=sys.stderr)
    raise _why_not(url, mode, failed, "; ".join(said.splitlines()))


open_dataset.__name__ = open_dataset.__qualname__ = "open"  # what errors of Python and help() call it


def _hint(name):
    """What to tell somebody who named a container that is not there: "; did you mean …?", or nothing."""
    if "@" in name or "?" in name:  # the message tells what there is
        return ""
    text = ctypes.create_string_buffer(2048)
    try:
        session = _open_session()
    except NoSite as none:
        return f"; {none}"
    _api().esdm_container_suggest(session, name.encode(), text, len(text))
    told = text.value.decode("utf-8", "replace")
    if not told and _is_empty():
        told = "the site has no containers yet; one that others have made is named by ESDM_CONFIG"
    return f"; {told}" if told else ""


def _is_empty():
    """Whether nobody has stored anything: mostly the site that is made where none is named."""
    seen = []
    first = ctypes.cast(_visitor(_Info)(lambda info, _: bool(seen.append(True))), ctypes.c_void_p)
    _call("esdm_container_list", None, first, None)
    return not seen


def _why_not(url, mode, failed, said):
    """netCDF's codes cannot say what is wrong with a name: the exception that can. @param said by the plug-in."""
    from . import _data  # pylint: disable=import-outside-toplevel
    if mode != "r":
        if not said:
            return failed
        return OSError(failed.errno, said) if failed.errno > 0 else EsdmError(1, said)  # a PermissionError stays one
    try:
        _data.Handle(url.removeprefix("esdm://"), 0)
    except EsdmError as told:
        return type(told)(told.status, said or told.message)
    return OSError(said or f"'{url}' cannot be opened; ESDM_DEBUG=1 tells why")
