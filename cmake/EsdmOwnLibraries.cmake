# SPDX-License-Identifier: LGPL-3.0-or-later
# esdm_sqlite, esdm_lz4 and the like: libraries as libesdm links them, into itself where the installed static ones
# allow it.
#
# A program's first open loads libesdm below everything that the program has loaded already. The dynamic linker
# then looks for each address of a shared library in the tables of all of these first (47 of them behind Debian's
# libnetcdf): of SQLite's 300 addresses this takes 1.2 ms, and each other library takes 0.1 ms to map. It also
# keeps apart from ESDM whatever SQLite or zstd the program brings itself, as Python installations do.
#
# Jansson stays shared: its values go between libesdm and plug-ins, and each copy of it hashes with another seed.
option(ESDM_STATIC_LIBRARIES "Link SQLite, lz4, zstd, PCRE2 and xxHash into libesdm where static ones can be" ON)

# Sets `ret_libraries` to what to link for the archive, empty where no shared library can be made of it: of all of
# it, or of what the named functions need. Hidden, its symbols need no position-independent code where that for
# executables serves, as Debian has it.
function(esdm_probe_static archive options others functions ret_libraries)
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/static-probe.so)
  set(all -Wl,--whole-archive ${archive} -Wl,--no-whole-archive)
  if(functions)
    list(TRANSFORM functions PREPEND -Wl,-u,)
    set(all ${functions} ${archive})
  endif()
  execute_process(
    COMMAND ${CMAKE_C_COMPILER} -shared -Wl,-z,defs -o ${probe} ${options} ${all} ${others}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  file(REMOVE ${probe})
  if(failed)
    set(${ret_libraries} "" PARENT_SCOPE)
  else()
    set(${ret_libraries} ${archive} ${others} PARENT_SCOPE)
  endif()
endfunction()

# esdm_own_library(PACKAGE NAME [FUNCTION…]): the target esdm_PACKAGE, in small letters, for what pkg_check_modules()
# found as PACKAGE, whose library is NAME for the linker; sets ESDM_PACKAGE_IS_OWN where libesdm holds it itself.
# FUNCTIONs stand for what ESDM calls, where other parts of the archive cannot be linked into a shared library.
function(esdm_own_library package name)
  set(libraries "")
  if(ESDM_STATIC_LIBRARIES)
    # Nowhere but beside the library that pkg_check_modules() found: the headers belong to that one.
    get_filename_component(folder "${pkgcfg_lib_${package}_${name}}" DIRECTORY)
    get_filename_component(before "${ESDM_${package}_ARCHIVE}" DIRECTORY)
    if(NOT before STREQUAL folder)
      unset(ESDM_${package}_ARCHIVE CACHE)
    endif()
    find_library(ESDM_${package}_ARCHIVE NAMES lib${name}.a PATHS "${folder}" NO_DEFAULT_PATH)
    mark_as_advanced(ESDM_${package}_ARCHIVE)
    if(ESDM_${package}_ARCHIVE)
      set(options -Wl,--exclude-libs,lib${name}.a)
      set(others ${${package}_STATIC_LIBRARIES})
      list(REMOVE_ITEM others ${name})
      list(TRANSFORM others PREPEND -l)
      set(others -Wl,--push-state,--as-needed ${others} -lm -Wl,--pop-state)
      esdm_probe_static(${ESDM_${package}_ARCHIVE} "${options}" "${others}" "${ARGN}" libraries)
    endif()
  endif()
  string(TOLOWER esdm_${package} target)
  add_library(${target} INTERFACE)
  if(libraries)
    target_include_directories(${target} INTERFACE ${${package}_INCLUDE_DIRS})
    target_link_libraries(${target} INTERFACE ${libraries})
    target_link_options(${target} INTERFACE ${options})
    set(ESDM_${package}_IS_OWN ON PARENT_SCOPE)
    set(ESDM_OWN_LIBRARIES ${ESDM_OWN_LIBRARIES} ${name} PARENT_SCOPE)
  else()
    target_link_libraries(${target} INTERFACE PkgConfig::${package})
    set(ESDM_LOADED_LIBRARIES ${ESDM_LOADED_LIBRARIES} ${name} PARENT_SCOPE)
  endif()
endfunction()

esdm_own_library(SQLITE sqlite3)
esdm_own_library(LZ4 lz4)
esdm_own_library(ZSTD zstd ZSTD_compressCCtx ZSTD_decompressDCtx) # without what makes dictionaries
esdm_own_library(PCRE2 pcre2-8)
esdm_own_library(XXHASH xxhash)
if(ESDM_OWN_LIBRARIES)
  list(JOIN ESDM_OWN_LIBRARIES ", " names)
  message(STATUS "These become part of libesdm: ${names}")
endif()
if(ESDM_LOADED_LIBRARIES)
  list(JOIN ESDM_LOADED_LIBRARIES ", " names)
  message(STATUS "libesdm loads these: ${names}")
endif()
