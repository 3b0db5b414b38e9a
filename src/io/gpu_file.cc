// SPDX-License-Identifier: Apache-2.0
// Reads a file of GPU types; its keys are those of device/gpu_fields.h.
#include "io/gpu_file.h"

#include "base/file.h"
#include "device/gpu_fields.h"
#include "io/jobs_file.h"

namespace horus {
namespace {

constexpr std::string_view kGpuFileKeys[] = {"version", "gpu_types"};
constexpr size_t kMaxGpuFiles = 64;

std::vector<std::string_view> TypeKeys() {
  std::vector<std::string_view> keys = {"based_on", "aliases", "mig"};
  for (const GpuText& field : GpuTexts()) keys.push_back(field.key);
  for (const GpuField& field : GpuFields()) keys.push_back(field.key);
  return keys;
}

std::vector<std::string_view> MigKeys() {
  std::vector<std::string_view> keys = {"name"};
  for (const MigField& field : MigFields()) keys.push_back(field.key);
  return keys;
}

absl::StatusOr<MigProfile> ReadProfile(const YamlValue& value, std::span<const std::string_view> keys) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(keys));
  MigProfile profile;
  HORUS_RETURN_IF_ERROR(map.Require("name", "such as 3g.20gb").status());
  HORUS_RETURN_IF_ERROR(map.ReadText("name", kMaxGpuNameBytes, profile.name));
  for (const MigField& field : MigFields()) {
    HORUS_RETURN_IF_ERROR(map.Require(field.key, "a number").status());
    HORUS_RETURN_IF_ERROR(map.ReadInteger(field.key, field.min, field.max, profile.*field.member));
  }
  return profile;
}

// A measured context replaces the rule's; the rule fills what stays 0.
absl::Status ReadNumbers(const YamlMap& map, GpuType& type) {
  for (const GpuField& field : GpuFields())
    HORUS_RETURN_IF_ERROR(map.ReadInteger(field.key, field.min, field.max, type.*field.member));
  if (map.Has("context_mib") && !map.Has("context_source")) type.context_source = "measured by the file's author";
  return absl::OkStatus();
}

absl::StatusOr<GpuType> ReadType(const YamlValue& value, const Catalogue& known) {
  HORUS_ASSIGN_OR_RETURN(const YamlMap map, value.Map(TypeKeys()));
  GpuType type;
  if (const YamlValue* based_on = map.Find("based_on")) {
    HORUS_ASSIGN_OR_RETURN(const GpuTypeId base, ReadGpuTypeName(*based_on, known));
    type = known.at(base);
    type.aliases.clear();
  }
  HORUS_RETURN_IF_ERROR(map.Require("name", "such as my-gpu-24gb").status());
  for (const GpuText& field : GpuTexts())
    HORUS_RETURN_IF_ERROR(map.ReadText(field.key, kMaxGpuTextBytes, type.*field.member));
  if (!map.Has("display_name")) type.display_name = type.name;
  HORUS_RETURN_IF_ERROR(ReadNumbers(map, type));
  if (const YamlValue* aliases = map.Find("aliases"))
    HORUS_SET_OR_RETURN(type.aliases, aliases->Texts(kMaxGpuAliases, kMaxGpuNameBytes));
  if (const YamlValue* mig = map.Find("mig")) {
    type.mig.clear();
    HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, mig->List(kMaxMigProfiles));
    const std::vector<std::string_view> keys = MigKeys();
    for (const YamlValue& item : items) HORUS_SET_OR_RETURN(type.mig.emplace_back(), ReadProfile(item, keys));
  }
  GpuType completed = type;
  CompleteByRule(completed);
  HORUS_RETURN_IF_ERROR(value.Wrap(ValidateGpuType(completed)));
  return type;
}

// The error of the first type that cannot be added, at its line: the shortest failing list ends with it.
absl::Status FirstCulprit(const Catalogue& base, const std::vector<GpuType>& types,
                          const std::vector<YamlValue>& items) {
  const auto extend = [&](size_t count) {
    return Catalogue::Extend(base, std::vector<GpuType>(types.begin(), types.begin() + count)).status();
  };
  size_t good = 0;
  size_t bad = types.size();
  while (bad - good > 1) {
    const size_t middle = good + (bad - good) / 2;
    (extend(middle).ok() ? good : bad) = middle;
  }
  return items[bad - 1].Wrap(extend(bad));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Catalogue>> ParseGpuFile(const std::string& file, std::string text,
                                                              const Catalogue& base, const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(const auto tree, YamlTree::Parse(file, std::move(text), limits));
  HORUS_ASSIGN_OR_RETURN(const YamlMap root, OpenVersion1(tree, kGpuFileKeys));
  HORUS_ASSIGN_OR_RETURN(const YamlValue list, root.Require("gpu_types", "a list of GPU types"));
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, list.List(Catalogue::kMaxTypes));
  std::vector<GpuType> types;
  for (const YamlValue& item : items) HORUS_SET_OR_RETURN(types.emplace_back(), ReadType(item, base));
  absl::StatusOr<Catalogue> extended = Catalogue::Extend(base, types);
  if (!extended.ok()) return FirstCulprit(base, types, items);
  return std::make_shared<const Catalogue>(*std::move(extended));
}

absl::StatusOr<std::shared_ptr<const Catalogue>> ReadGpuFile(const std::string& path, const Catalogue& base,
                                                             const YamlLimits& limits) {
  HORUS_ASSIGN_OR_RETURN(std::string text, ReadFile(path, limits.max_bytes));
  return ParseGpuFile(path, std::move(text), base, limits);
}

absl::Status ReadGpuFiles(const YamlMap& root, const YamlLimits& limits, std::shared_ptr<const Catalogue>& catalogue) {
  const YamlValue* files = root.Find("gpu_types_files");
  if (files == nullptr) return absl::OkStatus();
  HORUS_ASSIGN_OR_RETURN(const std::vector<YamlValue> items, files->List(kMaxGpuFiles));
  for (const YamlValue& item : items) {
    HORUS_ASSIGN_OR_RETURN(const std::string written, item.Text(kMaxPathBytes));
    const std::string path = PathBeside(item.file(), written);
    HORUS_ASSIGN_OR_RETURN(std::string text, item.Wrap(ReadNamedFile(path, limits.max_bytes)));
    HORUS_ASSIGN_OR_RETURN(catalogue, item.Wrap(ParseGpuFile(path, std::move(text), *catalogue, limits)));
  }
  return absl::OkStatus();
}

}  // namespace horus
