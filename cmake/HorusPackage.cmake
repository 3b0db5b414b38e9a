# SPDX-License-Identifier: Apache-2.0
# Debian packages by CPack: cpack -G DEB in a build folder configured with the preset `package`; scripts/deb does it all.
# The library's package is named after its SONAME, as Debian's policy wants (8.1): libhorus.so.0.1 is in libhorus0.1, so
# that two of them may be installed beside each other.
set(CPACK_PACKAGE_NAME horus)
set(CPACK_PACKAGE_VENDOR "libhorus")
set(CPACK_PACKAGE_CONTACT "The authors of libhorus <libhorus@localhost>" CACHE STRING "Maintainer that packages name")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(CPACK_COMPONENTS_ALL)

# horus_package(<component> <name> <section> <text>) : one package of the files of one component.
macro(horus_package component name section text)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  string(TOUPPER ${component} _component)
  set(CPACK_DEBIAN_${_component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${_component}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${_component}_DESCRIPTION "${text}")
  install(FILES cmake/packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
  install(FILES "${PROJECT_BINARY_DIR}/packaging/changelog.gz" RENAME changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endmacro()

# horus_package_library(<component> <name> <library>) : what programs built against the library must depend on, and a
# trigger instead of CPack's scripts that call ldconfig.
macro(horus_package_library component name library)
  set(_control "${PROJECT_BINARY_DIR}/packaging/${component}")
  file(WRITE "${_control}/shlibs" "${library} ${HORUS_SOVERSION} ${name} (>= ${PROJECT_VERSION})\n")
  file(WRITE "${_control}/triggers" "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_${_component}_PACKAGE_CONTROL_EXTRA "${_control}/shlibs;${_control}/triggers")
endmacro()

horus_package(library libhorus${HORUS_SOVERSION} libs
  "The library: which GPUs a job should take, beside whom and at what\nslowdown, from its computation graph.")
horus_package_library(library libhorus${HORUS_SOVERSION} libhorus)
horus_package(dev libhorus-dev libdevel
  "For embedders: C headers, the C++ face over them, the libraries to link,\nCMake package and pkg-config file.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libhorus${HORUS_SOVERSION} (= ${_version})")
if(HORUS_STATIC) # the archive's users link these; those of the shared library need neither
  set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "libabsl-dev, libprotobuf-dev")
endif()
set(_side_packages)
# horus_side_package(<component> <text>) : of a library that ours loads.
macro(horus_side_package component text)
  if(TARGET horus_${component})
    list(APPEND _side_packages libhorus-${component}${HORUS_SOVERSION})
    horus_package(${component} libhorus-${component}${HORUS_SOVERSION} libs "${text}")
    horus_package_library(${component} libhorus-${component}${HORUS_SOVERSION} libhorus_${component})
  endif()
endmacro()
horus_side_package(lab "For researchers: the library with traces, simulator, training and rival\npolicies in one, with what links it.")
horus_side_package(train "What the laboratory loads to learn from measured runs; it brings XGBoost.")
horus_side_package(lp
  "What the laboratory loads for the policy synergy-opt and for horus potential;\nit brings COIN-OR Clp.")
if(TARGET horus_cli)
  horus_package(command horus science
    "The command: inspect graphs, place queues, compare policies in a simulated\ncluster, profile your own GPU.")
  list(JOIN _side_packages ", " CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS)
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS python3)
endif()

# Debian's changelog names the release; what changed stands in CHANGELOG.md. The date is SOURCE_DATE_EPOCH where that is set.
string(TIMESTAMP _date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/packaging/changelog" CONTENT
"horus (${_version}) unstable; urgency=medium

  * Release ${PROJECT_VERSION}; CHANGELOG.md of the source says what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${_date}
")
execute_process(COMMAND gzip -9 --no-name --keep --force "${PROJECT_BINARY_DIR}/packaging/changelog"
  COMMAND_ERROR_IS_FATAL ANY)
set(HORUS_PACKAGE_COMPONENTS ${CPACK_COMPONENTS_ALL}) # CPack makes its own of the name
include(CPack)
