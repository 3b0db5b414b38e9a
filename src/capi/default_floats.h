// SPDX-License-Identifier: Apache-2.0
// DefaultFloats: for a scope, numbers are computed as C has them by default, whatever the host has set.
//
// Enters:  a thread's floating-point environment: rounding, traps, subnormal numbers that are flushed to zero.
// Leaves:  the default within the scope, so that answers are those of any other host and no quiet NaN is a signal; then
//          the host's own again.
// Units:   none.
// Cost:    one register read, about a nanosecond, where the host keeps the default.
// Thread class: pure, of one thread's registers.
#ifndef HORUS_CAPI_DEFAULT_FLOATS_H_
#define HORUS_CAPI_DEFAULT_FLOATS_H_

#include <cfenv>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace horus::capi {

class DefaultFloats {
 public:
  DefaultFloats() : changed_(!IsDefault()) {
    if (changed_) Set();
  }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;
  ~DefaultFloats() {
    if (changed_) (void)std::fesetenv(&host_);
  }

 private:
  static bool IsDefault() {
#if defined(__SSE2__)
    return (_mm_getcsr() & ~unsigned{_MM_EXCEPT_MASK}) == _MM_MASK_MASK;  // what was raised before is no setting
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(control));
    return control == 0;
#else
    return false;
#endif
  }

  void Set() {
    (void)std::fegetenv(&host_);
    (void)std::fesetenv(FE_DFL_ENV);
#if defined(__SSE2__)
    _mm_setcsr(_MM_MASK_MASK);  // subnormal numbers too, of which C says nothing
#endif
  }

  std::fenv_t host_;  // only read where changed_
  bool changed_;
};

}  // namespace horus::capi

#endif  // HORUS_CAPI_DEFAULT_FLOATS_H_
