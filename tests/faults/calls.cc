// SPDX-License-Identifier: Apache-2.0
// The allocator that fails when told to, and what must hold after a call that met it.
//
// HORUS_FAULTS_EACH (default 48; 0 = all): so many allocations of a call fail one by one, later ones in growing steps.
// HORUS_FAULTS_CALLS (default 400; 0 = all): so many calls of a function are tried; later ones just run.
// HORUS_FAULTS_JUST_RUN: names of functions, by spaces, whose calls are not tried; "callbacks": calls with one.
// HORUS_FAULTS_SPARE: parts of names of libraries or functions, by spaces: nothing fails that they or theirs ask for.
// HORUS_FAULTS_NONE=1: nothing fails.
// HORUS_FAULTS_REPORT: a file that gets a line for each function: its name, calls, allocations failed; and last the
// number of blocks that were never freed.
#include "calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <vector>

// The C library's own, which it exports so that malloc and its like can be defined anew.
extern "C" {
void* __libc_malloc(size_t size) noexcept;
void* __libc_calloc(size_t count, size_t size) noexcept;
void* __libc_realloc(void* memory, size_t size) noexcept;
}

namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

thread_local size_t left = kNever;  // allocations of this thread until one fails
thread_local size_t asked = 0;      // allocations of this thread since a call began
thread_local bool threw = false;    // one failed, by exception
thread_local int depth = 0;         // calls of ours within calls of ours: from callbacks

struct Counts {
  size_t calls = 0;
  size_t failed = 0;
};

// What the checker itself holds comes from malloc alone, so that it never fails.
struct Ledger {
  std::mutex mutex;
  std::map<std::string, Counts> counts;
  int problems = 0;
};
Ledger& TheLedger() {
  static Ledger* ledger = new Ledger;
  return *ledger;
}

size_t Setting(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  const size_t value = text == nullptr || *text == 0 ? otherwise : std::strtoull(text, nullptr, 10);
  return value == 0 ? kNever : value;
}
const size_t each = Setting("HORUS_FAULTS_EACH", 48);
const size_t calls_tried = Setting("HORUS_FAULTS_CALLS", 400);
const bool none = std::getenv("HORUS_FAULTS_NONE") != nullptr;
std::atomic<int64_t> held = 0;  // blocks

// The words of a setting; read before the program begins, while nothing fails.
std::vector<std::string>* Words(const char* setting) {
  auto* words = new std::vector<std::string>;
  const char* const text = std::getenv(setting);
  std::istringstream in(text == nullptr ? "" : text);
  for (std::string word; in >> word;) words->push_back(word);
  return words;
}
const std::vector<std::string>& spared = *Words("HORUS_FAULTS_SPARE");

// Whether one of the spared libraries or functions asks, itself or through another's code.
bool Spared() {
  if (spared.empty()) return false;
  constexpr int kFrames = 128;
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  for (int i = 0; i < count; ++i) {
    Dl_info info = {};
    if (dladdr(frames[i], &info) == 0) continue;
    for (const char* const name : {info.dli_fname, info.dli_sname})
      for (const std::string& part : spared)
        if (name != nullptr && std::strstr(name, part.c_str()) != nullptr) return true;
  }
  return false;
}

bool JustRuns(const char* name) {
  const char* const names = std::getenv("HORUS_FAULTS_JUST_RUN");
  return names != nullptr && (std::string(" ") + names + " ").find(std::string(" ") + name + " ") != std::string::npos;
}

void Problem(const Trial& trial, const char* what) {
  std::fprintf(stderr, "%s, allocation %zu failing: %s\n", trial.function->name, trial.at, what);
  ++TheLedger().problems;
}

bool Fails() {
  ++asked;
  if (left == kNever) return false;
  if (left > 0) return --left, false;
  return !Spared();
}

void* AllocateOrNull(size_t size) {
  if (Fails()) return nullptr;
  ++held;
  return __libc_malloc(size > 0 ? size : 1);  // jumped to from here, malloc would see our caller
}

void* Allocate(size_t size) {
  if (void* memory = AllocateOrNull(size)) return memory;
  threw = true;
  throw std::bad_alloc();
}

void* AllocateAligned(size_t size, std::align_val_t alignment) {
  void* memory = nullptr;
  if (!Fails() && posix_memalign(&memory, static_cast<size_t>(alignment), size) == 0) {
    ++held;
    return memory;
  }
  threw = true;
  throw std::bad_alloc();
}

void Free(void* memory) {
  if (memory != nullptr) --held;
  std::free(memory);
}

// Whether an allocation by malloc fails. Those of our libraries' own code may (Eigen asks in it); others' are answered
// by whoever asked.
bool MallocFails(const void* asks) {
  dl_find_object found = {};
  if (_dl_find_object(const_cast<void*>(asks), &found) != 0) return false;
  const char* const name = found.dlfo_link_map->l_name;
  if (std::strstr(name, "/libhorus") == nullptr || !Fails()) return false;
  threw = true;  // what Eigen does then
  errno = ENOMEM;
  return true;
}

// The library's allocations do not fail and are not counted meanwhile.
class Quiet {
 public:
  Quiet() : left_(left), asked_(asked) { left = kNever; }
  ~Quiet() {
    left = left_;
    asked = asked_;
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  size_t left_;
  size_t asked_;
};

using GetInfo = horus_status (*)(const horus_cluster*, horus_cluster_info*, horus_error*);

horus_cluster_info InfoOf(const horus_cluster* cluster) {
  static Function get_info = {};
  horus_cluster_info info = HORUS_CLUSTER_INFO_INIT;
  const auto real = reinterpret_cast<GetInfo>(Find(&get_info, "horus_cluster_get_info"));
  if (cluster != nullptr) (void)real(cluster, &info, nullptr);
  return info;
}

// The error that the caller gave, if there is room for one.
bool HasError(const Trial& trial) { return trial.error != nullptr && trial.error->struct_size == sizeof(horus_error); }

void CheckNothingHappened(Trial& trial) {
  for (size_t i = 0; i < trial.output_count; ++i) {
    const Output& output = trial.outputs[i];
    if (output.size > 0 && std::memcmp(output.bytes, trial.before[i], output.size) != 0)
      Problem(trial, "an output was written");
  }
  const horus_cluster_info info = InfoOf(trial.cluster);
  if (info.state_hash != trial.info.state_hash || info.jobs != trial.info.jobs || info.slots != trial.info.slots) {
    Problem(trial, "the cluster changed");
  }
  if (!HasError(trial)) return;
  if (trial.error->status != HORUS_ERR_NO_MEMORY || trial.error->message[0] == '\0')
    Problem(trial, "the error does not say so");
  *trial.error = trial.error_before;
}

size_t NextAt(size_t at) { return at < each ? at + 1 : at + 1 + at / each * 4; }

void Finish(Trial& trial) {
  for (size_t i = 0; i < trial.output_count; ++i) std::free(trial.before[i]);
  --depth;
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) { return AllocateAligned(size, alignment); }
void* operator new[](size_t size, std::align_val_t alignment) { return AllocateAligned(size, alignment); }
// std::stable_sort asks this one, and does without.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { Free(memory); }

extern "C" {
void* malloc(size_t size) noexcept { return MallocFails(__builtin_return_address(0)) ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) noexcept {
  return MallocFails(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  return MallocFails(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}
}

void (*Find(Function* function, const char* name))() {
  if (function->real != nullptr) return function->real;
  const Quiet quiet;
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  function->name = name;
  std::memcpy(&function->real, &found, sizeof found);
  return function->real;
}

size_t StructBytes(const void* first, size_t size, size_t count) {
  if (first == nullptr || count == 0) return 0;
  uint32_t stated = 0;
  std::memcpy(&stated, first, sizeof stated);
  if (stated != size) return stated < size ? stated : size;
  return size * count;
}

void Begin(Trial* trial, Function* function, size_t output_count, const Output* outputs, const horus_cluster* cluster,
           bool calls_back, horus_error* error) {
  *trial = Trial{};
  trial->function = function;
  trial->outermost = depth++ == 0;
  if (!trial->outermost) {
    trial->at = left;
    left = kNever;
    return;
  }
  if (output_count > kMaxOutputs) std::abort();
  trial->cluster = cluster;
  trial->info = InfoOf(cluster);
  trial->error = error;
  if (HasError(*trial)) trial->error_before = *error;
  trial->outputs = outputs;
  trial->output_count = output_count;
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i].size == 0) continue;
    trial->before[i] = static_cast<unsigned char*>(std::malloc(outputs[i].size));
    std::memcpy(trial->before[i], outputs[i].bytes, outputs[i].size);
  }
  const std::scoped_lock lock(TheLedger().mutex);
  trial->last = ++TheLedger().counts[function->name].calls > calls_tried || none || JustRuns(function->name) ||
                (calls_back && JustRuns("callbacks"));
}

void Arm(Trial* trial) {
  if (!trial->outermost) return;
  threw = false;
  left = trial->last ? kNever : trial->at;
}

bool Again(Trial* trial, horus_status status) {
  if (!trial->outermost) {
    left = trial->at;
    return --depth, false;
  }
  left = kNever;
  if (trial->last || !threw) {
    if (trial->refused != HORUS_OK && status != trial->refused)
      Problem(*trial, "a failed allocation has another status");
    return Finish(*trial), false;
  }
  {
    const std::scoped_lock lock(TheLedger().mutex);
    ++TheLedger().counts[trial->function->name].failed;
  }
  if (status == HORUS_OK) return Finish(*trial), false;  // it did without
  if (status == HORUS_ERR_NO_MEMORY) {
    CheckNothingHappened(*trial);
    trial->at = NextAt(trial->at);
  } else {
    trial->refused = status;  // which it must answer with memory, too
    trial->last = true;
    if (HasError(*trial)) *trial->error = trial->error_before;
  }
  return true;
}

bool BeginPlain(Function*) {
  asked = 0;
  return depth++ == 0;
}

void EndPlain(Function* function, bool outermost) {
  const size_t found = asked;
  --depth;
  if (!outermost) return;
  const std::scoped_lock lock(TheLedger().mutex);
  ++TheLedger().counts[function->name].calls;
  if (found == 0) return;
  std::fprintf(stderr, "%s allocated %zu times and cannot say that it failed\n", function->name, found);
  ++TheLedger().problems;
}

namespace {

__attribute__((destructor)) void Report() {
  const Ledger& ledger = TheLedger();
  if (const char* path = std::getenv("HORUS_FAULTS_REPORT")) {
    if (std::FILE* file = std::fopen(path, "w")) {
      for (const auto& [name, counts] : ledger.counts)
        std::fprintf(file, "%s %zu %zu\n", name.c_str(), counts.calls, counts.failed);
      std::fprintf(file, "held %lld\n", static_cast<long long>(held.load()));
      std::fclose(file);
    }
  }
  if (ledger.problems == 0) return;
  std::fprintf(stderr, "%d problems under failing allocations\n", ledger.problems);
  std::fflush(stderr);
  std::_Exit(1);
}

}  // namespace
