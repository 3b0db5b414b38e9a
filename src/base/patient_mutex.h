// SPDX-License-Identifier: Apache-2.0
// PatientMutex: a shared mutex for short sections, at whose door threads look again for a while before they sleep.
//
// Enters:  std::shared_lock and std::unique_lock.
// Leaves:  as std::shared_mutex.
// Units:   none.
// Cost:    as std::shared_mutex where nobody waits. To be put to sleep and woken takes tens of microseconds on virtual
//          machines, many times what the sections of a cluster take (docs/threading.md).
// Thread class: internally synchronised.
#ifndef HORUS_BASE_PATIENT_MUTEX_H_
#define HORUS_BASE_PATIENT_MUTEX_H_

#include <shared_mutex>
#include <thread>

namespace horus {

class PatientMutex {
 public:
  void lock() {
    if (!LookUntil([this] { return mutex_.try_lock(); })) mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }
  void lock_shared() {
    if (!LookUntil([this] { return mutex_.try_lock_shared(); })) mutex_.lock_shared();
  }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  static constexpr int kLooks = 100;  // chosen: about 10 us in all
  static constexpr int kPausesBetween = 20;

  template <typename Try>
  static bool LookUntil(const Try& taken) {
    for (int look = 0; look < kLooks; ++look) {
      if (taken()) return true;
      for (int i = 0; i < kPausesBetween; ++i) Pause();
    }
    return false;
  }
  static void Pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }

  std::shared_mutex mutex_;
};

}  // namespace horus

#endif  // HORUS_BASE_PATIENT_MUTEX_H_
