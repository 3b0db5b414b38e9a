// SPDX-License-Identifier: Apache-2.0
// The layout of a bundle file, for its writer and its reader alone.
//
// Leaves:  constants.
// Units:   sizes in bytes; all numbers little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace horus::bundle_format {

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
inline constexpr std::string_view kMagic = "HORUSBDL";
inline constexpr size_t kChecksumAt = 24;  // of the header checksum; what lies before it is covered
inline constexpr size_t kHeaderBytes = 32;
inline constexpr size_t kTableEntryBytes = 16;
inline constexpr size_t kForestHeaderBytes = 16;
inline constexpr size_t kTreeBytes = 4;
inline constexpr size_t kNodeBytes = 12;
inline constexpr size_t kSeriesMinBytes = 8;   // an empty name and no values
inline constexpr size_t kTargetMinBytes = 12;  // an empty name, a link and no series

}  // namespace horus::bundle_format
