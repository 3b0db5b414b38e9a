// SPDX-License-Identifier: Apache-2.0
// Handles whose writers the C ABI leaves to its caller's lock: Python programs get that lock.
#ifndef HORUS_PYTHON_LOCKED_H_
#define HORUS_PYTHON_LOCKED_H_

#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "core.h"

namespace horus_python {

// What a call answers that would have to wait within a callback.
inline horus_status InUse(horus_error* error) {
  error->status = HORUS_BUSY;
  std::strncpy(error->message, "in use by the call that called back", sizeof error->message - 1);
  return HORUS_BUSY;
}

template <typename T, void (*Free)(T*)>
class LockedHandle : public Handle<T, Free> {
 public:
  using Handle<T, Free>::Handle;
  // Runs `function(horus_error*)` beside other readers, or alone. From a callback nobody waits: BUSY.
  template <typename Function>
  horus_status Read(horus_error* error, const Function& function) const {
    std::shared_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
    return Within(lock, error, function);
  }
  template <typename Function>
  horus_status Write(horus_error* error, const Function& function) const {
    std::unique_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
    return Within(lock, error, function);
  }

 private:
  template <typename Lock, typename Function>
  static horus_status Within(Lock& lock, horus_error* error, const Function& function) {
    if (InCallback::Depth() == 0) lock.lock();
    if (!lock.owns_lock() && !lock.try_lock()) return InUse(error);
    return function(error);
  }
  mutable std::shared_mutex mutex_;
};

// The same for a call on two handles.
template <typename A, typename B, typename Function>
horus_status ReadBoth(const A& a, const B& b, horus_error* error, const Function& function) {
  return a.Read(error, [&](horus_error* e) { return b.Read(e, function); });
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_LOCKED_H_
