# SPDX-License-Identifier: LGPL-3.0-or-later
# esdm_sqlite: SQLite as libesdm links it, into itself where the installed static library allows it.
#
# A program's first open loads libesdm below everything that the program has loaded already. The dynamic
# linker then looks for each of the 300 addresses in the tables of the shared SQLite in all of these
# libraries first (47 of them behind Debian's libnetcdf), which takes 1.2 ms, a fifth of that open. It
# also keeps apart from ESDM whatever SQLite the program brings itself, as Python installations do.
option(ESDM_STATIC_SQLITE "Link SQLite into libesdm where its static library can be" ON)

# How libesdm links the archive. Hidden, its symbols need no position-independent code where that for
# executables serves, as Debian has it.
set(ESDM_SQLITE_OPTIONS -Wl,--exclude-libs,libsqlite3.a)

# Sets `ret_libraries` to what to link for the archive, empty where no shared library can be made of it.
function(esdm_probe_static_sqlite archive ret_libraries)
  set(others ${SQLITE_STATIC_LIBRARIES})
  list(REMOVE_ITEM others sqlite3)
  list(TRANSFORM others PREPEND -l)
  set(others -Wl,--push-state,--as-needed ${others} -lm -Wl,--pop-state)
  set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/static-sqlite.so)
  execute_process(
    COMMAND ${CMAKE_C_COMPILER} -shared -Wl,-z,defs -o ${probe} ${ESDM_SQLITE_OPTIONS}
      -Wl,--whole-archive ${archive} -Wl,--no-whole-archive ${others}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  file(REMOVE ${probe})
  if(failed)
    set(${ret_libraries} "" PARENT_SCOPE)
  else()
    set(${ret_libraries} ${archive} ${others} PARENT_SCOPE)
  endif()
endfunction()

function(esdm_find_sqlite)
  set(libraries "")
  if(ESDM_STATIC_SQLITE)
    # Nowhere but beside the library that pkg-config names: the headers belong to that one.
    find_library(ESDM_SQLITE_ARCHIVE NAMES libsqlite3.a
      PATHS ${SQLITE_LIBDIR} ${SQLITE_LIBRARY_DIRS} NO_DEFAULT_PATH)
    mark_as_advanced(ESDM_SQLITE_ARCHIVE)
    if(ESDM_SQLITE_ARCHIVE)
      esdm_probe_static_sqlite(${ESDM_SQLITE_ARCHIVE} libraries)
    endif()
  endif()
  add_library(esdm_sqlite INTERFACE)
  if(libraries)
    message(STATUS "SQLite becomes part of libesdm: ${ESDM_SQLITE_ARCHIVE}")
    target_include_directories(esdm_sqlite INTERFACE ${SQLITE_INCLUDE_DIRS})
    target_link_libraries(esdm_sqlite INTERFACE ${libraries})
    target_link_options(esdm_sqlite INTERFACE ${ESDM_SQLITE_OPTIONS})
    set(ESDM_SQLITE_IS_OWN ON PARENT_SCOPE)
  else()
    message(STATUS "SQLite is a library that libesdm loads")
    target_link_libraries(esdm_sqlite INTERFACE PkgConfig::SQLITE)
  endif()
endfunction()

esdm_find_sqlite()
