# SPDX-License-Identifier: Apache-2.0
# Reads release and ABI numbers from include/horus/version.h, their only home.
file(READ "${CMAKE_CURRENT_LIST_DIR}/../include/horus/version.h" _horus_version_h)
foreach(_part VERSION_MAJOR VERSION_MINOR VERSION_PATCH ABI ABI_REVISION)
  if(NOT _horus_version_h MATCHES "#define HORUS_${_part} ([0-9]+)")
    message(FATAL_ERROR "include/horus/version.h: HORUS_${_part} not found")
  endif()
  set(HORUS_${_part} "${CMAKE_MATCH_1}")
endforeach()
set(HORUS_VERSION "${HORUS_VERSION_MAJOR}.${HORUS_VERSION_MINOR}.${HORUS_VERSION_PATCH}")
# While the ABI is 0 each break raises the last number, so no old client starts and then crashes.
if(HORUS_ABI EQUAL 0)
  set(HORUS_SOVERSION "0.${HORUS_ABI_REVISION}")
else()
  set(HORUS_SOVERSION "${HORUS_ABI}")
endif()
