// SPDX-License-Identifier: Apache-2.0
// Writes a bundle, and answers the small questions about one in memory.
#include <cmath>

#include "base/bytes.h"
#include "base/hash.h"
#include "trees/bundle.h"
#include "trees/bundle_check.h"
#include "trees/bundle_format.h"

namespace horus {
namespace {

using namespace bundle_format;

void AppendSeries(ByteWriter& out, std::span<const NamedSeries> all) {
  out.U32(static_cast<uint32_t>(all.size()));
  for (const NamedSeries& series : all) {
    out.Text(series.name);
    out.U32(static_cast<uint32_t>(series.values.size()));
    for (const double value : series.values) out.F64(value);
  }
}

std::string ManifestBytes(const Bundle& bundle) {
  ByteWriter out;
  out.U64(bundle.schema_hash);
  out.U64(bundle.data_fingerprint);
  out.Text(bundle.library_version);
  out.Text(bundle.training_summary);
  AppendSeries(out, bundle.series);
  out.U32(static_cast<uint32_t>(bundle.targets.size()));
  for (const BundleTarget& target : bundle.targets) {
    out.Text(target.name);
    out.U32(static_cast<uint32_t>(target.link));
    AppendSeries(out, target.calibration);
  }
  return out.bytes();
}

std::string ForestBytes(const ForestData& forest) {
  ByteWriter out;
  out.U32(forest.num_features);
  out.F32(forest.base_score);
  out.U32(static_cast<uint32_t>(forest.tree_sizes.size()));
  out.U32(static_cast<uint32_t>(forest.nodes.size()));
  for (const uint32_t size : forest.tree_sizes) out.U32(size);
  for (const TreeNode& node : forest.nodes) {
    out.U32(node.split);
    out.F32(node.value);
    out.F32(node.cover);
  }
  return out.bytes();
}

}  // namespace

absl::StatusOr<std::string> WriteBundle(const Bundle& bundle, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckBundle(bundle, limits));
  std::vector<std::string> sections = {ManifestBytes(bundle)};
  for (const BundleTarget& target : bundle.targets) sections.push_back(ForestBytes(target.forest));

  std::string table;
  // Bounded: sections are in memory.
  uint64_t total = kHeaderBytes + kTableEntryBytes * sections.size();
  for (const std::string& section : sections) {
    AppendLittleEndian<uint64_t>(table, section.size());
    AppendLittleEndian<uint64_t>(table, Hash64(section));
    total += section.size();
  }
  if (total > limits.max_bytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "bundle: %d bytes, the limit is %d", total,
                     limits.max_bytes);
  }
  std::string out(kMagic);
  out.reserve(total);
  AppendLittleEndian<uint32_t>(out, kBundleFormatVersion);
  AppendLittleEndian<uint32_t>(out, static_cast<uint32_t>(sections.size()));
  AppendLittleEndian<uint64_t>(out, total);
  AppendLittleEndian<uint64_t>(out, Hash64(out + table));
  out += table;
  for (const std::string& section : sections) out += section;
  return out;
}

double ApplyLink(Link link, double margin) {
  switch (link) {
    case Link::kIdentity:
      return margin;
    case Link::kExp:
      return std::exp(margin);
    case Link::kExpm1:
      return std::expm1(margin);
  }
  return margin;
}

const NamedSeries* FindSeries(std::span<const NamedSeries> series, std::string_view name) {
  for (const NamedSeries& one : series) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

const BundleTarget* Bundle::FindTarget(std::string_view name) const {
  for (const BundleTarget& target : targets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace horus
