// SPDX-License-Identifier: Apache-2.0
// Reads fields of a config.json.
#include "graph/config_fields.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"

namespace horus {
namespace {

using Json = nlohmann::json;

std::string Shown(const Json* value) {
  if (value == nullptr) return "none";
  if (value->is_object() || value->is_array()) return value->is_object() ? "an object" : "a list";
  return Quoted(value->dump(-1, ' ', true, Json::error_handler_t::replace));
}

// Parts of names by which configs speak of layers, sizes and whole mechanisms.
constexpr std::string_view kTelling[] = {"mamba",  "ssm",   "linear_", "conv",    "index_", "expert",   "moe",
                                         "vision", "audio", "speech",  "_layers", "_size",  "_dim",     "_rank",
                                         "_heads", "num_",  "alibi",   "cross_",  "mixer",  "recurrent"};

bool IsNothing(const Json& value) {
  return value.is_null() || value == false || (value.is_number() && value == 0) ||
         ((value.is_array() || value.is_object() || value.is_string()) && value.empty());
}

}  // namespace

absl::StatusOr<Json> ParseConfig(std::string_view text) {
  if (text.size() > kMaxConfigBytes) {
    return MakeError(absl::StatusCode::kResourceExhausted, "config: expected at most %d bytes, found %d",
                     kMaxConfigBytes, text.size());
  }
  bool deep = false;
  const Json::parser_callback_t look = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxConfigDepth;
    return depth <= kMaxConfigDepth;  // what lies deeper is never kept
  };
  Json json = Json::parse(text.begin(), text.end(), look, /*allow_exceptions=*/false);
  if (deep) {
    return MakeError(absl::StatusCode::kResourceExhausted, "config: expected at most %d levels, found more",
                     kMaxConfigDepth);
  }
  if (json.is_discarded()) return MakeError(absl::StatusCode::kDataLoss, "config: expected JSON, found what is none");
  if (!json.is_object()) return InvalidArgument("config: expected a JSON object, found %s", json.type_name());
  return json;
}

const Json* ConfigFields::Find(std::string_view key) {
  asked_.emplace(key);
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigFields::Fail(std::string_view key, std::string_view expected) {
  if (status_.ok()) {
    status_ = InvalidArgument("config field %s%s: expected %s, found %s", prefix_, key, expected, Shown(Find(key)));
  }
}

bool ConfigFields::Has(std::string_view key) { return Find(key) != nullptr; }

int64_t ConfigFields::Size(std::string_view key, std::optional<int64_t> fallback, int64_t most) {
  const Json* value = Find(key);
  if (value == nullptr && fallback) return *fallback;
  const bool fits = value != nullptr && value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= static_cast<uint64_t>(most)) &&
                    value->get<int64_t>() >= (fallback == 0 ? 0 : 1) && value->get<int64_t>() <= most;
  if (fits) return value->get<int64_t>();
  Fail(key, Formatted("an integer from 1 to %d", most));
  return 1;
}

int64_t ConfigFields::Group(std::string_view key) {
  const Json* value = Find(key);
  const bool all = value != nullptr && value->is_number_integer() && *value == -1;
  return all ? 0 : Size(key, 0);
}

bool ConfigFields::Flag(std::string_view key, bool fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) Fail(key, "true or false");
  return value->is_boolean() ? value->get<bool>() : fallback;
}

std::string ConfigFields::Text(std::string_view key, std::string_view fallback) {
  const Json* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) Fail(key, "a text");
  return value->is_string() ? value->get<std::string>() : std::string(fallback);
}

std::vector<std::string> ConfigFields::Texts(std::string_view key) {
  std::vector<std::string> texts;
  const Json* value = Find(key);
  if (value == nullptr) return texts;
  if (!value->is_array()) Fail(key, "a list of texts");
  for (const Json& one : value->is_array() ? *value : Json::array()) {
    if (!one.is_string()) Fail(key, "a list of texts");
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

std::vector<int64_t> ConfigFields::Sizes(std::string_view key) {
  std::vector<int64_t> sizes;
  const Json* value = Find(key);
  if (value == nullptr) return sizes;
  if (!value->is_array()) Fail(key, "a list of integers");
  for (const Json& one : value->is_array() ? *value : Json::array()) {
    const bool fits = one.is_number_unsigned() && one.get<uint64_t>() <= static_cast<uint64_t>(kMaxConfigSize);
    if (!fits) Fail(key, "a list of integers that are not negative");
    if (fits) sizes.push_back(one.get<int64_t>());
  }
  return sizes;
}

std::optional<ConfigFields> ConfigFields::Object(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    Fail(key, "an object");
    return std::nullopt;
  }
  return ConfigFields(*value, prefix_ + std::string(key) + ".");
}

void ConfigFields::Expect(std::string_view key, bool fits, std::string_view expected) {
  static_cast<void>(Find(key));
  if (!fits) Fail(key, expected);
}

void ConfigFields::Known(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) asked_.emplace(key);
}

void ConfigFields::RefuseUnknown() {
  for (const auto& [key, value] : object_.items()) {
    if (asked_.contains(key) || IsNothing(value)) continue;
    const bool tells = std::any_of(std::begin(kTelling), std::end(kTelling),
                                   [&key](std::string_view part) { return key.find(part) != std::string::npos; });
    if (!tells || !status_.ok()) continue;
    status_ = MakeError(absl::StatusCode::kUnimplemented,
                        "config field %s%s: expected none in this model_type, found %s, which is not understood",
                        prefix_, Quoted(key), Shown(&value));
  }
}

}  // namespace horus
