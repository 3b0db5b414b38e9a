# SPDX-License-Identifier: Apache-2.0
# horus_room() and the compile settings that every target of the project shares.

# Settings for our own code only: an INTERFACE target, so nothing leaks into an embedding build.
add_library(horus_settings INTERFACE)
target_compile_features(horus_settings INTERFACE cxx_std_20 c_std_99)
target_compile_options(horus_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  # GCC 12 warns of copies inside std::string that cannot happen (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers -Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers -Wno-missing-field-initializers>
  -ffp-contract=off -fno-math-errno
  $<$<BOOL:${HORUS_WERROR}>:-Werror>)
if(HORUS_SANITIZE)
  target_compile_options(horus_settings INTERFACE
    -fsanitize=${HORUS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(horus_settings INTERFACE -fsanitize=${HORUS_SANITIZE})
endif()
if(HORUS_FUZZ)
  target_compile_options(horus_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# horus_room(<name> SOURCES <file>... [DEPS <room>...] [LIBS <foreign library>...])
# One static, position-independent library per room. DEPS are the rooms it may include (see
# tests/layers/check_layers.py); LIBS are foreign libraries, entered by this room alone.
function(horus_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(horus_${name} STATIC ${ARG_SOURCES})
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
