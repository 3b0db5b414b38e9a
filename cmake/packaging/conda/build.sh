#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Called by conda build, which sets CMAKE_ARGS, PREFIX and SRC_DIR. The library; XGBoost, Clp and the command stay out.
set -euo pipefail
read -ra conda_args <<<"${CMAKE_ARGS:-}"
cmake -S "$SRC_DIR" -B build-conda -G Ninja -DCMAKE_BUILD_TYPE=Release "${conda_args[@]}" \
  -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
  -DHORUS_WITH_ONNX=ON -DHORUS_WITH_TRAIN=OFF -DHORUS_WITH_LP=OFF -DHORUS_WITH_CLI=OFF
cmake --build build-conda
cmake --install build-conda
