# SPDX-License-Identifier: Apache-2.0
# Finds XGBoost's C library: XGBoostC_FOUND, XGBoostC_VERSION and the imported target XGBoost::C.
#
# XGBoost installs a package of its own, but Debian's names a binary that no Debian package carries, so
# that find_package(xgboost) fails there; pkg-config's file and the plain search below do work.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_XGBoost QUIET xgboost)
endif()

find_path(XGBoostC_INCLUDE_DIR xgboost/c_api.h HINTS ${PC_XGBoost_INCLUDE_DIRS})
find_library(XGBoostC_LIBRARY xgboost HINTS ${PC_XGBoost_LIBRARY_DIRS})
mark_as_advanced(XGBoostC_INCLUDE_DIR XGBoostC_LIBRARY)

if(XGBoostC_INCLUDE_DIR AND EXISTS "${XGBoostC_INCLUDE_DIR}/xgboost/version_config.h")
  file(READ "${XGBoostC_INCLUDE_DIR}/xgboost/version_config.h" _xgboost_version_h)
  set(XGBoostC_VERSION "")
  foreach(_part MAJOR MINOR PATCH)
    if(_xgboost_version_h MATCHES "#define XGBOOST_VER_${_part} ([0-9]+)")
      list(APPEND XGBoostC_VERSION ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN XGBoostC_VERSION "." XGBoostC_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XGBoostC
  REQUIRED_VARS XGBoostC_LIBRARY XGBoostC_INCLUDE_DIR VERSION_VAR XGBoostC_VERSION)

if(XGBoostC_FOUND AND NOT TARGET XGBoost::C)
  add_library(XGBoost::C UNKNOWN IMPORTED)
  set_target_properties(XGBoost::C PROPERTIES
    IMPORTED_LOCATION "${XGBoostC_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${XGBoostC_INCLUDE_DIR}")
endif()
