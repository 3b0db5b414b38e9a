// SPDX-License-Identifier: Apache-2.0
// What becomes of an exception that reached the boundary.
#include "capi/guard.h"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace horus::capi {

horus_status FailOnException(horus_error* error) {
  try {
    throw;
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (const std::bad_alloc&) {
    return Fail(error, HORUS_ERR_NO_MEMORY, "an allocation failed");
  } catch (const std::length_error&) {
    return Fail(error, HORUS_ERR_NO_MEMORY, "a count is larger than memory can hold");
  } catch (const std::exception& exception) {
    return Fail(error, HORUS_ERR_INTERNAL, exception.what());
  } catch (...) {
    return Fail(error, HORUS_ERR_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace horus::capi
