// SPDX-License-Identifier: Apache-2.0
// Reads fields of a config.json.
#include "graph/config_fields.h"

#include <algorithm>

#include "base/status.h"
#include "base/text.h"
#include "nlohmann/json.hpp"

namespace horus {
namespace {

using Kind = ConfigValue::Kind;

std::string Shown(const ConfigValue* value) {
  if (value == nullptr) return "none";
  if (value->kind == Kind::kNull) return Quoted("null");
  if (value->kind == Kind::kFlag) return Quoted(value->flag ? "true" : "false");
  if (value->kind == Kind::kInteger) return Quoted(Formatted("%d", value->integer));
  if (value->kind == Kind::kReal) return Quoted(Formatted("%g", value->real));
  if (value->kind == Kind::kText) return Quoted("\"" + value->text + "\"");
  return value->kind == Kind::kList ? "a list" : "an object";
}

// Makes values of what the JSON library reads, one event after the other; false stops it.
class Builder {
 public:
  explicit Builder(ConfigValue& root) : root_(root) {}

  bool null() { return Add({}); }
  bool boolean(bool flag) { return Add({.kind = Kind::kFlag, .flag = flag}); }
  bool number_integer(int64_t integer) { return Add({.kind = Kind::kInteger, .integer = integer}); }
  bool number_unsigned(uint64_t number) {
    if (number > static_cast<uint64_t>(INT64_MAX)) return number_float(static_cast<double>(number), "");
    return number_integer(static_cast<int64_t>(number));
  }
  bool number_float(double real, const std::string&) { return Add({.kind = Kind::kReal, .real = real}); }
  bool string(std::string& text) { return Add({.kind = Kind::kText, .text = std::move(text)}); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return Open(Kind::kObject); }
  bool start_array(size_t) { return Open(Kind::kList); }
  bool end_object() { return open_.pop_back(), true; }
  bool end_array() { return open_.pop_back(), true; }
  bool key(std::string& name) { return open_.back()->keys.push_back(std::move(name)), true; }
  template <typename Error>
  bool parse_error(size_t position, const std::string&, const Error&) {
    status_ = DataLoss("config: expected JSON, found what is none at byte %d", position);
    return false;
  }
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  bool Add(ConfigValue value) {
    ConfigValue& place = open_.empty() ? root_ : open_.back()->items.emplace_back();
    place = std::move(value);
    return true;
  }
  // A parent's items stay where they are while one of them is open.
  bool Open(Kind kind) {
    if (open_.size() == kMaxConfigDepth) {
      status_ = ResourceExhausted("config: expected at most %d levels, found more", kMaxConfigDepth);
      return false;
    }
    Add({.kind = kind});
    open_.push_back(open_.empty() ? &root_ : &open_.back()->items.back());
    return true;
  }

  ConfigValue& root_;
  std::vector<ConfigValue*> open_;
  absl::Status status_;
};

// Parts of names by which configs speak of layers, sizes and whole mechanisms.
constexpr std::string_view kTelling[] = {"mamba",  "ssm",   "linear_", "conv",    "index_", "expert",   "moe",
                                         "vision", "audio", "speech",  "_layers", "_size",  "_dim",     "_rank",
                                         "_heads", "num_",  "alibi",   "cross_",  "mixer",  "recurrent"};

bool IsNothing(const ConfigValue& value) {
  return value.kind == Kind::kFlag ? !value.flag
                                   : value.integer == 0 && value.real == 0 && value.text.empty() && value.items.empty();
}

}  // namespace

absl::StatusOr<ConfigValue> ParseConfig(std::string_view text) {
  if (text.size() > kMaxConfigBytes)
    return ResourceExhausted("config: expected at most %d bytes, found %d", kMaxConfigBytes, text.size());
  ConfigValue root;
  Builder builder(root);
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  HORUS_RETURN_IF_ERROR(builder.status());
  if (!whole || root.kind != Kind::kObject)
    return InvalidArgument("config: expected a JSON object, found %s", Shown(&root));
  return root;
}

const ConfigValue* ConfigFields::Find(std::string_view key) {
  asked_.emplace(key);
  const auto found = std::find(object_.keys.rbegin(), object_.keys.rend(), key);  // of several the last counts
  if (found == object_.keys.rend()) return nullptr;
  const ConfigValue& value = object_.items[static_cast<size_t>(object_.keys.rend() - found) - 1];
  return value.kind == Kind::kNull ? nullptr : &value;
}

void ConfigFields::Fail(std::string_view key, std::string_view expected) {
  if (status_.ok())
    status_ = InvalidArgument("config field %s%s: expected %s, found %s", prefix_, key, expected, Shown(Find(key)));
}

std::string_view ConfigFields::Either(std::initializer_list<std::string_view> keys) {
  std::string_view found;
  for (const std::string_view key : keys) {
    if (Find(key) != nullptr && found.empty()) found = key;
  }
  return found.empty() ? *keys.begin() : found;
}

int64_t ConfigFields::Size(std::string_view key, std::optional<int64_t> fallback, int64_t most) {
  const ConfigValue* value = Find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value != nullptr && value->kind == Kind::kList && !value->items.empty()) {
    const ConfigValue& first = value->items.front();
    const bool same = std::ranges::all_of(value->items, [&first](const ConfigValue& one) {
      return one.kind == Kind::kInteger && one.integer == first.integer;
    });
    if (same) value = &first;
  }
  const bool fits = value != nullptr && value->kind == Kind::kInteger && value->integer >= (fallback == 0 ? 0 : 1) &&
                    value->integer <= most;
  if (fits) return value->integer;
  Fail(key, Formatted("an integer from 1 to %d", most));
  return 1;
}

int64_t ConfigFields::Group(std::string_view key) {
  const ConfigValue* value = Find(key);
  const bool all = value != nullptr && value->kind == Kind::kInteger && value->integer == -1;
  return all ? 0 : Size(key, 0);
}

double ConfigFields::Real(std::string_view key, double fallback) {
  const ConfigValue* value = Find(key);
  if (value == nullptr && fallback >= 0) return fallback;
  const bool whole = value != nullptr && value->kind == Kind::kInteger;
  const double real = whole ? static_cast<double>(value->integer) : value == nullptr ? -1 : value->real;
  if (real >= 0 && real <= kMaxConfigSize && (whole || value->kind == Kind::kReal)) return real;
  Fail(key, Formatted("a number from 0 to %d", kMaxConfigSize));
  return 0;
}

bool ConfigFields::Flag(std::string_view key, bool fallback) {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->kind != Kind::kFlag) Fail(key, "true or false");
  return value->kind == Kind::kFlag ? value->flag : fallback;
}

std::string ConfigFields::Text(std::string_view key, std::string_view fallback) {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->kind != Kind::kText) Fail(key, "a text");
  return value->kind == Kind::kText ? value->text : std::string(fallback);
}

std::vector<std::string> ConfigFields::Texts(std::string_view key) {
  std::vector<std::string> texts;
  const ConfigValue* value = Find(key);
  if (value == nullptr) return texts;
  if (value->kind != Kind::kList) Fail(key, "a list of texts");
  for (const ConfigValue& one : value->items) {
    if (one.kind != Kind::kText && one.kind != Kind::kInteger) Fail(key, "a list of texts");
    texts.push_back(one.kind == Kind::kInteger ? Formatted("%d", one.integer) : one.text);
  }
  return texts;
}

std::vector<int64_t> ConfigFields::Sizes(std::string_view key) {
  std::vector<int64_t> sizes;
  const ConfigValue* value = Find(key);
  if (value == nullptr) return sizes;
  if (value->kind != Kind::kList) Fail(key, "a list of integers");
  for (const ConfigValue& one : value->items) {
    const bool fits = one.kind == Kind::kInteger && one.integer >= 0 && one.integer <= kMaxConfigSize;
    if (!fits) Fail(key, "a list of integers that are not negative");
    if (fits) sizes.push_back(one.integer);
  }
  return sizes;
}

std::optional<ConfigFields> ConfigFields::Object(std::string_view key) {
  const ConfigValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Kind::kObject) {
    Fail(key, "an object");
    return std::nullopt;
  }
  return ConfigFields(*value, prefix_ + std::string(key) + ".");
}

std::vector<ConfigFields> ConfigFields::Objects(std::string_view key) {
  std::vector<ConfigFields> objects;
  const ConfigValue* value = Find(key);
  for (size_t i = 0; value != nullptr && i < value->items.size(); ++i) {
    const ConfigValue& one = value->items[i];
    if (one.kind != Kind::kObject) Fail(key, "objects");
    const std::string place = value->kind == Kind::kList ? Formatted("[%d]", i) : "." + value->keys[i];
    if (one.kind == Kind::kObject) objects.push_back(ConfigFields(one, prefix_ + std::string(key) + place + "."));
  }
  return objects;
}

void ConfigFields::RefuseUnknown() {
  for (size_t i = 0; i < object_.keys.size(); ++i) {
    const std::string& key = object_.keys[i];
    const ConfigValue& value = object_.items[i];
    if (asked_.contains(key) || IsNothing(value)) continue;
    const bool tells = std::any_of(std::begin(kTelling), std::end(kTelling),
                                   [&key](std::string_view part) { return key.find(part) != std::string::npos; });
    if (!tells || !status_.ok()) continue;
    status_ = Unimplemented("config field %s%s: expected none in this model_type, found %s, which is not understood",
                            prefix_, Quoted(key), Shown(&value));
  }
}

}  // namespace horus
