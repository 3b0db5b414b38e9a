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

// Four digits at most: 1.23, 12.3, 123, 1234.
std::string Digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return absl::StrFormat("%.0f", value);
  if (size >= 9.995) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.2f", value);
}

std::string Scaled(double value, double base, std::span<const std::string_view> units) {
  size_t unit = 0;
  // 999.95 would print as 1000.
  while (unit + 1 < units.size() && std::abs(value) >= base * 0.9995) {
    value /= base;
    ++unit;
  }
  const std::string digits = unit == 0 && value == std::floor(value) ? absl::StrFormat("%.0f", value) : Digits(value);
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

std::string Bytes(double bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return Scaled(bytes, kBinary, kUnits);
}

std::string Mib(int64_t mib) {
  if (mib >= kUnboundedMemMib) return "unknown";
  return Bytes(static_cast<double>(mib) * static_cast<double>(kBytesPerMib));
}

std::string Duration(double us) {
  static constexpr std::array<std::string_view, 3> kUnits = {"us", "ms", "s"};
  return Scaled(us, kThousand, kUnits);
}

std::string Percent(double pct) {
  return std::abs(pct) >= 9.95 || pct == 0 ? absl::StrFormat("%.0f %%", pct) : absl::StrFormat("%.1f %%", pct);
}

std::string Factor(double factor) { return std::isinf(factor) ? "none" : absl::StrFormat("%.2fx", factor); }

std::string Cores(int64_t milli) { return Plain(static_cast<double>(milli) / kMilliPerCore); }

std::string Plain(double number) { return absl::StrFormat("%.6g", number); }

}  // namespace horus::cli
