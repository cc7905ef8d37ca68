# SPDX-License-Identifier: LGPL-3.0-or-later
# The MPI layer: libesdm-mpi-openmpi.so and libesdm-mpi-mpich.so, each where its MPI is installed.
# An ESDM without MPI is complete; what needs it is left out.

# Finds the compiler wrappers of one MPI ("openmpi", "mpich"), by their own name or as plain mpicc,
# and sets in the caller: ESDM_MPI_<name>_CC, _RUN, _COMPILE (options), _LINK (options).
function(esdm_find_mpi name macro)
  string(TOUPPER ${name} NAME)
  find_program(ESDM_MPICC_${NAME} NAMES mpicc.${name} DOC "C compiler wrapper of ${name}")
  find_program(ESDM_MPIRUN_${NAME} NAMES mpiexec.${name} mpirun.${name} DOC "Launcher of ${name}")
  find_program(ESDM_MPICC mpicc)
  find_program(ESDM_MPIRUN NAMES mpiexec mpirun)
  set(cc ${ESDM_MPICC_${NAME}})
  set(run ${ESDM_MPIRUN_${NAME}})
  if(NOT cc)
    set(cc ${ESDM_MPICC})
    set(run ${ESDM_MPIRUN})
  endif()
  set(ESDM_MPI_${name}_CC "" PARENT_SCOPE)
  if(NOT cc)
    return()
  endif()
  execute_process(COMMAND ${cc} -show OUTPUT_VARIABLE line RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${line}")
  list(FILTER words INCLUDE REGEX "^-[IDLlW]|^-pthread$")
  set(compile ${words})
  list(FILTER compile INCLUDE REGEX "^-[ID]")
  set(link ${words})
  list(FILTER link EXCLUDE REGEX "^-[ID]")
  # A plain mpicc may be of either kind.
  set(CMAKE_REQUIRED_FLAGS ${compile})
  list(JOIN CMAKE_REQUIRED_FLAGS " " CMAKE_REQUIRED_FLAGS)
  set(CMAKE_REQUIRED_QUIET ON)
  check_c_source_compiles("#include <mpi.h>
#ifndef ${macro}
#error another MPI
#endif
int main(void) { return MPI_SUCCESS; }" ESDM_HAVE_${NAME})
  if(NOT ESDM_HAVE_${NAME})
    return()
  endif()
  set(ESDM_MPI_${name}_CC ${cc} PARENT_SCOPE)
  set(ESDM_MPI_${name}_RUN ${run} PARENT_SCOPE)
  set(ESDM_MPI_${name}_COMPILE ${compile} PARENT_SCOPE)
  set(ESDM_MPI_${name}_LINK ${link} PARENT_SCOPE)
endfunction()

# Options of an MPI for a target. Its headers are not ours to warn about.
function(esdm_use_mpi target name)
  foreach(option IN LISTS ESDM_MPI_${name}_COMPILE)
    if(option MATCHES "^-I(.*)")
      target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_MATCH_1})
    else()
      target_compile_options(${target} PRIVATE ${option})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${ESDM_MPI_${name}_LINK})
endfunction()

function(esdm_mpi_library name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.c)
  add_library(esdm-mpi-${name} SHARED ${sources})
  set_target_properties(esdm-mpi-${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
    INSTALL_RPATH "$ORIGIN")
  target_include_directories(esdm-mpi-${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/include)
  target_link_libraries(esdm-mpi-${name} PRIVATE esdm_options PUBLIC esdm)
  esdm_use_mpi(esdm-mpi-${name} ${name})
  install(TARGETS esdm-mpi-${name} EXPORT esdm-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT mpi NAMELINK_COMPONENT dev)
  set(ESDM_MPI_NAME ${name})
  esdm_package_folders()
  configure_file(cmake/esdm-mpi.pc.in ${PROJECT_BINARY_DIR}/esdm-mpi-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/esdm-mpi-${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

include(CheckCSourceCompiles)
option(ESDM_MPI "Build the MPI layer for each MPI that is installed" ON)
set(ESDM_MPIS "")
if(ESDM_MPI)
  esdm_find_mpi(openmpi OPEN_MPI)
  esdm_find_mpi(mpich MPICH_VERSION)
  foreach(name openmpi mpich)
    if(ESDM_MPI_${name}_CC)
      list(APPEND ESDM_MPIS ${name})
      esdm_mpi_library(${name})
    endif()
  endforeach()
endif()
message(STATUS "MPI layer: ${ESDM_MPIS}")
