# SPDX-License-Identifier: Apache-2.0
# An overlay port that builds the source it lies in: vcpkg install horus --overlay-ports=<source>/cmake/packaging/vcpkg
# Never run by vcpkg itself so far: the test install.vcpkg_port runs it with stand-ins for vcpkg's functions.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES
  onnx HORUS_WITH_ONNX
  lp HORUS_WITH_LP)
# The package has horus::horus always, a shared library; static triplets get libhorus.a (COMPONENTS static) beside it.
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "static" HORUS_STATIC)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${FEATURE_OPTIONS} -DHORUS_STATIC=${HORUS_STATIC} -DHORUS_WITH_TRAIN=OFF -DHORUS_WITH_CLI=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME horus CONFIG_PATH lib/cmake/horus)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
