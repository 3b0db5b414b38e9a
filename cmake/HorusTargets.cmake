# SPDX-License-Identifier: Apache-2.0
# horus_room() and the compile settings that every target of the project shares.

# Settings for our own code only: an INTERFACE target, so nothing leaks into an embedding build.
add_library(horus_settings INTERFACE)
target_compile_features(horus_settings INTERFACE cxx_std_20 c_std_99)
target_compile_options(horus_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wformat=2 -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  # GCC 12 warns of copies inside std::string that cannot happen (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers -Wno-restrict -Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers -Wno-missing-field-initializers>
  -ffp-contract=off -fno-math-errno
  $<$<BOOL:${HORUS_WERROR}>:-Werror>)
if(HORUS_PCH)
  # A compiler cache may bring back precompiled headers that are older than the headers.
  target_compile_options(horus_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endif()
if(HORUS_SANITIZE)
  target_compile_options(horus_settings INTERFACE
    -fsanitize=${HORUS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Clang puts its run time into programs alone, and the part for C++ only into those that it links as C++: ours of C
  # load libraries of C++.
  target_link_options(horus_settings INTERFACE -fsanitize=${HORUS_SANITIZE}
    $<$<CXX_COMPILER_ID:Clang>:-fsanitize-link-c++-runtime>)
  target_link_libraries(horus_settings INTERFACE $<$<AND:$<CXX_COMPILER_ID:Clang>,$<LINK_LANGUAGE:C>>:stdc++>)
endif()
# Shared libraries are whole, but for Clang's sanitisers, which only the program brings.
set(HORUS_NO_UNDEFINED "LINKER:--no-undefined")
if(HORUS_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(HORUS_NO_UNDEFINED)
endif()
if(HORUS_FUZZ)
  target_compile_options(horus_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Hardening, of our own targets alone (SECURITY.md). What changes code is for the configurations that are optimised, which
# checked library calls need; sanitisers do better and do not agree with it.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
if(HORUS_HARDEN AND NOT HORUS_SANITIZE AND NOT HORUS_FUZZ)
  set(_optimised "$<CONFIG:Release,MinSizeRel,RelWithDebInfo>")
  set(_branches)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i.86)$")
    set(_branches -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(_branches -mbranch-protection=standard)
  endif()
  target_compile_options(horus_settings INTERFACE
    "$<${_optimised}:-fstack-protector-strong;-fstack-clash-protection;${_branches};-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()

# horus_harden(<target>) : for a library that is loaded or a program: nothing in it is writable and executable, and what
# the loader fills in is read-only before any of its code runs.
function(horus_harden target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(HORUS_HARDEN)
    target_link_options(${target} PRIVATE "LINKER:-z,relro" "LINKER:-z,now" "LINKER:-z,noexecstack")
  endif()
endfunction()

# Foreign headers that most files include; precompiled (HORUS_PCH) they are parsed once for all rooms, not once a file.
set(HORUS_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <limits> <map> <memory> <optional> <set> <span>
  <string> <string_view> <tuple> <utility> <vector> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>)

# horus_precompile(<target> <owner> <header>...) : the owner makes the precompiled headers, the other targets take them.
# They must be compiled alike: the same options and, but for additions, the same definitions.
function(horus_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# horus_unoptimised(<target>) : under the sanitisers, for code that generates far more instructions than it ever runs.
function(horus_unoptimised target)
  if(HORUS_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# horus_room_settings(<name> [DEPS <room>...] [LIBS <foreign library>...]) : how horus_<name>, static or objects, is compiled.
function(horus_room_settings name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  set_target_properties(horus_${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
  target_include_directories(horus_${name} PUBLIC
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  list(TRANSFORM ARG_DEPS PREPEND horus_)
  # Foreign headers are not ours to warn about.
  foreach(_lib IN LISTS ARG_LIBS)
    if(TARGET ${_lib})
      get_target_property(_dirs ${_lib} INTERFACE_INCLUDE_DIRECTORIES)
      if(_dirs)
        target_include_directories(horus_${name} SYSTEM PRIVATE ${_dirs})
      endif()
    endif()
  endforeach()
  target_link_libraries(horus_${name} PUBLIC ${ARG_DEPS} ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:horus_settings>)
endfunction()

# The rooms in which a decision spends its time: HORUS_HOT_OPTIONS are for them.
set(HORUS_HOT_ROOMS base demand trees interference place queue)

# horus_room(<name> SOURCES <file>... [DEPS <room>...] [LIBS <foreign library>...] [PRECOMPILE <header>...] [UNOPTIMISED])
# One static, position-independent library per room. DEPS are the rooms it may include (see
# tests/layers/check_layers.py); LIBS are foreign libraries, entered by this room alone.
# horus_closure() reads both back. PRECOMPILE: headers of those that many of its files include. UNOPTIMISED: see horus_unoptimised().
function(horus_room name)
  cmake_parse_arguments(ARG "UNOPTIMISED" "" "SOURCES;DEPS;LIBS;PRECOMPILE" ${ARGN})
  add_library(horus_${name} STATIC ${ARG_SOURCES})
  horus_room_settings(${name} DEPS ${ARG_DEPS} LIBS ${ARG_LIBS})
  set_property(GLOBAL PROPERTY HORUS_ROOM_${name}_DEPS ${ARG_DEPS})
  set_property(GLOBAL PROPERTY HORUS_ROOM_${name}_LIBS ${ARG_LIBS})
  if(name IN_LIST HORUS_HOT_ROOMS)
    target_compile_options(horus_${name} PRIVATE ${HORUS_HOT_OPTIONS})
  endif()
  if(HORUS_UNITY)
    # A file with options of its own is compiled alone. Names that files keep to themselves must differ within a room.
    set_target_properties(horus_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HORUS_UNITY})
  endif()
  set(_owner horus_base)
  if(ARG_UNOPTIMISED)
    horus_unoptimised(horus_${name})
  endif()
  if(ARG_UNOPTIMISED OR ARG_PRECOMPILE)
    set(_owner horus_${name})
  endif()
  if(HORUS_PCH STREQUAL "ON")
    horus_precompile(horus_${name} ${_owner} ${HORUS_COMMON_HEADERS} ${ARG_PRECOMPILE})
  endif()
endfunction()

# horus_shared(<target> <file name> OBJECTS <target>... MAP <version script>) : a library of the C ABI: these objects whole,
# of the rooms below them what they need; only what the script names leaves.
function(horus_shared target file)
  cmake_parse_arguments(ARG "" "MAP" "OBJECTS" ${ARGN})
  list(TRANSFORM ARG_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE _objects)
  add_library(${target} SHARED ${_objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file}
    LINKER_LANGUAGE CXX VERSION ${HORUS_SOVERSION} SOVERSION ${HORUS_SOVERSION} LINK_DEPENDS "${ARG_MAP}")
  foreach(_room IN LISTS ARG_OBJECTS)
    get_target_property(_type ${_room} TYPE)
    if(_type STREQUAL "STATIC_LIBRARY")
      target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${_room}>)
    endif()
  endforeach()
  # -Bsymbolic-functions: calls from inside stay inside, whichever other libhorus the process has loaded.
  target_link_options(${target} PRIVATE
    "LINKER:-Bsymbolic-functions" "LINKER:--version-script=${ARG_MAP}" "LINKER:--as-needed" ${HORUS_NO_UNDEFINED})
  horus_harden(${target})
  if(HORUS_SANITIZE)
    target_link_options(${target} PRIVATE -fsanitize=${HORUS_SANITIZE})
  endif()
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()
