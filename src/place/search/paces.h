// SPDX-License-Identifier: Apache-2.0
// Paces: how much each device slows a GPU of a class of gangs, coarsely, kept until the device changes. Gangs
// over nodes look only at nodes that hold enough of them.
//
// Enters:  a ledger, a scorer with the current job.
// Leaves:  a byte a device, which never says more than its slowdown.
// Cost:    a new class judges every device, a known one those that changed; 1 byte a device for each class.
// Thread class: one thread at a time.
#ifndef HORUS_PLACE_SEARCH_PACES_H_
#define HORUS_PLACE_SEARCH_PACES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/id_map.h"
#include "place/search/scorer.h"
#include "place/state/ledger.h"

namespace horus {

class DevicePaces {
 public:
  static constexpr uint8_t kNever = 127;  // the device takes no GPU of the class

  explicit DevicePaces(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // By device of the ledger, valid until the next call. `timed` = false: 0 where the device takes a GPU of the class,
  // at whatever speed.
  [[nodiscard]] absl::StatusOr<std::span<const uint8_t>> Of(const Ledger& ledger, Scorer& scorer, const JobView& view,
                                                            bool timed);
  // Whether the class came before and looked at many nodes without its paces: those of a class that never comes again,
  // or looks at few, cost more than they save.
  [[nodiscard]] bool Pays(const Scorer& scorer, const JobView& view);
  void LookedAt(const JobView& view, size_t nodes, size_t of);

  // The largest byte of a device that slows a GPU by at most `slowdown`.
  [[nodiscard]] static uint8_t Within(double slowdown);
  // Number of bytes that are at most `most`, which is below kNever.
  [[nodiscard]] static int32_t Count(std::span<const uint8_t> paces, uint8_t most);

  [[nodiscard]] uint64_t bytes_held() const {
    return of_class_.bytes_held() + pays_.bytes_held() + bytes_ + last_change_.capacity() * sizeof(uint64_t);
  }

 private:
  struct Table {
    uint64_t generation = 0;  // of the ledger; 0 = not whole
    uint64_t seen = 0;        // of its changes
    std::vector<uint8_t> paces;
  };
  [[nodiscard]] absl::Status Update(const Ledger& ledger, Scorer& scorer, const JobView& view, bool timed,
                                    uint32_t begin, uint32_t end, uint64_t change, Table& table);

  void Follow(const Scorer& scorer);
  [[nodiscard]] Table& TableOf(uint64_t key, uint64_t bytes);

  uint64_t most_bytes_;  // above it the class that came least recently is dropped
  uint64_t bytes_ = 0;
  uint64_t epoch_ = 0;                 // of the model
  std::vector<uint64_t> keys_;         // of the classes, the one that came last at the end
  std::vector<uint64_t> last_change_;  // scratch, by device
  IdMap<std::unique_ptr<Table>> of_class_;
  IdMap<bool> pays_;  // by JobView::digest
};

}  // namespace horus

#endif  // HORUS_PLACE_SEARCH_PACES_H_
