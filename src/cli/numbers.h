// SPDX-License-Identifier: Apache-2.0
// Quantities for people: three or four digits and a unit.
//
// Enters:  amounts in base units.        Leaves: text such as "25.56 M", "4.09 TFLOP", "3.21 GiB", "12.3 ms".
// Units:   MiB and GiB are powers of two, everything else powers of ten.
// Cost:    none.                         Thread class: pure functions.
#ifndef HORUS_CLI_NUMBERS_H_
#define HORUS_CLI_NUMBERS_H_

#include <cstdint>
#include <string>

namespace horus::cli {

[[nodiscard]] std::string Count(double count);                  // "25.56 M"
[[nodiscard]] std::string Flops(double flops);                  // "8.18 GFLOP"
[[nodiscard]] std::string Bytes(double bytes, int more = 0);    // "3.21 GiB"; so many more digits
[[nodiscard]] std::string Mib(int64_t mib, int more = 0);       // as Bytes; "unknown" for kUnboundedMemMib
[[nodiscard]] std::string Duration(double us);                  // "12.3 ms"
[[nodiscard]] std::string Percent(double pct);                  // "87 %", "3.2 %"
[[nodiscard]] std::string Factor(double factor, int more = 0);  // "1.25x"
[[nodiscard]] std::string Cores(int64_t milli);                 // "8", "0.5"
[[nodiscard]] std::string Plain(double number, int more = 0);   // up to six digits, no unit

}  // namespace horus::cli

#endif  // HORUS_CLI_NUMBERS_H_
