// SPDX-License-Identifier: Apache-2.0
// Contained: nothing leaves the solver's library but a status, a text and a thread's cancellation.
//
// Enters:  what to run, which may throw anything (Clp throws a type of its own, which is no std::exception).
// Leaves:  its status, or one of entry.h with the reason in `text` of HORUS_LP_TEXT_BYTES.
#pragma once

#include <cxxabi.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>

#include "lab/lp/entry.h"

namespace horus::lp {

inline int32_t Say(char* text, int32_t status, const char* what, int detail) {
  std::snprintf(text, HORUS_LP_TEXT_BYTES, "%s (%d)", what, detail);
  return status;
}

template <typename Function>
int32_t Contained(char* text, const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Say(text, HORUS_LP_NO_MEMORY, "an allocation failed", 0);
  } catch (const std::exception& error) {
    return Say(text, HORUS_LP_FAILED, error.what(), 0);
  } catch (const abi::__forced_unwind&) {  // the thread is being cancelled: must pass
    throw;
  } catch (...) {
    return Say(text, HORUS_LP_FAILED, "Clp threw", 0);
  }
}

}  // namespace horus::lp
