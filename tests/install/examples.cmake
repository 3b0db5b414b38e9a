# SPDX-License-Identifier: Apache-2.0
# cmake -P script of install.examples; see CMakeLists.txt for the variables. Any failing step ends it.
set(MODEL "${SOURCE}/examples/models/graphs/resnet50.onnx")

include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

# Runs a built example; a build without ONNX can only be compiled and linked against.
function(run_example program)
  if(NOT WITH_ONNX)
    return()
  endif()
  run("${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${PREFIX}/${LIBDIR}" "${program}" "${MODEL}")
  if(NOT output MATCHES "job 1: " OR NOT output MATCHES "restored from [0-9]+ bytes; after job 1 left: [1-4] jobs")
    message(FATAL_ERROR "${program} printed:\n${output}")
  endif()
endfunction()

# What was observed lies above what was predicted, so the answer for the first job must have risen.
function(run_interference program)
  run("${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${PREFIX}/${LIBDIR}" "${program}")
  if(NOT output MATCHES "before: +([0-9.]+) times.*changed: job 1 on .*after : +([0-9.]+) times"
     OR NOT CMAKE_MATCH_2 GREATER CMAKE_MATCH_1)
    message(FATAL_ERROR "${program} printed:\n${output}")
  endif()
endfunction()

# Its jobs wait much less where they share, and end sooner.
function(run_simulate program)
  run("${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${PREFIX}/${LIBDIR}" "${program}")
  if(NOT output MATCHES "exclusive: +([0-9]+) s.*first-fit: +([0-9]+) s" OR NOT CMAKE_MATCH_1 GREATER CMAKE_MATCH_2)
    message(FATAL_ERROR "${program} printed:\n${output}")
  endif()
endfunction()

# What was observed makes one of the jobs that harm each other move; C, C++ and Python (tests/python) print the same.
function(run_loop program)
  run("${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${PREFIX}/${LIBDIR}" "${program}")
  file(READ "${SOURCE}/examples/loop/output.txt" expected)
  if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${program} printed, instead of examples/loop/output.txt:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed" --config "${CONFIG}")
file(RENAME "${WORK}/installed" "${WORK}/moved") # a prefix may be moved
set(PREFIX "${WORK}/moved")
file(GLOB_RECURSE headers RELATIVE "${SOURCE}" "${SOURCE}/include/horus/*.h" "${SOURCE}/include/horus/*.hpp")
if(NOT headers MATCHES "include/horus/interference[.]hpp")
  message(FATAL_ERROR "no headers found below ${SOURCE}")
endif()
foreach(file ${headers} ${LIBDIR}/libhorus.so ${LIBDIR}/libhorus_lab.so)
  if(NOT EXISTS "${PREFIX}/${file}")
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()

# `horus profile` finds the profiler beside the command, and the profiler its nets.
if(EXISTS "${PREFIX}/bin/horus")
  file(GLOB manual RELATIVE "${PREFIX}/share" "${PREFIX}/share/man/man1/horus*.1*" "${PREFIX}/share/zsh/*/_horus")
  foreach(file IN ITEMS man/man1/horus.1 man/man1/horus-traces-show.1 /_horus)
    if(NOT manual MATCHES "${file}")
      message(FATAL_ERROR "not installed: ${PREFIX}/share/${file}")
    endif()
  endforeach()
  foreach(file bash-completion/completions/horus fish/vendor_completions.d/horus.fish)
    if(NOT EXISTS "${PREFIX}/share/${file}")
      message(FATAL_ERROR "not installed: ${PREFIX}/share/${file}")
    endif()
  endforeach()
  run("${PREFIX}/bin/horus" profile plan --minutes 10)
  if(NOT output MATCHES "isolated +[1-9]")
    message(FATAL_ERROR "horus profile plan printed:\n${output}")
  endif()
  run("${PREFIX}/bin/horus" profile pack "${WORK}/packed")
  foreach(file default.hbundle zoo/nets/spec.py zoo/graphs/resnet50.onnx)
    if(NOT EXISTS "${WORK}/packed/${file}")
      message(FATAL_ERROR "not packed from an installation: ${file}")
    endif()
  endforeach()
endif()

# find_package, in C and C++.
foreach(language c cpp loop)
  run("${CMAKE_COMMAND}" -S "${SOURCE}/examples/${language}" -B "${WORK}/${language}" -G "${GENERATOR}"
    -D "CMAKE_PREFIX_PATH=${PREFIX}" -D CMAKE_BUILD_TYPE=Release
    -D "CMAKE_C_COMPILER=${C_COMPILER}" -D "CMAKE_CXX_COMPILER=${CXX_COMPILER}")
  run("${CMAKE_COMMAND}" --build "${WORK}/${language}")
  if(NOT language STREQUAL "loop")
    run_example("${WORK}/${language}/place")
  endif()
endforeach()
run_loop("${WORK}/loop/loop_c")
run_loop("${WORK}/loop/loop_cpp")
run_interference("${WORK}/cpp/interference")
run_simulate("${WORK}/cpp/simulate")

if(NOT EXISTS "${PREFIX}/${LIBDIR}/libhorus.a")
  refuses_static()
endif()

# pkg-config and a plain C compiler.
need_pkg_config()
run("${PKG_CONFIG}" --variable=static horus)
if(EXISTS "${PREFIX}/${LIBDIR}/libhorus.a" AND NOT output STREQUAL "ON\n" OR
   NOT EXISTS "${PREFIX}/${LIBDIR}/libhorus.a" AND NOT output STREQUAL "OFF\n")
  message(FATAL_ERROR "pkg-config --variable=static horus does not tell of the archive: ${output}")
endif()
run("${PKG_CONFIG}" --cflags --libs horus)
separate_arguments(flags UNIX_COMMAND "${output}")
run("${C_COMPILER}" -std=c99 -pedantic -Wall -Wextra -Werror "${SOURCE}/examples/c/place.c" -o "${WORK}/place_plain" ${flags})
run_example("${WORK}/place_plain")
run("${PKG_CONFIG}" --cflags --libs horus_lab)
separate_arguments(flags UNIX_COMMAND "${output}")
run("${CXX_COMPILER}" -std=c++20 "${SOURCE}/examples/cpp/simulate.cpp" -o "${WORK}/simulate_plain" ${flags})
run_simulate("${WORK}/simulate_plain")
