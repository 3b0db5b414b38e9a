# SPDX-License-Identifier: Apache-2.0
# cmake -P script of install.static; see CMakeLists.txt for the variables. Any failing step ends it.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")
file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed" --config "${CONFIG}")
file(RENAME "${WORK}/installed" "${WORK}/moved") # a prefix may be moved
set(PREFIX "${WORK}/moved")

# The programs hold the library: they run where libhorus.so is not.
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/static" -B "${WORK}/build" -G "${GENERATOR}" -D "CMAKE_PREFIX_PATH=${PREFIX}"
  -D CMAKE_BUILD_TYPE=Release -D "CMAKE_C_COMPILER=${C_COMPILER}" -D "CMAKE_CXX_COMPILER=${CXX_COMPILER}")
no_flags_leak("${WORK}/build" consumer.c)
run("${CMAKE_COMMAND}" --build "${WORK}/build")
file(REMOVE "${PREFIX}/${LIBDIR}/cmake/horus/horusStaticTargets.cmake")
refuses_static()
file(GLOB shared "${PREFIX}/${LIBDIR}/libhorus.so*")
file(REMOVE ${shared})
run("${WORK}/build/consumer")
run("${WORK}/build/loader" "${WORK}/build/libplugin.so")

# pkg-config --static, all of it linked statically.
need_pkg_config()
run("${PKG_CONFIG}" --cflags horus)
if(NOT output MATCHES "^-I[^ ]+/include *\n$")
  message(FATAL_ERROR "pkg-config --cflags horus leaks flags: ${output}")
endif()
run("${PKG_CONFIG}" --libs horus)
if(NOT output MATCHES "^-L[^ ]+ -lhorus *\n$")
  message(FATAL_ERROR "pkg-config --libs horus links more than the library: ${output}")
endif()
run("${PKG_CONFIG}" --static --cflags --libs horus)
separate_arguments(flags UNIX_COMMAND "${output}")
run("${C_COMPILER}" -std=c99 -static "${CMAKE_CURRENT_LIST_DIR}/consumer.c" -o "${WORK}/consumer_plain" ${flags})
run("${WORK}/consumer_plain")
