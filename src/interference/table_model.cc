// SPDX-License-Identifier: Apache-2.0
// A sorted array of measured pairs, and the sums over it.
#include "interference/table_model.h"

#include <bit>
#include <tuple>

#include "base/hash.h"
#include "base/status.h"
#include "base/text.h"
#include "base/vectors.h"
#include "interference/corrected_model.h"

namespace horus {
namespace {

absl::Status CheckEntry(const TableEntry& entry, size_t index) {
  if (!entry.type.valid()) return InvalidArgument("table[%d]: expected a GPU type, found none", index);
  if (!IsModelled(entry.mode))
    return InvalidArgument("table[%d]: unknown sharing mode %d", index, static_cast<int>(entry.mode));
  if (entry.victim == 0 || entry.other == 0) {
    return InvalidArgument("table[%d]: expected profile ids other than 0, found victim %d and other %d", index,
                           entry.victim, entry.other);
  }
  if (entry.slowdown >= kLeastMeasuredSlowdown && entry.slowdown <= kMostMeasuredSlowdown) return absl::OkStatus();
  return InvalidArgument("table[%d]: slowdown: expected a ratio from %g to %g, found %g", index, kLeastMeasuredSlowdown,
                         kMostMeasuredSlowdown, entry.slowdown);
}

template <typename Row>
auto KeyOf(const Row& row) {
  return std::tuple(row.victim, row.other, row.type, row.mode);
}

absl::Status CheckCount(const char* what, size_t found, size_t most) {
  if (found <= most) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "table model: expected at most %d %s, found %d", most, what,
                   found);
}

size_t TablesIn(const InterferenceModel* model) {
  for (size_t tables = 0;;) {
    if (const auto* table = dynamic_cast<const TableModel*>(model); table != nullptr) {
      model = &table->fallback();
      ++tables;
    } else if (const auto* corrected = dynamic_cast<const CorrectedModel*>(model); corrected != nullptr) {
      model = &corrected->beneath();
    } else {
      return tables;
    }
  }
}

}  // namespace

absl::Status CheckTableSize(size_t entries) { return CheckCount("entries", entries, kMostTableEntries); }

absl::StatusOr<std::shared_ptr<const TableModel>> TableModel::Create(std::span<const TableEntry> entries,
                                                                     std::shared_ptr<const InterferenceModel> fallback,
                                                                     double noise) {
  if (fallback == nullptr) return InvalidArgument("table model: expected a fallback, found none");
  if (!(noise >= 0 && noise <= kMostTableNoise))
    return InvalidArgument("table model: noise: expected a share from 0 to %g, found %g", kMostTableNoise, noise);
  HORUS_RETURN_IF_ERROR(CheckTableSize(entries.size()));
  std::vector<Row> rows;
  rows.reserve(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const TableEntry& entry = entries[i];
    HORUS_RETURN_IF_ERROR(CheckEntry(entry, i));
    const double slowdown = std::max(1.0, entry.slowdown);
    rows.push_back({entry.victim, entry.other, entry.type, entry.mode, static_cast<float>(slowdown),
                    static_cast<float>(std::max(slowdown * (1 + noise), entry.most))});
  }
  std::ranges::sort(rows, {}, [](const Row& row) { return std::tuple(KeyOf(row), row.slowdown); });
  for (size_t i = 1; i < rows.size(); ++i) {
    if (KeyOf(rows[i]) != KeyOf(rows[i - 1]) || rows[i].slowdown == rows[i - 1].slowdown) continue;
    return InvalidArgument(
        "table model: GPU type %d, %s, victim %016x beside %016x: expected one slowdown, found %g and %g",
        rows[i].type.value(), std::string(SharingModeName(rows[i].mode)), rows[i].victim, rows[i].other,
        rows[i - 1].slowdown, rows[i].slowdown);
  }
  const auto same = [](const Row& a, const Row& b) { return KeyOf(a) == KeyOf(b); };
  rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
  if (const auto* beneath = dynamic_cast<const TableModel*>(fallback.get()); beneath != nullptr) {
    rows.insert(rows.end(), beneath->rows_.begin(), beneath->rows_.end());
    const auto by_key = [](const Row& a, const Row& b) { return KeyOf(a) < KeyOf(b); };
    std::stable_sort(rows.begin(), rows.end(), by_key);  // ours before those beneath
    rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
    fallback = beneath->fallback_;
  }
  HORUS_RETURN_IF_ERROR(CheckTableSize(rows.size()));
  HORUS_RETURN_IF_ERROR(CheckCount("tables beneath", TablesIn(fallback.get()), kMostTablesBeneath));
  rows.shrink_to_fit();
  return std::shared_ptr<const TableModel>(new TableModel(std::move(rows), std::move(fallback)));
}

TableModel::TableModel(std::vector<Row> rows, std::shared_ptr<const InterferenceModel> fallback)
    : rows_(std::move(rows)), fallback_(std::move(fallback)) {
  uint64_t hash = CombineHash(Hash64(fallback_->name()), fallback_->epoch());
  for (const Row& row : rows_) {
    hash = CombineHash(CombineHash(hash, row.victim), row.other);
    hash = CombineHash(CombineHash(hash, row.type.value()), static_cast<uint64_t>(row.mode));
    hash = CombineHash(CombineHash(hash, std::bit_cast<uint32_t>(row.slowdown)), std::bit_cast<uint32_t>(row.upper));
  }
  epoch_ = hash;
}

const TableModel::Row* TableModel::Find(const DeviceContext& device, const Demand& victim, const Demand& other) const {
  if (victim.profile_id == 0 || other.profile_id == 0 || device.compute_share < 1) return nullptr;
  const auto key = std::tuple(victim.profile_id, other.profile_id, device.type, device.mode);
  return FindSorted(rows_, key, [](const Row& row) { return KeyOf(row); });
}

absl::Status TableModel::Predict(const DeviceContext& device, std::span<const Demand* const> tenants,
                                 std::span<Slowdown> out) const {
  const size_t count = tenants.size();
  HORUS_RETURN_IF_ERROR(CheckQuestion("table model", device, tenants, out.size()));
  std::vector<PairExcess> pairs(count * count);
  std::vector<const Demand*> unmeasured;  // the victim first
  std::vector<Slowdown> answers;
  for (size_t i = 0; i < count; ++i) {
    unmeasured.assign(1, tenants[i]);
    size_t last = 0;
    for (size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      if (const Row* row = Find(device, *tenants[i], *tenants[j])) {
        pairs[i * count + j] = CountExcess(row->slowdown, row->upper);
      } else {
        unmeasured.push_back(tenants[j]);
        last = j;
      }
    }
    if (unmeasured.size() == 1) continue;
    answers.resize(unmeasured.size());
    HORUS_RETURN_IF_ERROR(fallback_->Predict(device, unmeasured, answers));
    // One of the pairs stands for all of them: only their sum counts.
    pairs[i * count + last] = CountExcess(answers[0].estimate, answers[0].upper);
  }
  SumPairs(pairs, out);
  return absl::OkStatus();
}

std::vector<uint8_t> TableModel::Measured(const DeviceContext& device, std::span<const Demand* const> tenants) const {
  const size_t count = tenants.size();
  std::vector<uint8_t> measured(count * count, 1);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      if (i != j) measured[i * count + j] = Find(device, *tenants[i], *tenants[j]) != nullptr ? 1 : 0;
    }
  }
  return measured;
}

void TableModel::CalibratedUpTo(const DeviceContext& device, std::span<const Demand* const> tenants,
                                std::span<float> up_to) const {
  std::fill(up_to.begin(), up_to.end(), 1.0f);
  std::vector<const Demand*> unmeasured;  // the victim first
  std::vector<float> beneath;             // of these
  for (size_t i = 0; i < tenants.size(); ++i) {
    unmeasured.assign(1, tenants[i]);
    for (size_t j = 0; j < tenants.size(); ++j) {
      if (i == j) continue;
      if (Find(device, *tenants[i], *tenants[j]) != nullptr) {
        up_to[i] = std::min(up_to[i], static_cast<float>(kUpperProbability));
      } else {
        unmeasured.push_back(tenants[j]);
      }
    }
    if (unmeasured.size() < 2) continue;
    beneath.resize(unmeasured.size());
    fallback_->CalibratedUpTo(device, unmeasured, beneath);
    up_to[i] = std::min(up_to[i], beneath[0]);
  }
}

size_t TableModel::bytes_held() const { return sizeof(*this) + rows_.capacity() * sizeof(Row); }

absl::StatusOr<std::vector<TableEntry>> TableEntriesOf(const PairSet& set, const Catalogue& catalogue) {
  // Device, profiles of victim and other: campaign, slowdown.
  std::map<std::tuple<uint32_t, uint64_t, uint64_t>, std::map<uint32_t, double>> found;
  for (const PairRow& row : RowsOf(set)) {
    const auto key = std::tuple(row.device, set.jobs[row.victim].profile_id, set.jobs[row.other].profile_id);
    if (std::get<1>(key) == 0 || std::get<2>(key) == 0) continue;
    const auto [at, fresh] = found[key].emplace(row.campaign, row.slowdown);
    if (fresh || at->second == row.slowdown) continue;
    return InvalidArgument("%s: slowdown of %s beside %s: expected %g as measured before in campaign %s, found %g",
                           set.runs[row.run].where, Quoted(set.jobs[row.victim].name), Quoted(set.jobs[row.other].name),
                           at->second, Quoted(set.runs[row.run].campaign), row.slowdown);
  }
  std::vector<TableEntry> entries;
  for (const auto& [key, campaigns] : found) {
    const auto& [device, victim, other] = key;
    const absl::StatusOr<GpuTypeId> type = catalogue.Find(set.devices[device].gpu);
    if (!type.ok()) continue;
    double mean = 0, most = 0;
    for (const auto& [campaign, slowdown] : campaigns) {
      mean += slowdown / static_cast<double>(campaigns.size());
      most = std::max(most, slowdown);
    }
    entries.push_back({.type = *type,
                       .mode = set.devices[device].mode,
                       .victim = victim,
                       .other = other,
                       .slowdown = mean,
                       .most = most});
  }
  return entries;
}

}  // namespace horus
