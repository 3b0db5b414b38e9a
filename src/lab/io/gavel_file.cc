// SPDX-License-Identifier: Apache-2.0
// Follows the events of a JSON parser through Gavel's three levels of keys, without building a tree.
#include "lab/io/gavel_file.h"

#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "nlohmann/json.hpp"
#include "place/job/job.h"

namespace horus {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAloneKey = "null";
constexpr size_t kLevels = 3;  // GPU, job, other job

struct JobKey {
  std::string name;
  int64_t scale = 0;
};

// "('LM (batch size 5)', 1)", or with double quotes for a name that has a single one: how Python prints the pair. One
// text alone for each key, so that none is told twice.
std::optional<JobKey> ParseJobKey(std::string_view text) {
  if (text.size() < 7 || !text.starts_with("(") || !text.ends_with(")")) return std::nullopt;
  const char quote = text[1];
  const size_t close = text.rfind(quote);
  if ((quote != '\'' && quote != '"') || close <= 2) return std::nullopt;
  const std::string_view number = text.substr(close + 1);
  if (!number.starts_with(", ") || number.starts_with(", 0")) return std::nullopt;
  JobKey key{.name = std::string(text.substr(2, close - 2))};
  if (quote == '"' && key.name.find('\'') == std::string::npos) return std::nullopt;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(number.data() + 2, last, key.scale);
  if (error != std::errc() || end != last || key.scale < 1) return std::nullopt;
  return key;
}

class Reader final : public Json::json_sax_t {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  [[nodiscard]] const absl::Status& status() const { return status_; }
  [[nodiscard]] GavelSpeeds Take() { return std::move(speeds_); }

  bool null() override { return Wrong("null"); }
  bool boolean(bool) override { return Wrong("true or false"); }
  bool string(string_t& text) override { return Wrong(Quoted(text)); }
  bool binary(binary_t&) override { return Wrong("bytes"); }
  bool number_integer(number_integer_t value) override { return Number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return Number(value); }

  bool start_object(size_t) override {
    if (in_list_ || depth_ >= kLevels) return Wrong("an object");
    keys_[depth_++].clear();
    seen_[depth_ - 1].clear();
    return true;
  }

  bool end_object() override {
    --depth_;
    return true;
  }

  bool key(string_t& text) override {
    keys_[depth_ - 1] = text;
    if (!seen_[depth_ - 1].insert(text).second)
      return Stop(InvalidArgument("%s: expected each key once, found it again", Where()));
    if (depth_ == 1) gpu_ = Intern(text, gpus_, speeds_.gpus);
    if (depth_ == 2) return JobOf(text, job_, job_scale_);
    if (depth_ == 3) {
      is_alone_ = text == kAloneKey;
      return is_alone_ || JobOf(text, other_, other_scale_);
    }
    return true;
  }

  bool start_array(size_t) override {
    if (in_list_ || depth_ != kLevels || is_alone_) return Wrong("a list");
    in_list_ = true;
    list_.clear();
    return true;
  }

  bool end_array() override {
    in_list_ = false;
    const bool none = list_.size() == 2 && list_[0] == 0 && list_[1] == 0;
    if (list_.size() != 2 || (!none && (list_[0] == 0 || list_[1] == 0))) {
      return Stop(
          InvalidArgument("%s: expected two speeds above 0 in steps/s, or two zeros (did not run together), found %s",
                          Where(), Listed()));
    }
    if (!Counts()) return status_.ok();
    speeds_.together.push_back({gpu_, job_, other_, list_[0], list_[1]});
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return Stop(
        InvalidArgument("%s: expected JSON in Gavel's layout, found something else at byte %d", file_, position));
  }

 private:
  bool Stop(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }

  [[nodiscard]] std::string Where() const {
    std::string where = file_;
    for (size_t i = 0; i < depth_; ++i) where += ": " + Quoted(keys_[i]);
    return where;
  }

  bool Wrong(const std::string& found) {
    const char* const expected = depth_ < kLevels ? "an object (GPU, then job, then other job)"
                                 : is_alone_      ? "a speed in steps/s"
                                                  : "a list of two speeds in steps/s";
    return Stop(InvalidArgument("%s: expected %s, found %s", Where(), expected, found));
  }

  [[nodiscard]] std::string Listed() const {
    if (list_.size() != 2) return std::to_string(list_.size()) + " numbers";
    return Formatted("%g and %g", list_[0], list_[1]);
  }

  static uint32_t Intern(const std::string& name, std::map<std::string, uint32_t>& known,
                         std::vector<std::string>& names) {
    const auto [at, is_new] = known.emplace(name, static_cast<uint32_t>(names.size()));
    if (is_new) names.push_back(name);
    return at->second;
  }

  bool JobOf(const std::string& text, uint32_t& job, int64_t& scale) {
    const std::optional<JobKey> key = ParseJobKey(text);
    if (!key) {
      return Stop(InvalidArgument("%s: expected a key like \"('JOB', 1)\"%s, found %s", Where(),
                                  depth_ == kLevels ? " or \"null\"" : "", Quoted(text)));
    }
    scale = key->scale;
    job = Intern(key->name, jobs_, speeds_.jobs);
    return true;
  }

  // Whether the entry is of single GPUs; false with an error where there are too many.
  bool Counts() {
    if (++entries_ > kMostGavelEntries) {
      Stop(ResourceExhausted("%s: expected at most %d entries, found more", file_, kMostGavelEntries));
      return false;
    }
    if (job_scale_ == 1 && (is_alone_ || other_scale_ == 1)) return true;
    ++speeds_.several;
    return false;
  }

  bool Number(double value) {
    if (depth_ != kLevels || (!in_list_ && !is_alone_)) return Wrong("a number");
    if (!(std::isfinite(value) && value >= 0))
      return Stop(InvalidArgument("%s: expected a speed of at least 0 in steps/s, found %g", Where(), value));
    if (in_list_) {
      list_.push_back(value);
      return list_.size() <= 2 || Stop(InvalidArgument("%s: expected two speeds in steps/s, found more", Where()));
    }
    if (is_alone_ && job_scale_ > 1 && job_scale_ <= kMaxGpusPerJob)
      speeds_.gangs.push_back({gpu_, job_, static_cast<int32_t>(job_scale_), value});
    if (!Counts()) return status_.ok();
    speeds_.alone.push_back({gpu_, job_, 1, value});
    return true;
  }

  const std::string& file_;
  GavelSpeeds speeds_;
  absl::Status status_;
  size_t depth_ = 0;
  std::array<std::string, kLevels> keys_;            // on the way to where the parser is
  std::array<std::set<std::string>, kLevels> seen_;  // keys of the objects that are open
  std::map<std::string, uint32_t> gpus_, jobs_;      // positions in speeds_
  uint32_t gpu_ = 0, job_ = 0, other_ = 0;
  int64_t job_scale_ = 0, other_scale_ = 0;
  bool is_alone_ = false, in_list_ = false;
  std::vector<double> list_;
  size_t entries_ = 0;
};

}  // namespace

absl::StatusOr<GavelSpeeds> ParseGavelSpeeds(const std::string& file, std::string_view text) {
  Reader reader(file);
  const bool parsed = Json::sax_parse(text.begin(), text.end(), &reader);
  HORUS_RETURN_IF_ERROR(reader.status());
  if (!parsed) return InvalidArgument("%s: expected JSON in Gavel's layout, found something else", file);
  return reader.Take();
}

}  // namespace horus
