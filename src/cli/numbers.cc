// SPDX-License-Identifier: Apache-2.0
// Formats quantities.
#include "cli/numbers.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/units.h"
#include "predict/demand.h"

namespace horus::cli {
namespace {

constexpr double kThousand = 1000;
constexpr double kBinary = 1024;

// Four digits at most: 1.23, 12.3, 123, 1234; and so many more.
std::string Digits(double value, int more) {
  const double size = std::abs(value);
  const int places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f", places + more, value);
}

std::string Scaled(double value, double base, std::span<const std::string_view> units, int more = 0) {
  size_t unit = 0;
  // 999.95 would print as 1000.
  while (unit + 1 < units.size() && std::abs(value) >= base * 0.9995) {
    value /= base;
    ++unit;
  }
  const std::string digits =
      unit == 0 && value == std::floor(value) ? absl::StrFormat("%.0f", value) : Digits(value, more);
  return units[unit].empty() ? digits : digits + " " + std::string(units[unit]);
}

}  // namespace

std::string Count(double count) {
  static constexpr std::array<std::string_view, 5> kUnits = {"", "k", "M", "G", "T"};
  return Scaled(count, kThousand, kUnits);
}

std::string Flops(double flops) {
  static constexpr std::array<std::string_view, 7> kUnits = {"FLOP",  "kFLOP", "MFLOP", "GFLOP",
                                                             "TFLOP", "PFLOP", "EFLOP"};
  return Scaled(flops, kThousand, kUnits);
}

std::string Bytes(double bytes, int more) {
  static constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return Scaled(bytes, kBinary, kUnits, more);
}

std::string Mib(int64_t mib, int more) {
  if (mib >= kUnboundedMemMib) return "unknown";
  return Bytes(static_cast<double>(mib) * static_cast<double>(kBytesPerMib), more);
}

std::string Duration(double us) {
  static constexpr std::array<std::string_view, 3> kUnits = {"us", "ms", "s"};
  return Scaled(us, kThousand, kUnits);
}

std::string Percent(double pct) {
  return std::abs(pct) >= 9.95 || pct == 0 ? absl::StrFormat("%.0f %%", pct) : absl::StrFormat("%.1f %%", pct);
}

std::string Factor(double factor, int more) {
  return std::isinf(factor) ? "none" : absl::StrFormat("%.*fx", 2 + more, factor);
}

std::string Cores(int64_t milli) { return Plain(static_cast<double>(milli) / kMilliPerCore); }

std::string Plain(double number, int more) { return absl::StrFormat("%.*g", 6 + more, number); }

}  // namespace horus::cli
