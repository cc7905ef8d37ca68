#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Makes the interposed functions of libesdm-watch.so from calls.list, and the names of the calls.

Usage: generate.py calls.list calls.c calls.h
"""

import pathlib
import re
import sys

HEAD = "/* SPDX-License-Identifier: LGPL-3.0-or-later */\n/* Made by generate.py from calls.list. */\n"
CTYPES = {"text": "char", "schar": "signed char", "uchar": "unsigned char", "short": "short",
          "int": "int", "long": "long", "float": "float", "double": "double",
          "ubyte": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int",
          "longlong": "long long", "ulonglong": "unsigned long long", "string": "char *",
          "": "void"}


class Call:
    def __init__(self, line):
        prototype, self.kind, arguments = (part.strip() for part in line.split("|"))
        match = re.match(r"(.*?)(\w+)\((.*)\)$", prototype)
        self.type, self.name, self.parameters = (g.strip() for g in match.groups())
        self.names = [re.search(r"(\w+)$", p).group(1) for p in self.parameters.split(",")
                      if p.strip() != "..."]
        self.variadic = self.parameters.endswith("...")
        self.arguments = dict(a.split("=") if "=" in a else (a, a) for a in arguments.split())

    def has(self, name):
        return name in self.arguments

    def arg(self, name, otherwise):
        return self.arguments.get(name, otherwise)

    @property
    def op(self):
        return "WATCH_OP_" + self.name


def body_of(call, real):
    """What comes after the real call, whose result is `result`."""
    op, a = call.op, call.arguments
    if call.kind == "open":
        folder, flags = call.arg("dir", "AT_FDCWD"), call.arg("flags", "O_WRONLY | O_CREAT | O_TRUNC")
        return f"watch__opened(&call, {op}, result, {folder}, path, {flags});"
    if call.kind == "fopen":
        return f"watch__fopened(&call, {op}, result, path, mode);"
    if call.kind in ("read", "write"):
        where = a["at"] if call.has("at") else "-1"
        if call.has("vector"):
            want = "watch__vector_bytes(vector, count)"
        elif call.has("text"):
            want = "0"
        else:
            want = f"(uint64_t) {a['want']}" if call.has("want") else "0"
        moved = "result > 0 ? (uint64_t) result : 0"
        if call.has("unit"):
            want, moved = f"unit * {want}", "(uint64_t) result * unit"
        elif call.has("text"):
            good = "result != NULL" if call.type.endswith("*") else "result >= 0"
            moved = f"{good} ? strlen({a['text']}) : 0"
        writes = "true" if call.kind == "write" else "false"
        if call.has("file"):
            return f"watch__file_moved(&call, {op}, file, {writes}, {want}, {moved});"
        failed = "result < 0"
        return f"watch__moved(&call, {op}, fd, {writes}, (int64_t) {where}, {want}, {moved}, {failed});"
    simple = {"close": f"watch__closed(&call, {op}, fd);", "fclose": f"watch__closed(&call, {op}, fd);",
              "dup": f"watch__duplicated(&call, {op}, fd, result);",
              "seek": f"watch__sought(&call, {op}, fd, (int64_t) result);",
              "fseek": f"watch__file_sought(&call, {op}, file);",
              "map": f"watch__mapped(&call, {op}, fd, result != MAP_FAILED ? length : 0, (uint64_t) at);",
              "copy": f"watch__copied(&call, {op}, in, out, result > 0 ? (uint64_t) result : 0);",
              "ncopen": f"watch__nc_opened(&call, {op}, path, ret_ncid, result);",
              "ncclose": f"watch__nc_closed(&call, {op}, ncid);",
              "ncmeta": f"watch__nc_meta(&call, {op}, ncid, result);"}
    if call.kind == "sync":
        return (f"watch__file_synced(&call, {op}, file);" if call.has("file")
                else f"watch__synced(&call, {op}, fd);")
    if call.kind == "path":
        folder = "dir" if call.has("dir") else "AT_FDCWD"
        return f"watch__path(&call, {op}, {folder}, path, result != 0);"
    return simple[call.kind]


def function(call):
    lines = [f"WATCH_EXPORT {call.type}\n{call.name}({call.parameters})\n{{"]
    is_nc = call.kind.startswith("nc")
    passed = list(call.names)
    real = call.arg("as", call.name)
    if call.variadic and not call.has("as"):
        lines += ["    mode_t mode = 0;", "    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {",
                  "        va_list more;", "        va_start(more, flags);",
                  "        mode = va_arg(more, mode_t);", "        va_end(more);", "    }"]
        passed.append("mode")
    if call.has("as"):
        passed.append("values")
    get = "WATCH_NC_REAL" if is_nc else "WATCH_REAL"
    hand_on = f"real({', '.join(passed)})"
    lines += [f"    watch_real_{real} real = {get}(watch_real_{real}, \"{real}\");",
              "    watch_call call;"]
    if is_nc:
        lines += ["    if (real == NULL)", "        return watch__nc_absent();"]
    lines += [f"    {call.type} result;"]
    start = "watch__nc_begin(&call, __builtin_return_address(0))" if is_nc else "watch__begin(&call)"
    if call.has("as"):
        lines += ["    va_list values;", f"    va_start(values, {call.names[-1]});",
                  f"    bool observed = {start};", f"    result = {hand_on};", "    va_end(values);",
                  "    if (observed) {", "        watch__real_done(&call);",
                  f"        {body_of(call, real)}", "    }", "    return result;", "}\n"]
        return "\n".join(lines)
    lines += [f"    if (!{start})", f"        return {hand_on};"]
    if call.kind == "close":
        lines += ["    watch__closing(&call, fd);"]
    elif call.kind == "fclose":
        lines += ["    int fd = file != NULL ? fileno(file) : -1;", "    watch__closing(&call, fd);"]
    elif call.kind in ("read",) and not call.has("file") :
        at = "(int64_t) at" if call.has("at") else "-1"
        lines += [f"    watch__reading(&call, fd, {at}, "
                  + ("watch__vector_bytes(vector, count)" if call.has("vector") else "bytes") + ");"]
    elif call.kind == "ncclose":
        lines += ["    watch__nc_closing(&call, ncid);"]
    lines += [f"    result = {hand_on};", "    watch__real_done(&call);", f"    {body_of(call, real)}",
              "    return result;", "}\n"]
    return "\n".join(lines)


def typedef(call):
    parameters = call.parameters
    return f"typedef {call.type} (*watch_real_{call.name})({parameters});"


def data_calls(line):
    """nc_get_vara_float and its like."""
    directions, shapes, types = (part.split() for part in line.split("|"))
    for direction in directions[1:]:
        for shape in shapes:
            for name in ["", *types]:
                const = "const " if direction == "put" else ""
                starts = {"var": "", "var1": "const size_t *start, ",
                          "vara": "const size_t *start, const size_t *count, ",
                          "vars": "const size_t *start, const size_t *count, const ptrdiff_t *stride, ",
                          "varm": "const size_t *start, const size_t *count, const ptrdiff_t *stride, "
                                  "const ptrdiff_t *map, "}[shape]
                ctype = CTYPES[name]
                value = f"{ctype}{const.strip()} *data" if ctype.endswith("*") and const else \
                    f"{const}{ctype} *data"
                if ctype == "char *":
                    value = "const char **data" if const else "char **data"
                suffix = f"_{name}" if name else ""
                yield (direction, shape,
                       Call(f"int nc_{direction}_{shape}{suffix}(int ncid, int varid, {starts}{value})"
                            " | ncdata | ncid"))


def data_function(direction, shape, call):
    start = "start" if shape != "var" else "NULL"
    count = "count" if shape in ("vara", "vars", "varm") else "NULL"
    stride = "stride" if shape in ("vars", "varm") else "NULL"
    writes = "true" if direction == "put" else "false"
    whole = "true" if shape == "var" else "false"
    return "\n".join([
        f"WATCH_EXPORT {call.type}\n{call.name}({call.parameters})\n{{",
        f"    watch_real_{call.name} real = WATCH_NC_REAL(watch_real_{call.name}, \"{call.name}\");",
        "    watch_call call;",
        "    if (real == NULL)", "        return watch__nc_absent();",
        "    if (!watch__nc_begin(&call, __builtin_return_address(0)))",
        f"        return real({', '.join(call.names)});",
        f"    int result = real({', '.join(call.names)});",
        "    watch__real_done(&call);",
        f"    watch__nc_moved(&call, {call.op}, ncid, varid, {start}, {count}, {stride}, {whole}, "
        f"{writes}, result);",
        "    return result;", "}\n"])


def mpi_calls(line):
    """A line about MPI for reads and writes, counts of both sizes, and with a "P" in front."""
    for direction in ("read", "write") if "{dir}" in line else ("",):
        data = "const void *data" if direction == "write" else "void *data"
        for count, end in (("int", ""), ("MPI_Count", "_c")) if "{count}" in line else (("", ""),):
            text = line.replace("{dir}", direction).replace("{data}", data).replace("{count}", count)
            call = Call(text)
            for name in (call.name + end, "P" + call.name + end):
                yield direction, call.name, Call(text.replace(call.name + "(", name + "(", 1))


def mpi_body(direction, op, call):
    """What comes after the real call."""
    if call.kind == "mpidata":
        flags = " | ".join(f"WATCH_FLAG_{name.upper()}" for name in ("together", "pending") if call.has(name))
        status = "NULL" if call.has("pending") else "status"
        writes = "true" if direction == "write" else "false"
        return (f"watch__mpi_moved(&call, {op}, file, {writes}, (int64_t) count, type, {status}, "
                f"{flags or '0'}, result);")
    return {"mpiopen": f"watch__mpi_opened(&call, {op}, comm, path, mode, info, &hints, file, result);",
            "mpiclose": f"watch__mpi_closed(&call, {op}, result);",
            "mpipath": f"watch__mpi_path(&call, {op}, result);",
            "mpiview": f"watch__mpi_viewed(&call, {op}, file, at, etype, filetype, info, result);",
            "mpimeta": f"watch__mpi_meta(&call, {op}, file, result);"}[call.kind]


def mpi_function(direction, name, call):
    opens = call.kind == "mpiopen"
    hand_on = f"real({', '.join('hints.info' if opens and name == 'info' else name for name in call.names)})"
    lines = [f"WATCH_EXPORT {call.type}\n{call.name}({call.parameters})\n{{",
             f"    watch_real_{call.name} real = WATCH_NC_REAL(watch_real_{call.name}, \"{call.name}\");",
             "    watch_call call;", "    if (real == NULL)", "        return watch__mpi_absent();"]
    if opens:  # also where nothing is recorded: all ranks take part
        lines += ["    watch_hints hints;",
                  "    watch__hints_choose(&hints, comm, path, info, __builtin_return_address(0));",
                  "    bool begun = watch__mpi_begin(&call, __builtin_return_address(0));",
                  f"    int result = {hand_on};", "    if (begun) {", "        watch__real_done(&call);",
                  f"        {mpi_body(direction, 'WATCH_OP_' + name, call)}", "    }",
                  "    watch__hints_drop(&hints);", "    return result;", "}\n"]
        return "\n".join(lines)
    lines += ["    if (!watch__mpi_begin(&call, __builtin_return_address(0)))", f"        return {hand_on};"]
    if call.kind == "mpidata":
        at = "at" if call.has("at") else "WATCH_MPI_SHARED" if call.has("shared") else "WATCH_MPI_OWN"
        lines += [f"    watch__mpi_moving(&call, file, {at});"]
        if not call.has("pending"):
            lines += ["    watch_mpi_status own;", "    status = watch__mpi_status(status, &own);"]
    elif call.kind == "mpiclose":
        lines += ["    watch__mpi_closing(&call, file);"]
    lines += [f"    int result = {hand_on};", "    watch__real_done(&call);",
              f"    {mpi_body(direction, 'WATCH_OP_' + name, call)}", "    return result;", "}\n"]
    return "\n".join(lines)


def main(source, code, header):
    calls, data, mpi = [], [], []
    for line in pathlib.Path(source).read_text().splitlines():
        if line.startswith("ncdata "):
            data += data_calls(line)
        elif " MPI_" in line.split("(")[0] and not line.startswith("#"):
            mpi += mpi_calls(line)
        elif line.strip() and not line.startswith("#"):
            calls.append(Call(line))
    every = [*calls, *(call for _, _, call in data), *(call for _, _, call in mpi)]
    mpi_ops = {name: (way, call) for way, name, call in mpi if name == call.name}
    ops = [f"    {call.op}," for call in every if call.kind[:3] != "mpi" or call.name in mpi_ops]
    kinds = {"read": "WATCH_KIND_READ", "write": "WATCH_KIND_WRITE", "sync": "WATCH_KIND_SYNC",
             "open": "WATCH_KIND_OPEN", "fopen": "WATCH_KIND_OPEN", "ncopen": "WATCH_KIND_NC_META",
             "ncclose": "WATCH_KIND_NC_META", "ncmeta": "WATCH_KIND_NC_META"}
    table = [f'    {{"{call.name}", {kinds.get(call.kind, "WATCH_KIND_OTHER")}}},' for call in calls]
    table += [f'    {{"{call.name}", WATCH_KIND_NC_{"READ" if way == "get" else "WRITE"}}},'
              for way, _, call in data]
    table += [f'    {{"{name}", WATCH_KIND_MPI_{way.upper() if call.kind == "mpidata" else "META"}}},'
              for name, (way, call) in mpi_ops.items()]
    pathlib.Path(header).write_text(
        HEAD + "#ifndef ESDM_WATCH_CALLS_H\n#define ESDM_WATCH_CALLS_H\n\n/** @file The calls. */\n\n"
        "typedef enum watch_op {\n    WATCH_OP_NONE,\n" + "\n".join(ops) + "\n    WATCH_OPS\n} watch_op;\n\n"
        "typedef enum watch_kind {\n    WATCH_KIND_OTHER,\n    WATCH_KIND_READ,\n    WATCH_KIND_WRITE,\n"
        "    WATCH_KIND_OPEN,\n    WATCH_KIND_SYNC,\n"
        "    WATCH_KIND_MPI_READ,\n    WATCH_KIND_MPI_WRITE,\n    WATCH_KIND_MPI_META,\n    WATCH_KIND_NC_READ,\n    WATCH_KIND_NC_WRITE,\n"
        "    WATCH_KIND_NC_META\n} watch_kind;\n\n"
        "#ifdef WATCH_NAMES\nstatic const struct {\n    const char *name;\n    watch_kind kind;\n"
        "} watch_ops[WATCH_OPS] = {\n    {\"\", WATCH_KIND_OTHER},\n" + "\n".join(table) +
        "\n};\n#endif\n\n#endif\n")
    pathlib.Path(code).write_text(
        HEAD + '#include "watch/functions.h"\n\n' +
        "".join(f"#undef {c.name}\n" for c in calls) + "\n" + "\n".join(typedef(c) for c in every) + "\n\n" +
        "\n".join(function(c) for c in calls) + "\n" + "\n".join(data_function(*d) for d in data) + "\n" +
        "\n".join(mpi_function(*m) for m in mpi))


main(*sys.argv[1:])
