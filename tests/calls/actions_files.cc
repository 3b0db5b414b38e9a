// SPDX-License-Identifier: Apache-2.0
// Actions of files: snapshots of the cluster, whole and damaged, in a file of this process; and people's files, which
// libhorus answers with UNSUPPORTED where it was built without their readers.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "calls/arguments.h"
#include "calls/corrupt.h"
#include "calls/harness.h"
#include "capi/handles.h"
#include "support/invariants.h"

namespace horus::calls {
namespace {

const horus_catalogue* const kBuiltIn = nullptr;
const horus_predictor* const kDefault = nullptr;
constexpr const char* kNowhere = "/nowhere/at/all";

// A file's name that no other process uses, always equally long; what is there goes with this.
class ScratchFile {
 public:
  ScratchFile() {
    char name[32];
    std::snprintf(name, sizeof name, "horus-calls-%010d", static_cast<int>(getpid()));
    path_ = std::filesystem::temp_directory_path() / name;
  }
  ~ScratchFile() { std::remove(path()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  [[nodiscard]] const char* path() const { return path_.c_str(); }
  [[nodiscard]] std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

void SnapshotIntoFile(Harness& harness) {
  const ScratchFile file;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_snapshot_file,
                            static_cast<const horus_cluster*>(harness.cluster.get()), kNowhere) == HORUS_ERR_IO,
                  "a file where no folder is");
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_snapshot_file,
                            static_cast<const horus_cluster*>(harness.cluster.get()), file.path()) == HORUS_OK,
                  "a snapshot's file");
  const bool damaged = harness.choices.OneIn(2);
  if (damaged) {
    std::string bytes = file.Read();
    bytes[harness.choices.Below(bytes.size())] ^= static_cast<char>(1 + harness.choices.Below(255));
    if (harness.choices.OneIn(2)) bytes.resize(harness.choices.Below(bytes.size()));
    file.Write(bytes);
  }
  horus_cluster* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_cluster_restore_file, kBuiltIn, file.path(), &out);
  const ClusterHandle restored(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a cluster comes with success alone");
  harness.Require(damaged || status == HORUS_OK, "a snapshot's file is refused");
  if (out != nullptr) {
    harness.Require(out->value.state_hash() == harness.cluster->value.state_hash(), "a restored state differs");
  }
  horus_cluster* none = nullptr;
  harness.Require(HORUS_TRY(harness, kNone, horus_cluster_restore_file, kBuiltIn, kNowhere, &none) == HORUS_ERR_IO &&
                      none == nullptr,
                  "a file that is not there");
}

// One of a few words; hostile ones now and then.
std::string Word(Harness& harness, std::string_view usual) {
  constexpr std::array<const char*, 8> kWrong = {"-1", "1e400", "[]", "{a: b}", "*a", "18446744073709551616",
                                                 "\"", "~"};
  return harness.choices.OneIn(32) ? harness.choices.Of(kWrong) : std::string(usual);
}

void ReadClusterFile(Harness& harness) {
  std::string text = "version: " + Word(harness, "1") + "\nnodes:\n";
  for (uint64_t left = 1 + harness.choices.Below(3); left > 0; --left) {
    text += "  - {name: n" + std::to_string(left) + ", cpu_cores: " + Word(harness, "16") +
            ", memory_gib: " + Word(harness, "64") + ", count: " + Word(harness, "2") +
            ", gpus: [{type: " + Word(harness, harness.choices.Of(kGpuTypes)) + ", count: " + Word(harness, "4") +
            "}]}\n";
  }
  horus_cluster* out = nullptr;
  const horus_status status = HORUS_TRY(harness, kNone, horus_cluster_from_yaml, kBuiltIn, kDefault, "cluster.yaml",
                                        text.c_str(), static_cast<horus_catalogue**>(nullptr), &out);
  const ClusterHandle cluster(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a cluster comes with success alone");
  if (out == nullptr) return;
  const absl::Status inside = CheckInvariants(out->value);
  harness.Require(inside.ok(), std::string(inside.message()).c_str());
}

void ReadJobsFile(Harness& harness) {
  std::string text = "version: 1\njobs:\n";
  for (uint64_t left = 1 + harness.choices.Below(3); left > 0; --left) {
    text += "  - {name: j" + std::to_string(left) + ", id: " + std::to_string(harness.AnyJobId()) +
            ", gpus: " + Word(harness, "1") + ", demand: {any: {gpu_util_pct: " + Word(harness, "[30, 40]") +
            ", gpu_memory_gib: " + Word(harness, "[1, 2]") + "}}}\n";
  }
  horus_job_list* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_job_list_from_yaml, static_cast<const horus_cluster*>(harness.cluster.get()),
                kDefault, "jobs.yaml", text.c_str(), &out);
  const Handle<horus_job_list, horus_job_list_free> list(out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "jobs come with success alone");
  const size_t count = horus_job_list_count(out);
  for (size_t i = 0; i <= count; ++i) {
    Roomy<horus_job> job{HORUS_JOB_INIT};
    const horus_status got =
        HORUS_TRY(harness, kNone, horus_job_list_get, static_cast<const horus_job_list*>(out), i, &job.value);
    if (out != nullptr)
      harness.Require(got == (i < count ? HORUS_OK : HORUS_ERR_NOT_FOUND), "the jobs of a list", count, i);
    if (got == HORUS_OK)
      harness.Require(!harness.jobs.contains(job.value.id), "an id that a resident has", job.value.id);
  }
}

void ReadTraceFile(Harness& harness) {
  const ScratchFile file;
  std::string text = "job_id,submit_s,duration_s,num_gpus\n";
  for (uint64_t row = harness.choices.Below(4); row > 0; --row) {
    text +=
        std::to_string(row) + "," + Word(harness, "10") + "," + Word(harness, "60") + "," + Word(harness, "1") + "\n";
  }
  file.Write(text);
  constexpr std::array<const char*, 6> kFormats = {nullptr, "plain", "openb", "gavel", "pai", "no such format"};
  horus_trace* out = nullptr;
  const horus_status status =
      HORUS_TRY(harness, kNone, horus_trace_from_file, harness.choices.OneIn(8) ? kNowhere : file.path(),
                harness.choices.Of(kFormats), &out);
  harness.Require((status == HORUS_OK) == (out != nullptr), "a trace comes with success alone");
  horus_trace_free(out);
}

}  // namespace

std::vector<Action> FileActions() {
  return {{SnapshotIntoFile, 1}, {ReadClusterFile, 1}, {ReadJobsFile, 1}, {ReadTraceFile, 1}};
}

}  // namespace horus::calls
