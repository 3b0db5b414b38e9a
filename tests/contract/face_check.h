// SPDX-License-Identifier: Apache-2.0
// The checks of the contract tests for the C++ face, whose failures are exceptions.
#ifndef HORUS_TESTS_CONTRACT_FACE_CHECK_H_
#define HORUS_TESTS_CONTRACT_FACE_CHECK_H_

#include <string>

#include "check.h"
#include "horus/lab/lab.hpp"

// What `body` throws, or OK; the text begins with the name of the status.
template <typename Body>
horus_status StatusOf(const Body& body) {
  try {
    body();
    return HORUS_OK;
  } catch (const horus::Error& error) {
    CHECK(std::string(error.what()).find(horus_status_name(error.status())) == 0);
    return error.status();
  }
}

#endif  // HORUS_TESTS_CONTRACT_FACE_CHECK_H_
