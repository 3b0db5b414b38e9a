// SPDX-License-Identifier: Apache-2.0
// NameTable: numbers by name, for names that are held elsewhere. A failed allocation leaves it as it was.
//
// Enters:  names as a file has them, and `name_of(number)`, which reads the name of a number that is in the table.
// Leaves:  the number of a name. There is no order and no iteration.
// Units:   none.
// Cost:    one hash and mostly one comparison a call.     Thread class: one thread at a time.
#ifndef HORUS_GRAPH_NAME_TABLE_H_
#define HORUS_GRAPH_NAME_TABLE_H_

#include <cstdint>
#include <string_view>

#include "base/id_map.h"
#include "base/seeded_hash.h"

namespace horus {

class NameTable {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  template <typename NameOf>
  [[nodiscard]] uint32_t Find(std::string_view name, const NameOf& name_of) {
    // Seeded in each process: who writes a file cannot make its names collide. Where two do, the next place is free.
    for (place_ = SeededHash()(name);; ++place_) {
      const uint32_t* number = numbers_.Find(place_);
      if (number == nullptr) return kNone;
      if (name_of(*number) == name) return *number;
    }
  }

  // Room for one more: the next Add allocates nothing.
  void ReserveOne() { numbers_.ReserveOne(); }
  // For the name that Find did not know just now.
  void Add(uint32_t number) { numbers_.Insert(place_, number); }

 private:
  IdMap<uint32_t> numbers_;
  uint64_t place_ = 0;
};

}  // namespace horus

#endif  // HORUS_GRAPH_NAME_TABLE_H_
