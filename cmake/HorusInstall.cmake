# SPDX-License-Identifier: Apache-2.0
# Install rules: headers, libraries, CMake package, pkg-config file.
