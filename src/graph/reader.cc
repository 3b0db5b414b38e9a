// SPDX-License-Identifier: Apache-2.0
// Entry points of the ONNX reader: bytes and files.
#include "graph/reader.h"

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/text.h"
#include "graph/fingerprint.h"
#include "graph/not_onnx.h"
#include "graph/parser.h"

namespace horus {
namespace {

// Read size. Payloads are seeked over, and the block behind each is read for a few fields only: large blocks would make
// a file with weights several times slower than one without.
constexpr int kFileBlockBytes = 8 * 1024;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  // The first bytes, wherever reading has come to; none where they cannot be read.
  [[nodiscard]] std::string Head() const {
    std::string head(kTellingBytes, '\0');
    head.resize(static_cast<size_t>(std::max<ssize_t>(pread(fd_, head.data(), head.size(), 0), 0)));
    return head;
  }

 private:
  int fd_;
};

absl::Status CheckSize(int64_t bytes) {
  if (bytes <= std::numeric_limits<int>::max()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "%d bytes, but a protobuf message has at most %d: weights belong into external data", bytes,
                   std::numeric_limits<int>::max());
}

absl::StatusOr<std::shared_ptr<const Graph>> Read(google::protobuf::io::ZeroCopyInputStream* stream, int bytes,
                                                  const ReadLimits& limits) {
  WireReader in(stream, bytes);
  Parser parser(&in, limits);
  HORUS_RETURN_IF_ERROR(parser.Model());
  HORUS_RETURN_IF_ERROR(LinkScopes(&parser.scopes));
  auto graph = std::make_shared<Graph>(std::move(parser.graph));
  graph->bodies.reserve(parser.scopes.size());
  for (Scope& scope : parser.scopes) graph->bodies.push_back(std::move(scope.body));
  graph->fingerprint = FingerprintOf(*graph);
  return std::shared_ptr<const Graph>(std::move(graph));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Graph>> ReadOnnx(std::span<const uint8_t> bytes, const ReadLimits& limits) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (absl::Status status = CheckSize(static_cast<int64_t>(bytes.size())); !status.ok()) {
    return At("ONNX bytes", NameForeignFile(head, status));
  }
  const int size = static_cast<int>(bytes.size());
  google::protobuf::io::ArrayInputStream stream(bytes.data(), size);
  auto graph = Read(&stream, size, limits);
  if (!graph.ok()) return At("ONNX bytes", NameForeignFile(head, graph.status()));
  return graph;
}

absl::StatusOr<std::shared_ptr<const Graph>> ReadOnnxFile(const std::string& path, const ReadLimits& limits) {
  const std::string place = "ONNX file " + Quoted(path, std::numeric_limits<int16_t>::max());
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || fstat(file.get(), &info) != 0) {
    return MakeError(absl::StatusCode::kUnavailable, "%s: cannot open: %s", place, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return MakeError(absl::StatusCode::kUnavailable, "%s: not a regular file", place);
  if (absl::Status status = CheckSize(info.st_size); !status.ok())
    return At(place, NameForeignFile(file.Head(), status));
  google::protobuf::io::FileInputStream stream(file.get(), kFileBlockBytes);
  auto graph = Read(&stream, static_cast<int>(info.st_size), limits);
  if (stream.GetErrno() != 0) {
    return MakeError(absl::StatusCode::kUnavailable, "%s: cannot read: %s", place, strerror(stream.GetErrno()));
  }
  if (!graph.ok()) return At(place, NameForeignFile(file.Head(), graph.status()));
  return graph;
}

}  // namespace horus
