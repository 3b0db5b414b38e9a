# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, libraries, command, CMake package, pkg-config file.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/horus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS horus EXPORT horusTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET horus_cli)
  install(TARGETS horus_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/horus)
install(EXPORT horusTargets NAMESPACE horus:: DESTINATION ${_package_dir})
configure_package_config_file(cmake/horusConfig.cmake.in "${PROJECT_BINARY_DIR}/horusConfig.cmake"
  INSTALL_DESTINATION ${_package_dir})
# Before 1.0 a minor release may break source compatibility.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/horusConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/horusConfig.cmake" "${PROJECT_BINARY_DIR}/horusConfigVersion.cmake"
  DESTINATION ${_package_dir})

file(RELATIVE_PATH HORUS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/horus.pc.in "${PROJECT_BINARY_DIR}/horus.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/horus.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
