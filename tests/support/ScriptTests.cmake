# SPDX-License-Identifier: LGPL-3.0-or-later

# esdm_run_test(NAME LABEL TIMEOUT COMMAND…): a test with the environment that tests/support wants.
function(esdm_run_test name label timeout)
  add_test(NAME ${name} COMMAND ${ARGN})
  esdm_hangs_after(timeout ${timeout})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
    ENVIRONMENT "ESDM_BUILD=${PROJECT_BINARY_DIR};ESDM_SOURCE=${PROJECT_SOURCE_DIR};\
ESDM_SANITIZE=${ESDM_SANITIZE};\
LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/leaks.txt:print_suppressions=0;PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support;\
PYTHONDONTWRITEBYTECODE=1")
endfunction()

# esdm_holds_many_locks(TEST…): a thread of these holds more than the 64 locks that ThreadSanitizer's search
# for deadlocks has room for; it ends the program then. Kyoto Cabinet takes all locks of a shard to flush it.
function(esdm_holds_many_locks)
  foreach(test IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY
      ENVIRONMENT_MODIFICATION "TSAN_OPTIONS=string_append::detect_deadlocks=0")
  endforeach()
endfunction()

# esdm_needs_s3_server(TEST SERVER): the server (versitygw, minio) is built before, once for all.
function(esdm_needs_s3_server test server)
  get_property(known GLOBAL PROPERTY ESDM_S3_SERVERS)
  if(NOT server IN_LIST known)
    esdm_run_test(support.s3-${server} support 1500 /usr/bin/python3
      ${PROJECT_SOURCE_DIR}/tests/support/s3server.py --build ${server})
    set_tests_properties(support.s3-${server} PROPERTIES FIXTURES_SETUP s3-${server})
    set_property(GLOBAL APPEND PROPERTY ESDM_S3_SERVERS ${server})
  endif()
  set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED s3-${server})
endfunction()

# esdm_program(TARGET SOURCE [LIBRARY…]): a C program that sees the public headers alone.
function(esdm_program target source)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE esdm esdm_options Threads::Threads ${ARGN} m)
endfunction()

# esdm_script_tests(LABEL TIMEOUT SECONDS [PREFIX TEXT]): a test for each test_NAME.{c,sh,py} of this
# folder, called LABEL.NAME, or PREFIX and NAME.
function(esdm_script_tests label)
  cmake_parse_arguments(T "" "TIMEOUT;PREFIX" "" ${ARGN})
  if(NOT T_PREFIX)
    set(T_PREFIX ${label}.)
  endif()
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_*.c
    ${CMAKE_CURRENT_SOURCE_DIR}/test_*.sh ${CMAKE_CURRENT_SOURCE_DIR}/test_*.py)
  foreach(test IN LISTS tests)
    get_filename_component(name ${test} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${name})
    if(test MATCHES "\\.c$")
      esdm_program(${label}_${name} ${test})
      set(command $<TARGET_FILE:${label}_${name}>)
    elseif(test MATCHES "\\.py$")
      set(command /usr/bin/python3 ${test})
    else()
      set(command /bin/bash ${test})
    endif()
    esdm_run_test(${T_PREFIX}${name} ${label} ${T_TIMEOUT} ${command})
    esdm_label_threads(${T_PREFIX}${name} ${test})
    if(test MATCHES "\\.c$")
      esdm_serves(${label}_${name} ${T_PREFIX}${name})
    endif()
  endforeach()
endfunction()
