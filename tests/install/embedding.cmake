# SPDX-License-Identifier: Apache-2.0
# cmake -P script of install.add_subdirectory and install.fetch_content; see CMakeLists.txt for the variables. Not
# ctest --build-and-test: it changes the locale of the compiler, and with it what a compiler cache looks for.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
file(REMOVE_RECURSE "${WORK}")
string(REPLACE "|" ";" options "${FLAGS}")
if(NOT WITH_ONNX)
  list(APPEND options -D HORUS_WITH_ONNX=OFF)
endif()
if(WERROR)
  list(APPEND options -D HORUS_WERROR=ON)
endif()
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/embedding" -B "${WORK}" -G "${GENERATOR}"
  -D "HORUS_SOURCE=${SOURCE}" -D "WAY=${WAY}" ${options} -D "CMAKE_BUILD_TYPE=${BUILD_TYPE}"
  -D "CMAKE_C_COMPILER=${C_COMPILER}" -D "CMAKE_CXX_COMPILER=${CXX_COMPILER}" -D "CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
no_flags_leak("${WORK}" consumer.c)
foreach(library horus static)
  run("${CMAKE_COMMAND}" --build "${WORK}" --target consumer_${library})
  run("${WORK}/consumer_${library}")
  if(NOT output MATCHES "^Placed on node 1 device 0")
    message(FATAL_ERROR "consumer_${library} printed:\n${output}")
  endif()
  if(WITH_ONNX)
    run("${CMAKE_COMMAND}" --build "${WORK}" --target place_${library})
    run("${WORK}/place_${library}" "${SOURCE}/examples/models/graphs/resnet50.onnx")
    if(NOT output MATCHES "job 1: ")
      message(FATAL_ERROR "place_${library} printed:\n${output}")
    endif()
  endif()
endforeach()
file(REMOVE_RECURSE "${WORK}") # a gigabyte that nothing looks at
