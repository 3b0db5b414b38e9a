// SPDX-License-Identifier: Apache-2.0
// Builds one object of a list at a time, and reads its values.
#include "io/kube/kube_items.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <streambuf>
#include <system_error>

#include "absl/strings/numbers.h"
#include "base/text.h"

namespace horus {
namespace {

// ---- Quantities, without floating point.

__extension__ using Wide = unsigned __int128;

struct Suffix {
  int decimal = 0;  // power of ten
  int binary = 0;   // power of two
};
constexpr std::string_view kDecimal = "num kMGTPE";  // thousands from 10^-9 on; blank: none
constexpr std::string_view kBinary = "KMGTPE";       // before "i": powers of 1024
constexpr int kMostDigits = 19;                      // that count: as many fit 64 bits
constexpr int kMostExponent = 99;

// Digits as integer x 10^decimal, and whether digits beyond kMostDigits were dropped behind the point.
struct Mantissa {
  uint64_t digits = 0;
  int decimal = 0;
  bool more = false;
};

std::optional<Mantissa> ReadMantissa(std::string_view& text) {
  Mantissa mantissa;
  bool any = false, point = false;
  int count = 0;
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (count == kMostDigits) {
      if (!point) return std::nullopt;
      mantissa.more |= c != '0';
      continue;
    }
    mantissa.digits = mantissa.digits * 10 + static_cast<uint64_t>(c - '0');  // Bounded: at most 19 digits
    if (mantissa.digits > 0) ++count;
    if (point) --mantissa.decimal;
    if (mantissa.decimal < -kMostExponent) return std::nullopt;
  }
  text.remove_prefix(at);
  return any ? std::optional(mantissa) : std::nullopt;
}

std::optional<Suffix> ReadSuffix(std::string_view text) {
  if (text.empty()) return Suffix();
  const size_t decimal = kDecimal.find(text), binary = kBinary.find(text[0]);
  if (text.size() == 1 && text != " " && decimal != kDecimal.npos) {
    return Suffix{.decimal = 3 * static_cast<int>(decimal) - 9};  // Bounded: nine of them
  }
  if (text.size() == 2 && text[1] == 'i' && binary != kBinary.npos) {
    return Suffix{.binary = 10 * static_cast<int>(binary + 1)};  // Bounded: six of them
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  Suffix exponent{.decimal = ParseNumber<int>(text).value_or(kMostExponent + 1)};
  if (exponent.decimal > kMostExponent || exponent.decimal < -kMostExponent) return std::nullopt;
  return exponent;
}

// ---- Objects, one at a time out of the parser's events.

// What no reader of ours looks at, and most of a pod's text: left out while reading.
constexpr std::array<std::string_view, 12> kSkipped = {
    "managedFields", "envFrom",   "volumes",           "volumeMounts",   "images",       "data",
    "livenessProbe", "lifecycle", "containerStatuses", "readinessProbe", "startupProbe", "valueFrom"};

constexpr size_t kMostShown = 40;

// Feeds the parser, and tells it that the text ends where one object takes more than it may.
class LimitedBuffer final : public std::streambuf {
 public:
  explicit LimitedBuffer(std::istream& from) : from_(from) {}

  void Mark() { read_since_mark_ = 0; }
  [[nodiscard]] bool object_too_long() const { return object_too_long_; }
  [[nodiscard]] bool file_too_long() const { return file_too_long_; }

 protected:
  int_type underflow() override {
    if (read_since_mark_ > kMaxKubeObjectBytes + sizeof(chunk_)) object_too_long_ = true;
    if (read_ > kMaxKubeFileBytes) file_too_long_ = true;
    if (object_too_long_ || file_too_long_) return traits_type::eof();
    from_.read(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
    const auto count = static_cast<size_t>(from_.gcount());
    read_ += count;
    read_since_mark_ += count;
    if (count == 0) return traits_type::eof();
    setg(chunk_.data(), chunk_.data(), chunk_.data() + count);
    return traits_type::to_int_type(chunk_[0]);
  }

 private:
  std::istream& from_;
  std::array<char, size_t{64} << 10> chunk_;
  uint64_t read_ = 0;
  size_t read_since_mark_ = 0;
  bool object_too_long_ = false;
  bool file_too_long_ = false;
};

std::string Shown(const KubeJson& json) {
  if (json.is_string()) return Quoted(json.get_ref<const std::string&>(), kMostShown);
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  if (json.is_null()) return "null";
  return json.dump();  // a number or a truth value
}

// The document as it is read. The root's list `items` never grows: its objects are handed over and dropped.
class Builder final : public KubeJson::json_sax_t {
 public:
  Builder(const std::string& file, LimitedBuffer& buffer, const KubeItemSink& sink)
      : file_(file), buffer_(buffer), sink_(sink) {}

  [[nodiscard]] const absl::Status& status() const { return status_; }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t, const string_t& text) override { return Add(text); }  // exact, for quantities
  bool string(string_t& text) override { return Add(text); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(KubeJson::object()); }
  bool start_array(size_t) override { return Open(KubeJson::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& text) override {
    if (skipped_ > 0) return true;
    key_ = text;
    skip_next_ = std::ranges::find(kSkipped, text) != kSkipped.end();
    if (open_.back()->contains(text))
      return Stop(InvalidArgument("%s: expected each key once, found %s again", Where(), Quoted(text, kMostShown)));
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (buffer_.object_too_long()) {
      return Stop(
          ResourceExhausted("%s: expected objects of at most %d bytes, found more", Where(), kMaxKubeObjectBytes));
    }
    if (buffer_.file_too_long())
      return Stop(ResourceExhausted("%s: expected at most %d bytes, found more", file_, kMaxKubeFileBytes));
    return Stop(
        InvalidArgument("%s: expected JSON as kubectl prints it, found something else, or its end, at byte %d "
                        "of the document",
                        Where(), position));
  }

 private:
  bool Stop(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }

  [[nodiscard]] bool in_items() const { return open_.size() >= 2 && items_ != nullptr && open_[1] == items_; }

  [[nodiscard]] std::string Where() const { return in_items() ? Formatted("%s: items[%d]", file_, item_) : file_; }

  bool Add(KubeJson value) {
    if (skipped_ > 0) return true;
    skip_next_ = false;  // labels may be called so, too: text is kept
    if (open_.empty()) return Stop(InvalidArgument("%s: expected an object, found %s", file_, Shown(value)));
    if (in_items() && open_.size() == 2)
      return Stop(InvalidArgument("%s: expected an object, found %s", Where(), Shown(value)));
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
    } else {
      (*open_.back())[key_] = std::move(value);
    }
    return true;
  }

  bool Open(KubeJson value) {
    if (skipped_ > 0 || skip_next_) {
      skip_next_ = false;
      return ++skipped_ <= kMaxKubeDepth || TooDeep();
    }
    if (open_.size() >= kMaxKubeDepth) return TooDeep();
    if (open_.empty()) {
      if (!value.is_object()) return Stop(InvalidArgument("%s: expected an object, found a list", file_));
      root_ = std::move(value);
      open_.push_back(&root_);
      return true;
    }
    if (in_items() && open_.size() == 2) {
      if (!value.is_object()) return Stop(InvalidArgument("%s: expected an object, found a list", Where()));
      object_ = std::move(value);
      open_.push_back(&object_);
      return true;
    }
    KubeJson* added = nullptr;
    if (open_.back()->is_array()) {
      added = &open_.back()->emplace_back(std::move(value));
    } else {
      added = &((*open_.back())[key_] = std::move(value));
      if (open_.size() == 1 && key_ == "items" && added->is_array()) items_ = added;
    }
    open_.push_back(added);
    return true;
  }

  bool TooDeep() {
    return Stop(ResourceExhausted("%s: expected at most %d objects and lists inside each other, found more", Where(),
                                  kMaxKubeDepth));
  }

  bool Close() {
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    open_.pop_back();
    if (in_items() && open_.size() == 2) {
      if (!HandOver(object_)) return false;
      ++item_;
    }
    if (open_.empty() && items_ == nullptr) return HandOver(root_);
    return true;
  }

  bool HandOver(KubeJson& object) {
    const KubeView view(&object, Where());
    std::string kind;
    if (const absl::StatusOr<std::string> stated = view["kind"].Text(); stated.ok()) kind = *stated;
    // Items of a typed list ("PodList") do not state it.
    if (const auto at = root_.find("kind"); kind.empty() && at != root_.end() && at->is_string()) {
      kind = at->get_ref<const std::string&>();
      if (kind.ends_with("List")) kind.resize(kind.size() - 4);
    }
    if (kind.empty()) return Stop(view["kind"].Expected("the object's kind, such as Node or Pod"));
    const KubeView meta = view["metadata"];
    const absl::StatusOr<std::string> name = meta["name"].Text(), space = meta["namespace"].Text();
    std::string where = Where() + " (" + kind;
    if (name.ok() && !name->empty())
      where += " " + (space.ok() && !space->empty() ? *space + "/" : std::string()) + *name;
    absl::Status taken = sink_(kind, KubeView(&object, std::move(where) + ")"));
    object = KubeJson();
    buffer_.Mark();
    return taken.ok() || Stop(std::move(taken));
  }

  const std::string& file_;
  LimitedBuffer& buffer_;
  const KubeItemSink& sink_;
  absl::Status status_;
  KubeJson root_;
  KubeJson object_;              // of the root's items
  std::vector<KubeJson*> open_;  // from the root on
  const KubeJson* items_ = nullptr;
  std::string key_;
  bool skip_next_ = false;  // the value of the last key
  size_t skipped_ = 0;      // open objects and lists below a key that is skipped
  size_t item_ = 0;
};

}  // namespace

std::optional<int64_t> ParseKubeQuantity(std::string_view text, int64_t per_unit) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<Mantissa> mantissa = ReadMantissa(text);
  const std::optional<Suffix> suffix = mantissa ? ReadSuffix(text) : std::nullopt;
  if (!suffix) return std::nullopt;
  Wide value = mantissa->digits;
  bool rest = mantissa->more;
  if (__builtin_mul_overflow(value, static_cast<Wide>(per_unit), &value) ||
      __builtin_mul_overflow(value, Wide{1} << suffix->binary, &value)) {  // Bounded: checked by the builtin
    return std::nullopt;
  }
  int power = mantissa->decimal + suffix->decimal;
  for (; power > 0 && value > 0; --power) {
    if (__builtin_mul_overflow(value, Wide{10}, &value)) return std::nullopt;
  }
  for (; power < 0 && value > 0; ++power) {
    rest |= value % 10 != 0;
    value /= 10;
  }
  if (rest) ++value;
  if (value > static_cast<Wide>(kMostQuantity)) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<int64_t> ParseKubeTime(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00", kDigits = "0123456789";
  if (text.size() <= kForm.size()) return std::nullopt;
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? kDigits.find(text[i]) == kDigits.npos : text[i] != kForm[i]) return std::nullopt;
  }
  const std::string_view rest = text.substr(kForm.size());  // "Z", or ".25Z"
  const bool fraction = rest[0] == '.' && rest.find_first_not_of(kDigits, 1) == rest.size() - 1 && rest.ends_with('Z');
  if (rest != "Z" && !fraction) return std::nullopt;
  const auto number = [text](size_t at, size_t count) { return *ParseNumber<int>(text.substr(at, count)); };
  const auto two = [&](size_t at) { return static_cast<unsigned>(number(at, 2)); };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)), std::chrono::month(two(5)),
                                         std::chrono::day(two(8))};
  constexpr int kFirstYear = 1970;
  if (number(0, 4) < kFirstYear || !date.ok() || two(11) > 23 || two(14) > 59 || two(17) > 60) return std::nullopt;
  const std::chrono::sys_seconds time = std::chrono::sys_days(date) + std::chrono::hours(two(11)) +
                                        std::chrono::minutes(two(14)) + std::chrono::seconds(two(17));
  return time.time_since_epoch().count();
}

KubeView KubeView::operator[](std::string_view key) const {
  const KubeJson* below = nullptr;
  if (json_ != nullptr && json_->is_object()) {
    const auto at = json_->find(key);
    if (at != json_->end()) below = &*at;
  }
  // "pods.json: items[3] (Pod a/b)", or the file's name alone.
  const bool named = where_.ends_with(')') || where_.find(": ") == std::string::npos;
  return {below, where_ + (named ? ": " : ".") + std::string(key)};
}

absl::Status KubeView::Expected(std::string_view expected) const {
  return InvalidArgument("%s: expected %s, found %s", where_, std::string(expected),
                         json_ == nullptr ? "none" : Shown(*json_));
}

absl::StatusOr<std::string> KubeView::Text() const {
  if (!present()) return std::string();
  if (!json_->is_string()) return Expected("text");
  return json_->get_ref<const std::string&>();
}

absl::StatusOr<int64_t> KubeView::Integer(int64_t fallback) const {
  if (!present()) return fallback;
  if (json_->is_number_unsigned() && json_->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    return Expected("an integer of 64 bits");
  if (!json_->is_number_integer()) return Expected("an integer");
  return json_->get<int64_t>();
}

// Fractions are kept as their text.
absl::StatusOr<double> KubeView::Number() const {
  if (!present()) return 0;
  if (json_->is_number()) return json_->get<double>();
  double value = 0;
  if (!json_->is_string() || !absl::SimpleAtod(json_->get_ref<const std::string&>(), &value))
    return Expected("a number");
  return value;
}

absl::StatusOr<bool> KubeView::Bool() const {
  if (!present()) return false;
  if (!json_->is_boolean()) return Expected("true or false");
  return json_->get<bool>();
}

absl::StatusOr<std::vector<KubeView>> KubeView::List() const {
  std::vector<KubeView> items;
  if (!present()) return items;
  if (!json_->is_array()) return Expected("a list");
  for (const KubeJson& item : *json_) items.emplace_back(&item, Formatted("%s[%d]", where_, items.size()));
  return items;
}

absl::Status KubeView::ReadTexts(std::initializer_list<TextAt> texts) const {
  for (const auto& [key, out] : texts) HORUS_SET_OR_RETURN(out, (*this)[key].Text());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, KubeView>>> KubeView::Pairs() const {
  std::vector<std::pair<std::string, KubeView>> pairs;
  if (!present()) return pairs;
  if (!json_->is_object()) return Expected("an object");
  for (const auto& [key, value] : json_->items()) pairs.emplace_back(key, (*this)[key]);
  return pairs;
}

absl::StatusOr<int64_t> KubeView::Quantity(int64_t per_unit) const {
  if (!present()) return 0;
  const bool number = json_->is_number_integer();
  const std::optional<int64_t> value = json_->is_string()
                                           ? ParseKubeQuantity(json_->get_ref<const std::string&>(), per_unit)
                                       : number ? ParseKubeQuantity(json_->dump(), per_unit)
                                                : std::nullopt;
  if (!value) return Expected("a quantity from 0 to 2^60 such as 500m or 16Gi");
  return *value;
}

absl::StatusOr<std::optional<int64_t>> KubeView::Time() const {
  HORUS_ASSIGN_OR_RETURN(const std::string text, Text());
  if (text.empty()) return std::optional<int64_t>();
  const std::optional<int64_t> time = ParseKubeTime(text);
  if (!time) return Expected("a time such as 2026-11-26T12:00:00Z");
  return time;
}

absl::Status ReadKubeItems(std::istream& stream, const std::string& file, const KubeItemSink& sink) {
  LimitedBuffer buffer(stream);
  std::istream limited(&buffer);
  bool any = false;
  for (;;) {
    limited >> std::ws;
    if (limited.peek() == std::istream::traits_type::eof()) break;
    any = true;
    Builder builder(file, buffer, sink);
    const bool parsed = KubeJson::sax_parse(limited, &builder, KubeJson::input_format_t::json, /*strict=*/false);
    HORUS_RETURN_IF_ERROR(builder.status());
    if (!parsed) return InvalidArgument("%s: expected JSON as kubectl prints it, found something else", file);
    limited.clear();
  }
  if (stream.bad()) return Unavailable("%s: cannot be read", file);
  if (!any) return InvalidArgument("%s: expected JSON as kubectl prints it, found nothing", file);
  return absl::OkStatus();
}

absl::Status ReadKubeFile(const std::string& path, const KubeItemSink& sink) {
  const bool standard = path == "-";
  std::error_code ignored;
  std::ifstream stream(standard ? "/dev/stdin" : path, std::ios::binary);
  if (!stream.is_open() || (!standard && std::filesystem::is_directory(path, ignored)))
    return Unavailable("%s: cannot be read", path);
  return ReadKubeItems(stream, standard ? "standard input" : path, sink);
}

}  // namespace horus
