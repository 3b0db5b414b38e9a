# SPDX-License-Identifier: Apache-2.0
# horus_test_program() and horus_unit_test(): programs of GoogleTest whose cases CTest knows by name.
include(GoogleTest)

# horus_test_program(<name> ROOM <room> SOURCES <file>... [LIBS <library>...] [FITS] [OPTIMISED])
# Cases are called <room>.<suite>.<case>. FITS: it calls the trainer. OPTIMISED: as the library is, because its cases are
# held to a time.
function(horus_test_program name)
  cmake_parse_arguments(ARG "FITS;OPTIMISED" "ROOM" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} horus_settings GTest::gmock_main)
  if(NOT ARG_ROOM MATCHES "^(base|device|graph|features|trees)$")
    target_link_libraries(${name} PRIVATE horus_test_support horus_lab_policies)  # of which policies there are
  endif()
  target_compile_definitions(${name} PRIVATE
    HORUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HORUS_SHARED_DATA="${HORUS_SHARED_DATA}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit")
  set(_owner base_test)
  if(ARG_OPTIMISED)
    set(_owner ${name})  # compiled unlike the others
  elseif(HORUS_SANITIZE)
    horus_unoptimised(${name})
  else()
    # Compiling GoogleTest's cases takes longer than running them. GCC 12 warns at -O1 of strings that cannot be.
    target_compile_options(${name} PRIVATE -O1 -g1
      $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow>)
  endif()
  if(HORUS_PCH)
    horus_precompile(${name} ${_owner} ${HORUS_COMMON_HEADERS} <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  if(ARG_FITS)
    add_dependencies(${name} horus_train)
    # A fit looks for libhorus_train.so beside the file that holds the trainer: here, this program.
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "$<TARGET_FILE_DIR:horus_train>")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_ROOM}." DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES)
endfunction()

# horus_unit_test(<room> SOURCES <file>... [LIBS <library>...] [OPTIMISED]) : the test program of a room.
function(horus_unit_test room)
  cmake_parse_arguments(ARG "OPTIMISED" "" "SOURCES;LIBS" ${ARGN})
  set(_optimised)
  if(ARG_OPTIMISED)
    set(_optimised OPTIMISED)
  endif()
  horus_test_program(${room}_test ROOM ${room} SOURCES ${ARG_SOURCES} LIBS horus_${room} ${ARG_LIBS} ${_optimised})
endfunction()
