// SPDX-License-Identifier: Apache-2.0
// Beginnings of files that are no ONNX models.
#include "graph/not_onnx.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace horus {
namespace {

struct Beginning {
  std::string_view bytes;
  std::string_view what;
};

constexpr std::string_view kHtml = "an HTML page (the download gave an error page, or one to sign in?)";
constexpr std::string_view kZip =
    "a zip archive, as torch.save writes: export the model with torch.onnx.export, or unpack it";
constexpr std::string_view kPickle =
    "a Python pickle, as torch.save wrote before PyTorch 1.6: export the model with torch.onnx.export";
constexpr std::string_view kCompressed = "a compressed file: unpack it";
constexpr std::string_view kSafetensors =
    "a safetensors file, which has weights but no graph: export the model with torch.onnx.export";

// Each format's own description of its first bytes; of a pickle, protocols 2 to 5.
constexpr std::array kBeginnings = {
    Beginning{"version https://git-lfs", "a git-lfs pointer: run `git lfs pull`"},
    Beginning{std::string_view("PK\3\4", 4), kZip},
    Beginning{"\x80\x02", kPickle},
    Beginning{"\x80\x03", kPickle},
    Beginning{"\x80\x04", kPickle},
    Beginning{"\x80\x05", kPickle},
    Beginning{"\x1F\x8B", kCompressed},          // gzip
    Beginning{"BZh", kCompressed},               // bzip2
    Beginning{"\xFD\x37zXZ", kCompressed},       // xz
    Beginning{"\x28\xB5\x2F\xFD", kCompressed},  // zstd
    Beginning{"\x89HDF\r\n", "an HDF5 file, as Keras writes: convert the model with tf2onnx"},
};

// Texts begin so after white space, in any case.
constexpr std::array kTexts = {
    Beginning{"<!doctype html", kHtml},
    Beginning{"<html", kHtml},
    Beginning{"<?xml", "an XML document (the download gave an error message?)"},
    Beginning{"{", "a JSON text (the download gave an error message?)"},
    Beginning{"[", "a JSON text (the download gave an error message?)"},
};

// A length in eight bytes, then a JSON object of so many.
bool IsSafetensors(std::string_view head) {
  constexpr size_t kLengthBytes = 8;
  return head.size() > kLengthBytes && head.substr(kLengthBytes - 2, 2) == std::string_view("\0\0", 2) &&
         head.substr(kLengthBytes).starts_with("{\"");
}

bool IsText(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) && !absl::ascii_isspace(static_cast<unsigned char>(c));
  });
}

std::optional<std::string_view> WhatBeginsSo(std::string_view head) {
  for (const Beginning& one : kBeginnings) {
    if (head.starts_with(one.bytes)) return one.what;
  }
  if (IsSafetensors(head)) return kSafetensors;
  if (!IsText(head)) return std::nullopt;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(absl::string_view(head.data(), head.size()));
  for (const Beginning& one : kTexts) {
    if (absl::StartsWithIgnoreCase(text, absl::string_view(one.bytes.data(), one.bytes.size()))) return one.what;
  }
  return std::nullopt;
}

}  // namespace

absl::Status NameForeignFile(std::string_view head, const absl::Status& failed) {
  const std::optional<std::string_view> what = WhatBeginsSo(head.substr(0, kTellingBytes));
  return what ? MakeError(failed.code(), "not an ONNX model but %s", *what) : failed;
}

}  // namespace horus
