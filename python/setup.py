# SPDX-License-Identifier: LGPL-3.0-or-later
"""All is in pyproject.toml, but that esdm-start.pth lies beside the packages."""

import os

from setuptools import setup
from setuptools.command.build_py import build_py


class WithStart(build_py):
    """As it is, and the file that Python reads when it starts."""

    def run(self):
        super().run()
        self.copy_file("esdm-start.pth", os.path.join(self.build_lib, "esdm-start.pth"))


setup(cmdclass={"build_py": WithStart})
