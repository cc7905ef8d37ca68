# SPDX-License-Identifier: LGPL-3.0-or-later
"""Recipe of Spack. Put it into a repository of your own as packages/esdm/package.py (`spack repo create`), then:

    spack dev-build esdm@0.1.0      in a checkout
"""

from spack.package import *


class Esdm(CMakePackage):
    """Stores Earth-system data behind the stock NetCDF library: esdm:// paths, fragments on several back ends,
    accuracy that is promised and verified, atomic commits."""

    license("LGPL-3.0-or-later")
    version("0.1.0")

    variant("mpi", default=True, description="Programs on several ranks")
    variant("postgresql", default=True, description="Metadata in PostgreSQL")
    variant("s3", default=True, description="Targets on S3")
    variant("fuse", default=False, description="esdm-mount: containers as files in a folder")
    variant("serve", default=True, description="esdm-serve: containers in a browser and over HTTP")
    variant("zfp", default=True, description="Codec zfp")
    variant("otf2", default=False, description="Traces in the Open Trace Format 2")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("jansson@2.13:")
    depends_on("sqlite@3.35:")
    depends_on("lz4")
    depends_on("zstd")
    depends_on("pcre2")
    depends_on("xxhash")
    depends_on("glib@2.66:")
    depends_on("netcdf-c@4.9.0:")
    depends_on("hdf5")
    depends_on("openssl@1.1.1:")
    depends_on("udunits")
    depends_on("libaec")
    depends_on("libdeflate")
    depends_on("mpi", when="+mpi")
    depends_on("postgresql", when="+postgresql")
    depends_on("curl@7.85:", when="+s3")
    depends_on("libfuse@3.12:", when="+fuse")
    depends_on("libmicrohttpd@0.9.71:", when="+serve")
    depends_on("zfp@1.0:", when="+zfp")
    depends_on("otf2@2.3:", when="+otf2")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("ESDM_TESTS", False),
            self.define("ESDM_STATIC_LIBRARIES", False),
            self.define_from_variant("ESDM_MPI", "mpi"),
        ]

    def setup_run_environment(self, env):
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(join_path(self.prefix.bin, "esdm"))("--version")
