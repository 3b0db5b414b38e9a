# SPDX-License-Identifier: Apache-2.0
# cmake -P script of install.add_subdirectory; see CMakeLists.txt for the variables. Not ctest --build-and-test: it changes
# the locale of the compiler, and with it what a compiler cache looks for.
file(REMOVE_RECURSE "${WORK}")
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/subdirectory" -B "${WORK}"
  -G "${GENERATOR}" -D "HORUS_SOURCE=${SOURCE}" -D "CMAKE_BUILD_TYPE=${BUILD_TYPE}"
  -D "CMAKE_C_COMPILER=${C_COMPILER}" -D "CMAKE_CXX_COMPILER=${CXX_COMPILER}" -D "CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}")
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND "${CMAKE_COMMAND}" --build "${WORK}")
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND "${WORK}/consumer")
