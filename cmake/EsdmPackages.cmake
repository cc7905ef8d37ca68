# SPDX-License-Identifier: LGPL-3.0-or-later
# Packages of Debian, made by `cpack -G DEB` in a build folder whose prefix is /usr (tools/make-packages.sh):
#   libesdm0       the library, its plug-ins, the NetCDF plug-in that esdm-run and Python load
#   libesdm-mpi0   the same over OpenMPI and MPICH
#   libesdm-dev    headers, pkg-config and CMake files, the kit for plug-ins
#   esdm           the tools, their manual pages, schemas and commented configurations
#   python3-esdm   `import esdm` and the engine of xarray
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME esdm)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The ESDM developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Storage of Earth-system data behind the stock NetCDF library")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

set(CPACK_COMPONENTS_ALL lib dev tools python)
set(CPACK_DEBIAN_LIB_PACKAGE_NAME libesdm0)
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
# Loaded when it is first needed: no tool sees that it is (src/cf/units.c).
set(CPACK_DEBIAN_LIB_PACKAGE_DEPENDS "libudunits2-0")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libesdm-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libjansson-dev, libxxhash-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME esdm)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "netcdf-bin, fuse3")
# Programs of a server that a site can have of its own (esdm-postgres).
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "postgresql")
set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-esdm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-netcdf4, python3-xarray")

# The private libraries of the packages find each other.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/netcdf-plugin)

include(CPackComponent)
set(mpi)
if(TARGET esdm-mpi-openmpi OR TARGET esdm-mpi-mpich)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME libesdm-mpi0)
  set(CPACK_DEBIAN_MPI_PACKAGE_SECTION libs)
endif()
include(CPack)
cpack_add_component(lib DESCRIPTION
  "Library, plug-ins, and the NetCDF plug-in by which unmodified programs read and write esdm:// names.")
cpack_add_component(mpi DEPENDS lib DESCRIPTION "Containers that several ranks of an MPI program share.")
cpack_add_component(dev DEPENDS lib DESCRIPTION "Headers, pkg-config and CMake files, and what plug-ins are built from.")
cpack_add_component(tools DEPENDS lib DESCRIPTION "Tools: esdm-run, esdm-mkfs, esdm-ls, esdm-cp, esdm-find and others.")
cpack_add_component(python DEPENDS lib DESCRIPTION "import esdm, and the engine of xarray.")

# The Python package as pip would install it: the entry point is what xarray looks for.
set(ESDM_PYTHON_DIR lib/python3/dist-packages)
set(info ${PROJECT_BINARY_DIR}/python/esdm-${PROJECT_VERSION}.dist-info)
file(WRITE ${info}/METADATA "Metadata-Version: 2.1\nName: esdm\nVersion: ${PROJECT_VERSION}\n")
file(WRITE ${info}/entry_points.txt "[xarray.backends]\nesdm = esdm.xarray_engine:EsdmBackend\n")
file(WRITE ${info}/INSTALLER "cpack\n")
install(DIRECTORY python/esdm DESTINATION ${ESDM_PYTHON_DIR} COMPONENT python EXCLUDE_FROM_ALL
  PATTERN "__pycache__" EXCLUDE)
# Python reads the second when it starts: it has xarray find esdm when it writes first.
set(start python/esdm_start.py python/esdm-start.pth)
install(FILES ${start} DESTINATION ${ESDM_PYTHON_DIR} COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY ${info} DESTINATION ${ESDM_PYTHON_DIR} COMPONENT python EXCLUDE_FROM_ALL)

# A wheel carries GLib, too: manylinux takes it for a part of every system, which it is not.
if(ESDM_WHEEL)
  install(FILES ${start} DESTINATION ${SKBUILD_PLATLIB_DIR} COMPONENT lib)
  list(GET GLIB_LINK_LIBRARIES 0 glib)
  file(REAL_PATH ${glib} glib)
  install(FILES ${glib} RENAME libglib-2.0.so.0 DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib)
  # UDUNITS-2, which is loaded when it is needed, with its list of units (src/cf/units.c), and what it reads that with.
  find_library(udunits udunits2 REQUIRED)
  find_path(udunits_list udunits2.xml PATHS /usr/share/xml/udunits /usr/share/udunits PATH_SUFFIXES share/xml/udunits
    share/udunits REQUIRED)
  file(REAL_PATH ${udunits} udunits)
  install(FILES ${udunits} RENAME libudunits2.so.0 DESTINATION ${CMAKE_INSTALL_LIBDIR}/esdm/udunits COMPONENT lib)
  install(DIRECTORY ${udunits_list}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/esdm/udunits COMPONENT lib
    FILES_MATCHING PATTERN "udunits2*.xml")
endif()
