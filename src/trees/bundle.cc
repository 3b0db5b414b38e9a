// SPDX-License-Identifier: Apache-2.0
// Bundles to bytes, and from untrusted ones: every count is checked against the bytes present before it is used.
#include "trees/bundle.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"

namespace horus {
namespace {

// ---- The layout of a file. Sizes are in bytes; all numbers are little-endian.

// A plain sectioned format and no protobuf: the whole of it is the list below, every size can be checked
// against the bytes present before anything is allocated, and one value has exactly one encoding, so
// that files can be compared byte by byte.
//
//   header    8  magic
//             4  format version
//             4  number of sections: 1 + targets
//             8  size of the file
//             8  XXH3 of the 24 bytes above and of the section table
//   table     for each section:  8 size   8 XXH3 of its bytes
//   section 0, the manifest
//             8  schema hash        8  data fingerprint
//             text library version  text training summary    (text: 4 size, then its bytes)
//             series list           (4 count; each: text name, 4 count, 8 a value as float64)
//             4  targets; each: text name, 4 link, series list
//   section i, the forest of target i - 1
//             4  features           4  base score (float32)
//             4  trees              4  nodes
//             4  for each tree: its nodes
//             12 for each node, in pre-order: 4 split, 4 value (float32), 4 cover (float32);
//                the right child is not stored: pre-order implies it
//
// Sections follow each other without gaps, in the order of the table. XXH3 finds damage, not forgery.
constexpr std::string_view kMagic = "HORUSBDL";
constexpr size_t kChecksumAt = 24;  // of the header checksum; what lies before it is covered
constexpr size_t kHeaderBytes = 32;
constexpr size_t kTableEntryBytes = 16;
constexpr size_t kForestHeaderBytes = 16;
constexpr size_t kTreeBytes = 4;
constexpr size_t kNodeBytes = 12;
constexpr size_t kSeriesMinBytes = 8;   // an empty name and no values
constexpr size_t kTargetMinBytes = 12;  // an empty name, a link and no series

// ---- The rules that every bundle keeps.

absl::Status CheckSize(std::string_view what, size_t size, size_t limit, std::string_view unit) {
  if (size <= limit) return absl::OkStatus();
  return ResourceExhausted("bundle: %s: %d %s, the limit is %d", what, size, unit, limit);
}

absl::Status CheckName(std::string_view what, std::string_view name, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckSize(what, name.size(), limits.max_name_bytes, "bytes of name"));
  bool printable = !name.empty();
  for (const char c : name) printable = printable && c > ' ' && c <= '~';
  if (printable) return absl::OkStatus();
  return DataLoss("bundle: %s: expected a name of printable ASCII without spaces, found %s", what, Quoted(name));
}

absl::Status CheckSeries(std::string_view owner, std::span<const NamedSeries> all, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckSize(owner, all.size(), limits.max_series, "series"));
  for (const NamedSeries& series : all) {
    HORUS_RETURN_IF_ERROR(CheckName(owner, series.name, limits));
    HORUS_RETURN_IF_ERROR(CheckSize(series.name, series.values.size(), limits.max_series_values, "values"));
    if (FindSeries(all, series.name) != &series)
      return DataLoss("bundle: %s: the series %s occurs twice", owner, Quoted(series.name));
    for (size_t i = 0; i < series.values.size(); ++i) {
      if (!std::isnan(series.values[i])) continue;
      return DataLoss("bundle: %s: series %s value %d: expected a number, found NaN", owner, Quoted(series.name), i);
    }
  }
  return absl::OkStatus();
}

// Of the plain values of a forest: they are whole trees within limits, before anything walks them.
absl::Status CheckNode(const ForestData& data, size_t tree, size_t at, const TreeNode& node, size_t tree_size) {
  if (!std::isfinite(node.value)) {
    return DataLoss("tree %d node %d: expected a finite %s, found %g", tree, at,
                    node.is_leaf() ? "leaf value" : "threshold", node.value);
  }
  if (!std::isfinite(node.cover) || node.cover < 0)
    return DataLoss("tree %d node %d: expected a cover of 0 or more, found %g", tree, at, node.cover);
  if (node.is_leaf()) {
    if (node.right == 0) return absl::OkStatus();
    return DataLoss("tree %d node %d: a leaf has a right child, %d", tree, at, node.right);
  }
  if (node.feature() >= data.num_features)
    return DataLoss("tree %d node %d: splits on feature %d of %d", tree, at, node.feature(), data.num_features);
  // Bounded: at is a position in the tree.
  if (node.right <= at + 1 || node.right >= tree_size) {
    return DataLoss("tree %d node %d: expected a right child between %d and %d, found %d", tree, at, at + 2,
                    tree_size - 1, node.right);
  }
  return absl::OkStatus();
}

// In pre-order a leaf is followed by the right child of the nearest open split, which a stack of open
// splits tells; so every node is reached exactly once, and cycles and orphans cannot hide.
absl::Status CheckTree(const ForestData& data, size_t tree, std::span<const TreeNode> nodes, uint32_t max_depth) {
  struct Open {
    uint32_t right, depth;  // a child not yet reached, and how deep it lies
  };
  std::vector<Open> open;
  open.reserve(max_depth);
  uint32_t depth = 0;
  for (size_t at = 0; at < nodes.size(); ++at) {
    const TreeNode& node = nodes[at];
    HORUS_RETURN_IF_ERROR(CheckNode(data, tree, at, node, nodes.size()));
    if (!node.is_leaf()) {
      if (++depth > max_depth)
        return ResourceExhausted("tree %d node %d: deeper than the limit of %d splits", tree, at, max_depth);
      open.push_back({node.right, depth});
      continue;
    }
    if (open.empty()) {
      if (at + 1 == nodes.size()) return absl::OkStatus();
      return DataLoss("tree %d: ends at node %d, but has %d nodes", tree, at, nodes.size());
    }
    if (open.back().right != at + 1)
      return DataLoss("tree %d: expected node %d to be a right child, found %d named", tree, at + 1, open.back().right);
    depth = open.back().depth;
    open.pop_back();
  }
  return DataLoss("tree %d: its %d nodes end inside the tree", tree, nodes.size());
}

absl::Status CheckTarget(const Bundle& bundle, const BundleTarget& target, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckName("target", target.name, limits));
  if (bundle.FindTarget(target.name) != &target)
    return DataLoss("bundle: the target %s occurs twice", Quoted(target.name));
  if (static_cast<uint32_t>(target.link) >= kLinkCount) {
    return DataLoss("bundle: target %s: expected a link below %d, found %d", Quoted(target.name), kLinkCount,
                    static_cast<uint32_t>(target.link));
  }
  HORUS_RETURN_IF_ERROR(CheckSeries(target.name, target.calibration, limits));
  if (const absl::Status status = ValidateForest(target.forest, limits.forest); !status.ok())
    return MakeError(status.code(), "bundle: target %s: %s", Quoted(target.name), status.message());
  return absl::OkStatus();
}

absl::Status CheckBundle(const Bundle& bundle, const BundleLimits& limits) {
  HORUS_RETURN_IF_ERROR(CheckSize("manifest", bundle.targets.size(), limits.max_targets, "targets"));
  HORUS_RETURN_IF_ERROR(CheckSize("library version", bundle.library_version.size(), limits.max_name_bytes, "bytes"));
  HORUS_RETURN_IF_ERROR(CheckSize("training summary", bundle.training_summary.size(), limits.max_text_bytes, "bytes"));
  HORUS_RETURN_IF_ERROR(CheckSeries("manifest", bundle.series, limits));
  for (const BundleTarget& target : bundle.targets) HORUS_RETURN_IF_ERROR(CheckTarget(bundle, target, limits));
  return absl::OkStatus();
}

// ---- Reads a bundle.

using Bytes = std::span<const uint8_t>;

absl::Status Damaged(std::string_view what, uint64_t expected, uint64_t found) {
  return DataLoss("bundle: %s: expected %d, found %d", what, expected, found);
}

absl::Status CheckChecksum(std::string_view what, uint64_t expected, uint64_t found) {
  if (expected == found) return absl::OkStatus();
  return DataLoss("bundle: %s: damaged: expected the checksum %016x, found %016x", what, expected, found);
}

absl::Status CheckCount(std::string_view what, uint64_t count, uint64_t limit, uint64_t each_bytes, size_t left) {
  if (count > limit) return ResourceExhausted("bundle: %s: %d, the limit is %d", what, count, limit);
  if (count > left / each_bytes) {
    // Bounded: for a message: count was read as 32 bits.
    return DataLoss("bundle: %s: %d need at least %d bytes, %d are left", what, count, count * each_bytes, left);
  }
  return absl::OkStatus();
}

// The sections of a file whose header and table are sound.
absl::StatusOr<std::vector<Bytes>> ReadSections(Bytes file, const BundleLimits& limits) {
  const std::string_view magic(reinterpret_cast<const char*>(file.data()), std::min(file.size(), kMagic.size()));
  if (magic != kMagic) {
    constexpr size_t kTelling = 512;  // bytes; more are not looked at
    const bool text = IsText({reinterpret_cast<const char*>(file.data()), std::min(file.size(), kTelling)});
    return DataLoss("not a model bundle: expected it to start with %s, found %s%s", Quoted(kMagic),
                    text ? "a text file: " : "", Quoted(magic));
  }
  ByteReader header(file.subspan(kMagic.size()));
  const uint32_t version = header.U32();
  if (header.ok() && version > kBundleFormatVersion) {
    return MakeError(absl::StatusCode::kOutOfRange,
                     "bundle: format version %d is newer than version %d, the newest that this library reads", version,
                     kBundleFormatVersion);
  }
  const uint32_t count = header.U32();
  const uint64_t total = header.U64();
  const uint64_t checksum = header.U64();
  if (!header.ok()) return Damaged("bytes of header", kHeaderBytes, file.size());
  if (version == 0) return Damaged("format version", kBundleFormatVersion, version);
  if (total != file.size()) return Damaged("bytes of file", total, file.size());
  if (total > limits.max_bytes) return ResourceExhausted("bundle: %d bytes, the limit is %d", total, limits.max_bytes);
  if (count == 0) return Damaged("sections", 1, count);
  HORUS_RETURN_IF_ERROR(
      CheckCount("sections", count, uint64_t{limits.max_targets} + 1, kTableEntryBytes, header.left()));
  // Bounded: CheckCount: what is counted is left in the file.
  const Bytes table_bytes = file.subspan(kHeaderBytes, count * kTableEntryBytes);
  std::string covered(reinterpret_cast<const char*>(file.data()), kChecksumAt);
  covered.append(reinterpret_cast<const char*>(table_bytes.data()), table_bytes.size());
  HORUS_RETURN_IF_ERROR(CheckChecksum("header", checksum, Hash64(covered)));

  std::vector<Bytes> sections;
  ByteReader table(table_bytes);
  Bytes rest = file.subspan(kHeaderBytes + table_bytes.size());
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t size = table.U64();
    const uint64_t expected = table.U64();
    if (size > rest.size()) return Damaged(Formatted("bytes of section %d", i), size, rest.size());
    sections.push_back(rest.first(size));
    rest = rest.subspan(size);
    HORUS_RETURN_IF_ERROR(CheckChecksum(Formatted("section %d", i), expected, Hash64(sections.back().data(), size)));
  }
  if (!rest.empty()) return Damaged("bytes after the last section", 0, rest.size());
  return sections;
}

absl::Status ReadText(ByteReader& in, std::string_view what, size_t limit, std::string& out) {
  const std::string_view text = in.Text();
  if (!in.ok()) return DataLoss("bundle: manifest: ends inside the %s", what);
  if (text.size() > limit) return ResourceExhausted("bundle: %s: %d bytes, the limit is %d", what, text.size(), limit);
  out = text;
  return absl::OkStatus();
}

absl::Status ReadSeries(ByteReader& in, const BundleLimits& limits, std::vector<NamedSeries>& out) {
  const uint32_t count = in.U32();
  HORUS_RETURN_IF_ERROR(CheckCount("series", count, limits.max_series, kSeriesMinBytes, in.left()));
  for (uint32_t i = 0; i < count; ++i) {
    NamedSeries& series = out.emplace_back();
    HORUS_RETURN_IF_ERROR(ReadText(in, "name of a series", limits.max_name_bytes, series.name));
    const uint32_t values = in.U32();
    HORUS_RETURN_IF_ERROR(
        CheckCount("values of a series", values, limits.max_series_values, sizeof(double), in.left()));
    series.values.reserve(values);
    for (uint32_t v = 0; v < values; ++v) series.values.push_back(in.F64());
  }
  return absl::OkStatus();
}

absl::Status ReadManifest(Bytes section, const BundleLimits& limits, Bundle& bundle) {
  ByteReader in(section);
  bundle.schema_hash = in.U64();
  bundle.data_fingerprint = in.U64();
  HORUS_RETURN_IF_ERROR(ReadText(in, "library version", limits.max_name_bytes, bundle.library_version));
  HORUS_RETURN_IF_ERROR(ReadText(in, "training summary", limits.max_text_bytes, bundle.training_summary));
  HORUS_RETURN_IF_ERROR(ReadSeries(in, limits, bundle.series));
  const uint32_t targets = in.U32();
  HORUS_RETURN_IF_ERROR(CheckCount("targets", targets, limits.max_targets, kTargetMinBytes, in.left()));
  for (uint32_t i = 0; i < targets; ++i) {
    BundleTarget& target = bundle.targets.emplace_back();
    HORUS_RETURN_IF_ERROR(ReadText(in, "name of a target", limits.max_name_bytes, target.name));
    target.link = static_cast<Link>(in.U32());
    HORUS_RETURN_IF_ERROR(ReadSeries(in, limits, target.calibration));
  }
  if (!in.ok()) return DataLoss("bundle: manifest: ends too early");
  if (in.left() != 0) return Damaged("bytes after the manifest", 0, in.left());
  return absl::OkStatus();
}

// Restores the right children of one tree in pre-order. Whether it is whole is for ValidateForest to say.
void LinkRightChildren(std::span<TreeNode> tree, std::vector<uint32_t>& open) {
  open.clear();
  for (uint32_t at = 0; at < tree.size(); ++at) {
    if (!tree[at].is_leaf()) {
      open.push_back(at);
    } else if (!open.empty()) {
      tree[open.back()].right = at + 1;
      open.pop_back();
    }
  }
}

absl::Status ReadForest(Bytes section, const BundleLimits& limits, ForestData& forest) {
  ByteReader in(section);
  forest.num_features = in.U32();
  forest.base_score = in.F32();
  const uint32_t trees = in.U32();
  const uint32_t nodes = in.U32();
  if (!in.ok()) return Damaged("bytes of a forest's header", kForestHeaderBytes, section.size());
  HORUS_RETURN_IF_ERROR(CheckCount("trees", trees, limits.forest.max_trees, kTreeBytes, in.left()));
  // Bounded: CheckCount: what is counted is left in the file.
  HORUS_RETURN_IF_ERROR(
      CheckCount("nodes", nodes, limits.forest.max_nodes, kNodeBytes, in.left() - trees * kTreeBytes));
  // Bounded: CheckCount: what is counted is left in the file.
  const uint64_t expected = trees * uint64_t{kTreeBytes} + nodes * uint64_t{kNodeBytes};
  if (in.left() != expected) return Damaged("bytes of trees and nodes", expected, in.left());
  forest.tree_sizes.resize(trees);
  for (uint32_t& size : forest.tree_sizes) size = in.U32();
  forest.nodes.resize(nodes);
  for (TreeNode& node : forest.nodes) {
    node.split = in.U32();
    node.value = in.F32();
    node.cover = in.F32();
  }
  std::span<TreeNode> rest(forest.nodes);
  std::vector<uint32_t> open;
  for (const uint32_t size : forest.tree_sizes) {
    if (size > rest.size()) break;  // ValidateForest says so
    LinkRightChildren(rest.first(size), open);
    rest = rest.subspan(size);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateForest(const ForestData& data, const ForestLimits& limits) {
  for (const auto& [size, limit, what] : {std::tuple(size_t{data.num_features}, limits.max_features, "features"),
                                          {data.tree_sizes.size(), limits.max_trees, "trees"},
                                          {data.nodes.size(), limits.max_nodes, "nodes"}}) {
    if (size > limit) return ResourceExhausted("forest: %d %s, the limit is %d", size, what, limit);
  }
  if (!std::isfinite(data.base_score))
    return DataLoss("forest: expected a finite base score, found %g", data.base_score);
  std::span<const TreeNode> rest(data.nodes);
  for (size_t tree = 0; tree < data.tree_sizes.size(); ++tree) {
    const size_t size = data.tree_sizes[tree];
    if (size > rest.size()) return DataLoss("tree %d: has %d nodes, but only %d are left", tree, size, rest.size());
    HORUS_RETURN_IF_ERROR(CheckTree(data, tree, rest.first(size), limits.max_depth));
    rest = rest.subspan(size);
  }
  if (!rest.empty()) return DataLoss("forest: %d nodes belong to no tree", rest.size());
  return absl::OkStatus();
}

absl::StatusOr<Bundle> ReadBundle(std::span<const uint8_t> bytes, const BundleLimits& limits,
                                  std::optional<uint64_t> expected_schema) {
  HORUS_ASSIGN_OR_RETURN(const std::vector<Bytes> sections, ReadSections(bytes, limits));
  Bundle bundle;
  HORUS_RETURN_IF_ERROR(ReadManifest(sections[0], limits, bundle));
  if (expected_schema.has_value() && bundle.schema_hash != *expected_schema) {
    return FailedPrecondition(
        "bundle: trained on the feature schema %016x, this library's is %016x (written by version %s); "
        "train it again",
        bundle.schema_hash, *expected_schema, Quoted(bundle.library_version));
  }
  if (sections.size() != bundle.targets.size() + 1)
    return Damaged("sections", bundle.targets.size() + 1, sections.size());
  for (size_t i = 0; i < bundle.targets.size(); ++i) {
    HORUS_RETURN_IF_ERROR(ReadForest(sections[i + 1], limits, bundle.targets[i].forest));
  }
  HORUS_RETURN_IF_ERROR(CheckBundle(bundle, limits));
  return bundle;
}

namespace {

// ---- Writes a bundle.

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
  if (total > limits.max_bytes) return ResourceExhausted("bundle: %d bytes, the limit is %d", total, limits.max_bytes);
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
  return link == Link::kExp ? std::exp(margin) : link == Link::kExpm1 ? std::expm1(margin) : margin;
}

const NamedSeries* FindSeries(std::span<const NamedSeries> series, std::string_view name) {
  const auto found = std::ranges::find(series, name, &NamedSeries::name);
  return found == series.end() ? nullptr : &*found;
}

const BundleTarget* Bundle::FindTarget(std::string_view name) const {
  const auto found = std::ranges::find(targets, name, &BundleTarget::name);
  return found == targets.end() ? nullptr : &*found;
}

}  // namespace horus
