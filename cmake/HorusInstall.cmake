# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, libraries, command, CMake package, pkg-config file. Components: library, dev and command here,
# train and lp beside their targets, lab for what links libhorus_lab.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/horus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS horus EXPORT horusTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
if(TARGET horus_cli)
  install(TARGETS horus_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  # The profiler as `horus-profile pack` lays it out; `horus profile` hands over to it.
  set(_profile_dir ${CMAKE_INSTALL_DATADIR}/horus/profile)
  install(PROGRAMS bench/profile/horus-profile DESTINATION ${_profile_dir} COMPONENT command)
  install(DIRECTORY bench/profile/ DESTINATION ${_profile_dir} COMPONENT command
    FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
  install(FILES src/predict/default.hbundle DESTINATION ${_profile_dir} COMPONENT command)
  install(DIRECTORY examples/models/nets examples/models/graphs DESTINATION ${_profile_dir}/zoo COMPONENT command
    FILES_MATCHING PATTERN "*.py" PATTERN "*.onnx" PATTERN __pycache__ EXCLUDE)
endif()
if(TARGET horus_manual)
  get_target_property(_manual horus_manual HORUS_FOLDER)
  set(_zsh site-functions)
  if(HORUS_PACKAGE)
    set(_zsh vendor-completions) # where Debian's zsh looks
  endif()
  install(DIRECTORY "${_manual}/man1" DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
  install(FILES "${_manual}/bash/horus" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command)
  install(FILES "${_manual}/zsh/_horus" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${_zsh} COMPONENT command)
  install(FILES "${_manual}/fish/horus.fish" DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
endif()

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/horus)
install(EXPORT horusTargets NAMESPACE horus:: DESTINATION ${_package_dir} COMPONENT dev)
set(HORUS_STATIC_DEPENDENCIES)
set(HORUS_PC_PRIVATE)
set(HORUS_PC_STATIC OFF)
if(HORUS_STATIC)
  set(HORUS_PC_STATIC ON)
  install(TARGETS horus_static EXPORT horusStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
  install(EXPORT horusStaticTargets NAMESPACE horus:: DESTINATION ${_package_dir} COMPONENT dev)
  foreach(_package absl Protobuf yaml-cpp)
    string(TOLOWER ${_package} _name)
    if(HORUS_STATIC_LIBS MATCHES "(^|;)${_name}(;|::|$)")
      string(APPEND HORUS_STATIC_DEPENDENCIES "  find_dependency(${_package})\n")
    endif()
  endforeach()
  string(REGEX REPLACE "\n$" "" HORUS_STATIC_DEPENDENCIES "${HORUS_STATIC_DEPENDENCIES}")
  # Spelt out: named in Requires.private, their .pc files would have to be there, and their flags would leak, without --static.
  horus_link_line(_line ${HORUS_STATIC_LIBS})
  set(HORUS_PC_PRIVATE "Libs.private:${_line}\n")
endif()
if(HORUS_WITH_LAB)
  install(TARGETS horus_laboratory EXPORT horusLabTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT lab)
  install(EXPORT horusLabTargets NAMESPACE horus:: DESTINATION ${_package_dir} COMPONENT lab)
endif()
configure_package_config_file(cmake/horusConfig.cmake.in "${PROJECT_BINARY_DIR}/horusConfig.cmake"
  INSTALL_DESTINATION ${_package_dir})
# Before 1.0 a minor release may break source compatibility.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/horusConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/horusConfig.cmake" "${PROJECT_BINARY_DIR}/horusConfigVersion.cmake"
  DESTINATION ${_package_dir} COMPONENT dev)

file(RELATIVE_PATH HORUS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(HORUS_PC_NAME horus)
configure_file(cmake/horus.pc.in "${PROJECT_BINARY_DIR}/horus.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/horus.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
if(HORUS_WITH_LAB)
  set(HORUS_PC_NAME horus_lab)
  set(HORUS_PC_PRIVATE)
  set(HORUS_PC_STATIC OFF)
  configure_file(cmake/horus.pc.in "${PROJECT_BINARY_DIR}/horus_lab.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/horus_lab.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT lab)
endif()
