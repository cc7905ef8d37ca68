# SPDX-License-Identifier: LGPL-3.0-or-later
# How ESDM is put together: layers, plug-ins, the library, packages.

include(CheckSymbolExists)

add_library(esdm_options INTERFACE)
target_compile_options(esdm_options INTERFACE
  -Wall -Wextra -Wconversion -Wno-sign-conversion -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes
  -Wpointer-arith -Wwrite-strings -Wundef -fno-strict-aliasing
  $<$<BOOL:${ESDM_WERROR}>:-Werror>)
target_compile_definitions(esdm_options INTERFACE _GNU_SOURCE)
if(ESDM_SANITIZE)
  target_compile_options(esdm_options INTERFACE -fsanitize=${ESDM_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(esdm_options INTERFACE -fsanitize=${ESDM_SANITIZE})
  # Beside AddressSanitizer, undefined behaviour ends in a trap (SIGILL), of which that sanitizer prints the stack
  # (handle_sigill=1): the texts of UndefinedBehaviorSanitizer are 360,000 addresses that each process relocates as it
  # starts, and stock programs into which both of GCC's shared runtimes come hang at exit.
  if(ESDM_SANITIZE MATCHES "address" AND ESDM_SANITIZE MATCHES "undefined" AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    target_compile_options(esdm_options INTERFACE -fsanitize-undefined-trap-on-error)
    target_link_options(esdm_options INTERFACE -fsanitize-undefined-trap-on-error)
  endif()
endif()

# Sources of the calling folder and those below it, which are long and compute little: with a sanitizer they are
# compiled without optimisation, in two thirds of the time (CMAKE_C_FLAGS come first).
macro(esdm_sanitize_quickly)
  if(ESDM_SANITIZE AND NOT ESDM_FUZZ)
    add_compile_options(-O0)
  endif()
endmacro()

set(ESDM_LAYERS "" CACHE INTERNAL "")
set(ESDM_BUILTIN_OBJECTS "" CACHE INTERNAL "")
set(ESDM_BUILTIN_SYMBOLS "" CACHE INTERNAL "")
set(ESDM_OPTIONAL_PLUGINS "" CACHE INTERNAL "")

# esdm_layer(NAME [LAYER…]): OBJECT target esdm_NAME from src/NAME/*.c and the rooms src/NAME/*/*.c;
# records what it may use.
function(esdm_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c
    ${PROJECT_SOURCE_DIR}/src/${name}/*/*.c)
  if(NOT sources)
    return()
  endif()
  add_library(esdm_${name} OBJECT ${sources})
  target_include_directories(esdm_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/src/include ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(esdm_${name} PRIVATE esdm_options Threads::Threads PkgConfig::JANSSON
    PkgConfig::LZ4 PkgConfig::XXHASH)
  set(ESDM_LAYERS ${ESDM_LAYERS} ${name} CACHE INTERNAL "")
  set(ESDM_LAYER_DEPS_${name} ${ARGN} CACHE INTERNAL "")
endfunction()

# esdm_room(LAYER/ROOM [LAYER/ROOM…]): which rooms of its layer the files of src/LAYER/ROOM may include.
# Files beside the rooms may include all of them, and no room includes those. Read by
# tests/unit/check_includes.py; the rooms of a layer are compiled together.
function(esdm_room name)
  foreach(room IN LISTS name ARGN)
    if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/${room})
      message(FATAL_ERROR "esdm_room(${name}): there is no folder src/${room}")
    endif()
  endforeach()
endfunction()

# How loops over all numbers are compiled. With a sanitizer -O3 takes seven times as long to compile them, and makes
# none of them faster.
set(ESDM_LOOPS -O3)
if(ESDM_SANITIZE)
  set(ESDM_LOOPS -O1)
endif()

# Loops over all numbers that are written.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/verify.c
  ${PROJECT_SOURCE_DIR}/src/codec/verify_base.c PROPERTIES COMPILE_OPTIONS "${ESDM_LOOPS};-ffp-contract=off;-Wno-psabi")
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/across_base.c PROPERTIES COMPILE_OPTIONS
  "${ESDM_LOOPS};-ffp-contract=off;-Wno-float-equal")

# Vectors of 64 bytes: where GCC's AddressSanitizer looks for uses of variables after a return, it puts these on a
# stack of its own that is aligned to 32 bytes, and still takes them for aligned to 64, which ends the program.
set(ESDM_AVX512_STACK "")
if(ESDM_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  set(ESDM_AVX512_STACK "--param=asan-use-after-return=0")
endif()

# Statistics: the loops do without NaN and infinity, which they do not let pass, and sums may be made
# in any order.
set(ESDM_TALLY ${ESDM_LOOPS} -fno-math-errno -ffinite-math-only -fno-signed-zeros -fno-trapping-math
  -fassociative-math)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/tally_base.c PROPERTIES COMPILE_OPTIONS
  "${ESDM_TALLY}")

# Sources that are compiled for newer CPUs and called after a check at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/checksum_avx2.c
    PROPERTIES COMPILE_OPTIONS -mavx2)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/checksum_avx512.c
    PROPERTIES COMPILE_OPTIONS "-mavx512f;${ESDM_AVX512_STACK}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/sha256_ni.c
    PROPERTIES COMPILE_OPTIONS "-msha;-msse4.1;-mssse3")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/model/spread_avx512.c
    PROPERTIES COMPILE_OPTIONS "-mavx512f;${ESDM_AVX512_STACK}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/verify_avx2.c
    PROPERTIES COMPILE_OPTIONS "${ESDM_LOOPS};-ffp-contract=off;-Wno-psabi;-mavx2")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/verify_avx512.c
    PROPERTIES COMPILE_OPTIONS "${ESDM_LOOPS};-ffp-contract=off;-Wno-psabi;-mavx512f;-mavx512dq;${ESDM_AVX512_STACK}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/across_avx2.c
    PROPERTIES COMPILE_OPTIONS "${ESDM_LOOPS};-ffp-contract=off;-Wno-float-equal;-mavx2")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/across_avx512.c
    PROPERTIES COMPILE_OPTIONS
    "${ESDM_LOOPS};-ffp-contract=off;-Wno-float-equal;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;${ESDM_AVX512_STACK}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/tally_avx2.c
    PROPERTIES COMPILE_OPTIONS "${ESDM_TALLY};-mavx2")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/tally_checksums.c
    PROPERTIES COMPILE_OPTIONS "${ESDM_TALLY};-mavx2")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/codec/tally_avx512.c
    PROPERTIES COMPILE_OPTIONS
    "${ESDM_TALLY};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512;${ESDM_AVX512_STACK}")
endif()

# The codec "field": loops optimised and for newer CPUs as above; no contraction of floating-point
# operations anywhere, all builds compute the same. For sources compiled in the calling folder.
function(esdm_field_options)
  set(folder ${PROJECT_SOURCE_DIR}/backends/codec/field)
  file(GLOB sources ${folder}/*.c)
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${ESDM_LOOPS};-ffp-contract=off")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(avx2 ${ESDM_LOOPS} -ffp-contract=off -mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt)
    set_source_files_properties(${folder}/kernels_avx2.c PROPERTIES COMPILE_OPTIONS "${avx2}")
    set_source_files_properties(${folder}/kernels_avx512.c PROPERTIES COMPILE_OPTIONS
      "${avx2};-mavx512f;-mavx512bw;-mavx512cd;-mavx512dq;-mavx512vl;${ESDM_AVX512_STACK}")
  endif()
endfunction()

# The same of the codec "bitround".
function(esdm_bitround_options)
  set(folder ${PROJECT_SOURCE_DIR}/backends/codec/bitround)
  set_source_files_properties(${folder}/floats.c ${folder}/round_base.c PROPERTIES COMPILE_OPTIONS
    "${ESDM_LOOPS};-ffp-contract=off;-Wno-psabi")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${folder}/round_avx2.c PROPERTIES COMPILE_OPTIONS
      "${ESDM_LOOPS};-ffp-contract=off;-Wno-psabi;-mavx2")
    set_source_files_properties(${folder}/round_avx512.c PROPERTIES COMPILE_OPTIONS
      "${ESDM_LOOPS};-ffp-contract=off;-Wno-psabi;-mavx512f;-mavx512dq;${ESDM_AVX512_STACK}")
  endif()
endfunction()

# esdm_builtin(KIND NAME [LIBRARY…]): OBJECT target from backends/KIND/NAME/*.c, entered into the
# generated table as `esdm_<kind>_<name>_plugin`.
function(esdm_builtin kind name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/${kind}/${name}/*.c)
  add_library(esdm_${kind}_${name} OBJECT ${sources})
  target_include_directories(esdm_${kind}_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/src/include)
  target_link_libraries(esdm_${kind}_${name} PRIVATE esdm_options Threads::Threads ${ARGN})
  if(kind STREQUAL codec) # the same arithmetic on every machine
    target_compile_options(esdm_${kind}_${name} PRIVATE -ffp-contract=off)
  endif()
  set(ESDM_BUILTIN_OBJECTS ${ESDM_BUILTIN_OBJECTS} esdm_${kind}_${name} CACHE INTERNAL "")
  set(ESDM_BUILTIN_SYMBOLS ${ESDM_BUILTIN_SYMBOLS} esdm_${kind}_${name}_plugin CACHE INTERNAL "")
endfunction()

# esdm_loadable(KIND NAME [LIBRARY…]): the same sources as a shared object esdm-KIND-NAME.so. It
# exports `esdm_plugin_entry`, compiled in by the definition ESDM_PLUGIN_LOADABLE.
function(esdm_loadable kind name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/backends/${kind}/${name}/*.c)
  add_library(esdm-${kind}-${name} MODULE ${sources} $<TARGET_OBJECTS:esdm_base>)
  set_target_properties(esdm-${kind}-${name} PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/plugins)
  target_compile_definitions(esdm-${kind}-${name} PRIVATE ESDM_PLUGIN_LOADABLE)
  if(kind STREQUAL codec)
    target_compile_options(esdm-${kind}-${name} PRIVATE -ffp-contract=off)
  endif()
  target_include_directories(esdm-${kind}-${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/src/include)
  target_link_libraries(esdm-${kind}-${name} PRIVATE esdm_options Threads::Threads
    PkgConfig::JANSSON PkgConfig::XXHASH ${ARGN})
  if(NOT ESDM_SANITIZE)
    target_link_options(esdm-${kind}-${name} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# esdm_optional(KIND NAME PACKAGE…): a loadable plug-in that ESDM brings along and that needs
# PACKAGEs, names for pkg-config: left out where they are not installed. It lies in the folder
# `esdm` beside libesdm, built as well as installed, where the registry looks.
# esdm_optional(KIND NAME HEADER header.h LIBRARY name [SYMBOL function VERSION text]): the same for
# a library that has no file for pkg-config; it becomes the target esdm_foreign_<library>. One that
# lacks the function, which came with that version, is too old, and the plug-in is left out, too.
# With WITHOUT definition the plug-in is built without the library as well, with that definition,
# and can do less.
function(esdm_optional kind name)
  cmake_parse_arguments(O "" "HEADER;LIBRARY;SYMBOL;VERSION;WITHOUT" "" ${ARGN})
  if(O_LIBRARY)
    esdm_find_foreign(${O_HEADER} ${O_LIBRARY})
    set(library esdm_foreign_${O_LIBRARY})
    set(needs ${O_HEADER} lib${O_LIBRARY})
    string(STRIP "lib${O_LIBRARY} ${O_VERSION}" told)
  else()
    string(TOUPPER ${name} upper)
    pkg_check_modules(${upper} IMPORTED_TARGET GLOBAL ${ARGN})
    set(library PkgConfig::${upper})
    set(needs ${ARGN})
    list(JOIN needs " and " told)
  endif()
  set(ESDM_OPTIONAL_PLUGINS ${ESDM_OPTIONAL_PLUGINS} "${kind}/${name}=${told}" CACHE INTERNAL "")
  if(NOT TARGET ${library} AND O_WITHOUT)
    message(STATUS "plug-in ${kind}/${name} can do less, not installed: ${needs}")
    esdm_optional_build(${kind} ${name})
    target_compile_definitions(esdm-${kind}-${name} PRIVATE ${O_WITHOUT})
    return()
  endif()
  if(NOT TARGET ${library})
    message(STATUS "plug-in ${kind}/${name} is left out, not installed: ${needs}")
    return()
  endif()
  if(O_SYMBOL)
    esdm_foreign_has(${O_HEADER} ${O_LIBRARY} ${O_SYMBOL} found)
    if(NOT found)
      message(WARNING "plug-in ${kind}/${name} is left out: lib${O_LIBRARY} is too old, it lacks "
        "${O_SYMBOL}(); ${O_VERSION} or newer is needed")
      return()
    endif()
  endif()
  esdm_optional_build(${kind} ${name} ${library})
endfunction()

function(esdm_optional_build kind name)
  esdm_loadable(${kind} ${name} ${ARGN})
  set_target_properties(esdm-${kind}-${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/esdm)
  install(TARGETS esdm-${kind}-${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/esdm
    COMPONENT lib)
endfunction()

# esdm_find_foreign(HEADER LIBRARY): the target esdm_foreign_<library>, or none.
function(esdm_find_foreign header library)
  string(TOUPPER ${library} upper)
  find_path(ESDM_${upper}_INCLUDE ${header})
  find_library(ESDM_${upper}_LIBRARY ${library})
  mark_as_advanced(ESDM_${upper}_INCLUDE ESDM_${upper}_LIBRARY)
  if(ESDM_${upper}_INCLUDE AND ESDM_${upper}_LIBRARY AND NOT TARGET esdm_foreign_${library})
    add_library(esdm_foreign_${library} INTERFACE IMPORTED GLOBAL)
    target_include_directories(esdm_foreign_${library} INTERFACE ${ESDM_${upper}_INCLUDE})
    target_link_libraries(esdm_foreign_${library} INTERFACE ${ESDM_${upper}_LIBRARY})
  endif()
endfunction()

# esdm_foreign_has(HEADER LIBRARY FUNCTION RET): whether header and library have it.
function(esdm_foreign_has header library function ret)
  string(TOUPPER ${library} upper)
  set(CMAKE_REQUIRED_INCLUDES ${ESDM_${upper}_INCLUDE})
  set(CMAKE_REQUIRED_LIBRARIES ${ESDM_${upper}_LIBRARY} m)
  set(CMAKE_REQUIRED_QUIET ON)
  check_symbol_exists(${function} ${header} ESDM_${upper}_HAS_${function})
  set(${ret} ${ESDM_${upper}_HAS_${function}} PARENT_SCOPE)
endfunction()

# esdm_text_header(TARGET PREFIX FILE…): the files of one folder as arrays PREFIX<name>_<extension>, in
# a header that is called like the folder and the extension of the first one: postgres_sql.h.
function(esdm_text_header target prefix)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE inputs)
  list(GET inputs 0 first)
  get_filename_component(folder ${first} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  get_filename_component(extension ${first} LAST_EXT)
  string(REPLACE . _ extension ${extension})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/texts/${folder}${extension}.h)
  set(script ${PROJECT_SOURCE_DIR}/cmake/TextHeader.cmake)
  add_custom_command(OUTPUT ${output} DEPENDS ${inputs} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DPREFIX=${prefix} "-DINPUTS=${inputs}" -P ${script})
  target_sources(${target} PRIVATE ${output})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/texts)
endfunction()

function(esdm_generate_builtin_table)
  set(declarations "")
  set(entries "")
  foreach(symbol IN LISTS ESDM_BUILTIN_SYMBOLS)
    string(REGEX REPLACE "^esdm_(data|meta|codec|source)_.*$" "\\1" kind ${symbol})
    string(APPEND declarations "extern const esdm_${kind}_plugin ${symbol};\n")
    string(APPEND entries "    &${symbol}.base,\n")
  endforeach()
  list(TRANSFORM ESDM_OPTIONAL_PLUGINS REPLACE "(.+)" "    \"\\1\",\n" OUTPUT_VARIABLE optional)
  string(REPLACE ";" "" optional "${optional}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/builtin_plugins.h CONTENT
    "/* Generated by CMake: the built-in plug-ins. */\n@declarations@\n\
#define ESDM_PLUGIN_FOLDER \"@ESDM_PLUGIN_DIR@\"\n\n\
static const esdm_plugin *const esdm__builtin_plugins[] = {\n@entries@    NULL,\n};\n\n\
static const char *const esdm__optional_plugins[] = {\n@optional@    NULL,\n};\n" @ONLY)
endfunction()

# All layers below and including `name`, as object targets, for unit tests.
function(esdm_layer_closure name ret)
  set(result ${name} ${ESDM_LAYER_DEPS_${name}})
  foreach(dep IN LISTS ESDM_LAYER_DEPS_${name})
    list(APPEND result ${ESDM_LAYER_DEPS_${dep}})
  endforeach()
  list(REMOVE_DUPLICATES result)
  set(${ret} ${result} PARENT_SCOPE)
endfunction()

set(ESDM_LINK_LIBRARIES PkgConfig::JANSSON esdm_sqlite esdm_pcre2 esdm_lz4 esdm_zstd esdm_xxhash
  Threads::Threads ${CMAKE_DL_LIBS} m)

# For a library that a program's first open loads, below all that is loaded already. Calls of its own functions are
# bound to these: else the dynamic linker looks for each one in all libraries, 1 us each (64 of them behind Debian's
# libnetcdf).
function(esdm_loads_fast target)
  target_link_options(${target} PRIVATE -Wl,-Bsymbolic-functions)
endfunction()

function(esdm_library)
  esdm_generate_builtin_table()
  add_library(esdm SHARED)
  foreach(layer IN LISTS ESDM_LAYERS)
    target_sources(esdm PRIVATE $<TARGET_OBJECTS:esdm_${layer}>)
  endforeach()
  foreach(object IN LISTS ESDM_BUILTIN_OBJECTS)
    target_sources(esdm PRIVATE $<TARGET_OBJECTS:${object}>)
  endforeach()
  set_target_properties(esdm PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINKER_LANGUAGE C)
  target_include_directories(esdm INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(esdm PRIVATE esdm_options ${ESDM_LINK_LIBRARIES})
  set(versions ${PROJECT_SOURCE_DIR}/cmake/esdm.map)
  target_link_options(esdm PRIVATE -Wl,--version-script=${versions})
  set_target_properties(esdm PROPERTIES LINK_DEPENDS ${versions})
  esdm_loads_fast(esdm)
  if(NOT ESDM_SANITIZE)
    target_link_options(esdm PRIVATE -Wl,-z,defs)
  endif()
endfunction()

# The folders of a .pc file: by its own place, so that an installation can be moved, and is right after
# `cmake --install --prefix`. Absolute ones stay what they are.
function(esdm_package_folders)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(prefix ${CMAKE_INSTALL_PREFIX})
  else()
    file(RELATIVE_PATH up /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
    string(REGEX REPLACE "/$" "" up "${up}")
    set(prefix "\${pcfiledir}/${up}")
  endif()
  set(ESDM_PC_PREFIX "${prefix}" PARENT_SCOPE)
  foreach(folder LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
      set(ESDM_PC_${folder} "${CMAKE_INSTALL_${folder}}" PARENT_SCOPE)
    else()
      set(ESDM_PC_${folder} "\${prefix}/${CMAKE_INSTALL_${folder}}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# What plug-ins are built from elsewhere: src/base as a static library, and its headers.
function(esdm_plugin_kit)
  add_library(esdm-plugin STATIC $<TARGET_OBJECTS:esdm_base>)
  target_include_directories(esdm-plugin INTERFACE $<INSTALL_INTERFACE:include>
    $<INSTALL_INTERFACE:include/esdm/plugin>)
  target_link_libraries(esdm-plugin INTERFACE $<INSTALL_INTERFACE:jansson>
    $<INSTALL_INTERFACE:xxhash> $<INSTALL_INTERFACE:pthread>)
  install(TARGETS esdm-plugin EXPORT esdm-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT dev)
  install(DIRECTORY src/base DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/esdm/plugin COMPONENT dev
    FILES_MATCHING PATTERN "*.h" PATTERN "*_kernels.h" EXCLUDE)
  install(FILES cmake/EsdmPlugin.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esdm COMPONENT dev)
  configure_file(cmake/esdm-plugin.pc.in ${PROJECT_BINARY_DIR}/esdm-plugin.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/esdm-plugin.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

# Where zsh looks for completion: Debian's knows no site-functions below /usr.
function(esdm_zsh_folder ret)
  set(folder site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
    set(folder vendor-completions)
  endif()
  set(${ret} ${CMAKE_INSTALL_DATADIR}/zsh/${folder} PARENT_SCOPE)
endfunction()

function(esdm_install_package)
  esdm_package_folders()
  esdm_plugin_kit()
  install(TARGETS esdm EXPORT esdm-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lib
    NAMELINK_COMPONENT dev)
  install(DIRECTORY src/include/esdm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
  # Modules are in the compiler's own format: the source is what is installed.
  install(DIRECTORY fortran DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/esdm COMPONENT dev)
  install(EXPORT esdm-targets NAMESPACE esdm:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esdm COMPONENT dev)
  configure_package_config_file(cmake/esdm-config.cmake.in
    ${PROJECT_BINARY_DIR}/esdm-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esdm)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/esdm-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  configure_file(cmake/esdm.pc.in ${PROJECT_BINARY_DIR}/esdm.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/esdm-config.cmake
    ${PROJECT_BINARY_DIR}/esdm-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/esdm COMPONENT dev)
  install(FILES ${PROJECT_BINARY_DIR}/esdm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
  install(FILES tools/completion/esdm.bash tools/completion/esdm.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/esdm/completion COMPONENT tools)
  esdm_zsh_folder(zsh)
  install(FILES tools/completion/_esdm_operands DESTINATION ${zsh} COMPONENT tools)
  install(DIRECTORY schemas site-config DESTINATION ${CMAKE_INSTALL_DATADIR}/esdm COMPONENT tools)
endfunction()

# esdm_pages_may_lack(VARIABLE): OPTIONAL where some tests alone are wanted, whose builds have no pages.
function(esdm_pages_may_lack variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT ESDM_TEST_PROGRAMS STREQUAL "all")
    set(${variable} OPTIONAL PARENT_SCOPE)
  endif()
endfunction()

# Completion of a tool's options in bash, zsh and fish; tools/completion has what they share.
function(esdm_completion target name)
  set(folder ${PROJECT_BINARY_DIR}/completion)
  set(script ${PROJECT_SOURCE_DIR}/tools/completion/Completion.cmake)
  set(outputs ${folder}/bash/${name} ${folder}/zsh/_${name} ${folder}/fish/${name}.fish)
  add_custom_command(OUTPUT ${outputs} DEPENDS ${target} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DNAME=${name} -DOUTPUT=${folder} -P ${script})
  add_custom_target(completion-${name} ALL DEPENDS ${outputs})
  esdm_pages_may_lack(lack)
  install(FILES ${folder}/bash/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    COMPONENT tools ${lack})
  esdm_zsh_folder(zsh)
  install(FILES ${folder}/zsh/_${name} DESTINATION ${zsh} COMPONENT tools ${lack})
  install(FILES ${folder}/fish/${name}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    COMPONENT tools ${lack})
endfunction()

# esdm_man_page(TARGET): NAME.1, NAME being the program of the target, from what it says with --help.
function(esdm_man_page target)
  string(REPLACE "esdm-front" "esdm" name ${target})
  set(output ${PROJECT_BINARY_DIR}/man/${name}.1)
  set(script ${PROJECT_SOURCE_DIR}/cmake/ManPage.cmake)
  add_custom_command(OUTPUT ${output} DEPENDS ${target} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DNAME=${name}
      -DVERSION=${PROJECT_VERSION} -DOUTPUT=${output} -P ${script})
  add_custom_target(man-${name} ALL DEPENDS ${output})
  esdm_completion(${target} ${name})
  esdm_pages_may_lack(lack)
  install(FILES ${output} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools ${lack})
endfunction()
