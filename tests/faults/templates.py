# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sites that are brought back to what they were, again and again, with the catalogue in SQLite or on PostgreSQL."""

import pathlib
import shutil
import tempfile

# Calls that change files, or who may do so.
CALLS = ["pwrite64", "pwritev", "pwritev2", "write", "writev", "fdatasync", "fsync", "sync_file_range", "ftruncate",
         "fallocate", "unlink", "unlinkat", "rename", "renameat2", "link", "linkat", "mkdir", "mkdirat", "fcntl"]


class Template:
    """A site whose folder comes back as it was."""

    def __init__(self, site):
        self.folder = site.folder
        self.kept = pathlib.Path(tempfile.mkdtemp(prefix="esdm-kept.", dir=self.folder.parent))
        shutil.copytree(self.folder, self.kept / "site")

    def restore(self):
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(self.kept / "site", self.folder, dirs_exist_ok=True)

    def remove(self):
        shutil.rmtree(self.kept, ignore_errors=True)


class Sqlite:
    """The catalogue lies in the site's folder."""
    calls = CALLS
    template = Template
    site = {}

    def settle(self):
        """Nothing goes on when a process is dead."""


class Postgres:
    """The catalogue is a database of a server, which goes on for a moment when a client is dead."""
    calls = [*CALLS, "sendto"]

    def __init__(self, server):
        self.server = server
        self.site = {"metadata": {"plugin": "postgres", "connection": server.connection("site")}}
        self.sql("DROP DATABASE IF EXISTS kept", "DROP DATABASE IF EXISTS site", "CREATE DATABASE site")

    def sql(self, *commands):
        for command in commands:
            self.server.sql(command)

    def settle(self):
        self.server.wait_until_gone(self.server.sessions())

    def template(self, site):
        outer = self

        class Both(Template):
            def __init__(self):
                super().__init__(site)
                outer.settle()
                outer.sql("CREATE DATABASE kept TEMPLATE site")

            def restore(self):
                super().restore()
                outer.settle()
                outer.sql("DROP DATABASE site", "CREATE DATABASE site TEMPLATE kept")

        return Both()
