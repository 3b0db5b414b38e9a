// SPDX-License-Identifier: Apache-2.0
// SharedTable: equal values held once, under small ids that are reference-counted.
//
// Enters:  the hash of a value, how to tell it from others, and how to make it where it is new.
// Leaves:  ids; the values, which never change and which copies of the table share.
// Units:   none.
// Cost:    one look-up by hash a Hold; about 70 bytes a distinct value besides itself.
// Thread class: value with one writer; readers share freely while nobody writes.
#ifndef HORUS_BASE_SHARED_TABLE_H_
#define HORUS_BASE_SHARED_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/id_map.h"

namespace horus {

// A failed allocation leaves the table as it was.
template <typename T>
class SharedTable {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // The id of the value for which `same(value)` holds, all of which have that hash, with one holder more; where there
  // is none it is what `make()` returns.
  template <typename Same, typename Make>
  [[nodiscard]] uint32_t Hold(uint64_t hash, const Same& same, const Make& make) {
    for (const uint32_t* id = id_of_.Find(hash); id != nullptr; id = id_of_.Find(hash)) {
      if (same(at(*id))) {
        ++entries_[*id].holders;
        return *id;
      }
      hash = Mix64(hash);  // another value has this one
    }
    id_of_.ReserveOne();
    ReserveMore(entries_, 1);
    auto value = std::make_shared<const T>(make());
    // From here on nothing fails.
    uint32_t id = first_free_;
    if (id == kNone) {
      id = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      first_free_ = entries_[id].next_free;
    }
    id_of_.Insert(hash, id);
    entries_[id] = {.value = std::move(value), .hash = hash, .holders = 1};
    return id;
  }
  // One holder less; without any the value goes, and its id is used again.
  void Drop(uint32_t id) noexcept {
    if (--entries_[id].holders > 0) return;
    id_of_.Erase(entries_[id].hash);
    entries_[id] = Entry{.next_free = first_free_};
    first_free_ = id;
  }

  [[nodiscard]] const T& at(uint32_t id) const { return *entries_[id].value; }
  [[nodiscard]] const std::shared_ptr<const T>& shared(uint32_t id) const { return entries_[id].value; }
  [[nodiscard]] uint32_t holders(uint32_t id) const { return entries_[id].holders; }
  [[nodiscard]] uint32_t limit() const { return static_cast<uint32_t>(entries_.size()); }  // above every id in use
  // `behind(value)`: what a value holds outside of itself.
  template <typename Behind>
  [[nodiscard]] uint64_t bytes_held(const Behind& behind) const {
    uint64_t bytes = entries_.capacity() * sizeof(Entry) + id_of_.bytes_held();
    for (const Entry& entry : entries_) {
      if (entry.value != nullptr) bytes += sizeof(T) + behind(*entry.value);
    }
    return bytes;
  }

 private:
  struct Entry {
    std::shared_ptr<const T> value;  // null = free
    uint64_t hash = 0;               // under which it is in id_of_
    uint32_t holders = 0;
    uint32_t next_free = kNone;
  };
  std::vector<Entry> entries_;
  uint32_t first_free_ = kNone;
  IdMap<uint32_t> id_of_;  // by hash
};

}  // namespace horus

#endif  // HORUS_BASE_SHARED_TABLE_H_
