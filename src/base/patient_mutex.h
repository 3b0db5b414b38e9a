// SPDX-License-Identifier: Apache-2.0
// PatientMutex: a shared mutex for short sections, at whose door threads look again for a while before they sleep.
//
// Enters:  std::shared_lock and std::unique_lock.
// Leaves:  as std::shared_mutex.
// Cost:    as std::shared_mutex where nobody waits. To be put to sleep and woken takes tens of microseconds on virtual
//          machines, many times what the sections of a cluster take (docs/embed.md).
// Thread class: internally synchronised.
#pragma once

#include <chrono>
#include <shared_mutex>

namespace horus {

class PatientMutex {
 public:
  void lock() {
    if (!LookAWhile([this] { return mutex_.try_lock(); })) mutex_.lock();
  }
  bool try_lock() {
    return LookAWhile([this] { return mutex_.try_lock(); });
  }
  void unlock() { mutex_.unlock(); }
  void lock_shared() {
    if (!LookAWhile([this] { return mutex_.try_lock_shared(); })) mutex_.lock_shared();
  }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  static constexpr std::chrono::microseconds kPatience{10};  // chosen: longer than most sections, shorter than waking
  static constexpr int kPausesBetween = 10;                  // chosen

  template <typename Try>
  static bool LookAWhile(const Try& taken) {
    if (taken()) return true;
    const auto until = std::chrono::steady_clock::now() + kPatience;
    do {
      for (int i = 0; i < kPausesBetween; ++i) Pause();
      if (taken()) return true;
    } while (std::chrono::steady_clock::now() < until);
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
