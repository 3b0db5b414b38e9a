// SPDX-License-Identifier: Apache-2.0
// Handles whose writers the C ABI leaves to its caller's lock: Python programs get that lock.
#ifndef HORUS_PYTHON_LOCKED_H_
#define HORUS_PYTHON_LOCKED_H_

#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "core.h"

namespace horus_python {

inline bool IsFinalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// What a call answers that would have to wait within a callback.
inline horus_status InUse(horus_error* error) {
  error->status = HORUS_ERR_BUSY;
  std::strncpy(error->message, "in use by the call that called back", sizeof error->message - 1);
  return HORUS_ERR_BUSY;
}

template <typename T, void (*Free)(T*)>
class LockedHandle : public Handle<T, Free> {
 public:
  using Handle<T, Free>::Handle;
  // Runs `function(horus_error*)` beside other readers, or alone; readers that come wait for a writer that waits. From
  // a callback nobody waits, nor at the interpreter's end, when who is waited for may never go on: BUSY.
  template <typename Function>
  horus_status Read(horus_error* error, const Function& function) const {
    std::shared_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
    if (MayWait()) {
      const std::scoped_lock behind_writers(turn_);
    }
    return Take(lock) ? function(error) : InUse(error);
  }
  template <typename Function>
  horus_status Write(horus_error* error, const Function& function) const {
    std::unique_lock<std::mutex> turn(turn_, std::defer_lock);
    std::unique_lock<std::shared_mutex> lock(mutex_, std::defer_lock);
    return Take(turn) && Take(lock) ? function(error) : InUse(error);
  }

 private:
  static bool MayWait() { return InCallback::Depth() == 0 && !IsFinalizing(); }
  template <typename Lock>
  static bool Take(Lock& lock) {
    if (!MayWait()) return lock.try_lock();
    lock.lock();
    return true;
  }
  mutable std::mutex turn_;
  mutable std::shared_mutex mutex_;
};

// The same for a call on two handles.
template <typename A, typename B, typename Function>
horus_status ReadBoth(const A& a, const B& b, horus_error* error, const Function& function) {
  return a.Read(error, [&](horus_error* e) { return b.Read(e, function); });
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_LOCKED_H_
