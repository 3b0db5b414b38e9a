// SPDX-License-Identifier: Apache-2.0
// POSIX file reading and atomic writing.
#include "base/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace horus {
namespace {

constexpr size_t kReadChunkBytes = size_t{1} << 16;

absl::Status FileError(std::string_view what, const std::string& path, int error) {
  return Unavailable("%s: cannot %s: %s", path, what, std::strerror(error));
}

absl::Status NotRegular(const std::string& path) {
  return Unavailable("%s: expected a regular file, found another kind", path);
}

int OpenPatiently(const std::string& path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  // A process that has closed these may still print; not into our file.
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return higher;
}

// EINVAL: a file system or a pipe that has nothing to sync.
bool Synced(int fd) {
  int result;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  return result == 0 || errno == EINVAL;
}

// Closes on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  // Errors of close matter after writing; after EINTR the descriptor is closed all the same.
  [[nodiscard]] bool Close() { return ::close(std::exchange(fd_, -1)) == 0 || errno == EINTR; }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError("write", path, written < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

// Where a link leads, through others if need be; `path` itself where it is none.
std::string Followed(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::filesystem::path at(path);
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code none;
    const std::filesystem::path next = std::filesystem::read_symlink(at, none);
    if (none) break;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

// A new file beside `path`, with the mode of the one that it will replace; else what the user's mask leaves.
int OpenBeside(const std::string& path, const struct stat* old, std::string& name) {
  uint64_t number = 0;  // not of this process: others of its id, in other containers, may write there
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return -1;
  name = path + Formatted(".new-%016x", number);
  const int fd = OpenPatiently(name, O_WRONLY | O_CREAT | O_EXCL, old == nullptr ? 0666 : S_IRUSR | S_IWUSR);
  if (fd >= 0 && old != nullptr && ::fchmod(fd, old->st_mode & 07777) != 0) {
    const int error = errno;
    ::close(fd);
    ::unlink(name.c_str());
    errno = error;
    return -1;
  }
  return fd;
}

// Messages name the file as `path`.
absl::Status WriteAndRename(int fd, const std::string& temporary, const std::string& target, const std::string& path,
                            std::string_view bytes) {
  Descriptor file(fd);
  HORUS_RETURN_IF_ERROR(WriteAll(file.get(), bytes, path));
  if (!Synced(file.get())) return FileError("write", path, errno);
  if (!file.Close()) return FileError("write", path, errno);
  // Opened before, so that a folder that cannot be opened changes nothing.
  const std::string parent = std::filesystem::path(target).parent_path().string();
  const Descriptor folder(OpenPatiently(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY));
  if (folder.get() < 0) return FileError("open the folder of", path, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) return FileError("replace", path, errno);
  if (!Synced(folder.get())) return FileError("sync the folder of the new", path, errno);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(const Descriptor& file, const std::string& path, size_t max_bytes) {
  std::string bytes;
  for (;;) {
    const size_t size = bytes.size();
    bytes.resize(size + kReadChunkBytes);
    const ssize_t read = ::read(file.get(), bytes.data() + size, kReadChunkBytes);
    if (read < 0 && errno != EINTR) return FileError("read", path, errno);
    bytes.resize(size + static_cast<size_t>(read < 0 ? 0 : read));
    if (bytes.size() > max_bytes) {
      struct stat info = {};
      const bool sized = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
      const std::string found = sized ? std::to_string(info.st_size) : "more";  // a pipe has no size
      return ResourceExhausted("%s: expected at most %d bytes, found %s", path, max_bytes, found);
    }
    if (read == 0) return bytes;
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const Descriptor file(OpenPatiently(path, O_RDONLY));
  if (file.get() < 0) return FileError("open", path, errno);
  return ReadAll(file, path, max_bytes);
}

absl::StatusOr<std::string> ReadNamedFile(const std::string& path, size_t max_bytes) {
  const Descriptor file(OpenPatiently(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info = {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return FileError("open", path, errno);
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  return ReadAll(file, path, max_bytes);
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string target = Followed(path);
  struct stat old = {};
  const bool replaces = ::stat(target.c_str(), &old) == 0;
  if (!replaces && errno != ENOENT) return FileError("write", path, errno);
  if (replaces && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) return NotRegular(path);
  std::string temporary;
  const int fd = OpenBeside(target, replaces ? &old : nullptr, temporary);
  if (fd < 0) return FileError("write", path, errno);
  absl::Status status = WriteAndRename(fd, temporary, target, path, bytes);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status WriteFileOrDevice(const std::string& path, std::string_view bytes) {
  struct stat info = {};
  const bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  if (!special) return WriteFileAtomically(path, bytes);
  const Descriptor file(OpenPatiently(path, O_WRONLY));
  if (file.get() < 0) return FileError("open", path, errno);
  return WriteAll(file.get(), bytes, path);
}

std::string PathBeside(const std::string& file, const std::string& relative) {
  const std::filesystem::path target(relative);
  if (target.is_absolute()) return relative;
  return (std::filesystem::path(file).parent_path() / target).lexically_normal().string();
}

std::string OnePathOf(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path found = std::filesystem::canonical(path, failed);
  return failed ? path : found.string();
}

}  // namespace horus
