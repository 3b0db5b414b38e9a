// SPDX-License-Identifier: Apache-2.0
// Rules of the boundary that no caller can bring about from outside: exceptions, and values that a check before kept
// away.
#include "capi/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "capi/callbacks.h"
#include "capi/telemetry.h"

namespace horus::capi {
namespace {

template <typename Exception>
std::string Thrown(horus_status expected, const Exception& exception) {
  horus_error error = HORUS_ERROR_INIT;
  const auto body = [&]() -> absl::Status { throw exception; };
  EXPECT_EQ(Guard(&error, body), expected);
  EXPECT_EQ(error.status, expected);
  EXPECT_EQ(Guard(nullptr, body), expected);
  return error.message;
}

TEST(Guard, TurnsEveryExceptionIntoAStatus) {
  EXPECT_EQ(Thrown(HORUS_ERR_NO_MEMORY, std::bad_alloc()), "an allocation failed");
  EXPECT_EQ(Thrown(HORUS_ERR_NO_MEMORY, std::length_error("vector")), "a count is larger than memory can hold");
  EXPECT_EQ(Thrown(HORUS_ERR_INTERNAL, std::runtime_error("what went wrong")), "what went wrong");
  EXPECT_EQ(Thrown(HORUS_ERR_INTERNAL, 7), "an exception of unknown type");
}

TEST(Error, WhatHasNoCodeOfItsOwnIsInternal) {
  EXPECT_EQ(CodeOf(absl::OkStatus()), HORUS_OK);
  for (const absl::Status& status :
       {absl::UnknownError("?"), absl::InternalError("?"), absl::PermissionDeniedError("?")}) {
    EXPECT_EQ(CodeOf(status), HORUS_ERR_INTERNAL) << status;
  }
}

const GpuTypeId kBeyond(static_cast<uint16_t>(Catalogue::Default()->size()));

TEST(Callbacks, AreNotAskedAboutTypesBeyondTheirCatalogue) {
  const CallbackModel model(Catalogue::Default(), nullptr, nullptr, 1, kUpperProbability);
  EXPECT_EQ(model.Predict({kBeyond, SharingMode::kTimeSlice, 1}, {}, {}).code(), absl::StatusCode::kNotFound);
  const CallbackPolicy policy(Catalogue::Default(), nullptr, nullptr, "mine");
  DeviceCandidate candidate;
  candidate.device.type = kBeyond;
  DeviceScore score;
  EXPECT_EQ(policy.ScoreDevice(candidate, score).message(),
            "GPU type: expected one of the " + std::to_string(Catalogue::Default()->size()) +
                " that policy mine knows, found " + std::to_string(kBeyond.value()));
  EXPECT_EQ(policy.name(), "mine");
}

TEST(Telemetry, TellsFaultsOfTheLibraryWhateverTheLevel) {
  std::vector<std::string> lines;
  horus_metrics_options options = HORUS_METRICS_OPTIONS_INIT;
  options.log_level = HORUS_LOG_ERROR;
  options.log_user = &lines;
  options.log = [](void* user, int32_t level, const char* text) {
    EXPECT_EQ(level, HORUS_LOG_ERROR);
    static_cast<std::vector<std::string>*>(user)->push_back(text);
  };
  const auto telemetry = std::make_shared<Telemetry>(options);
  for (const horus_status status : {HORUS_ERR_INTERNAL, HORUS_ERR_NO_MEMORY, HORUS_ERR_CONFLICT, HORUS_ERR_NOT_FOUND}) {
    horus_error error = HORUS_ERROR_INIT;
    EXPECT_EQ(MeteredCall(telemetry, Call::kApply, &error).End(Fail(&error, status, "why")), status);
  }
  EXPECT_THAT(lines, testing::ElementsAre("apply: INTERNAL: why", "apply: NO_MEMORY: why"));
}

}  // namespace
}  // namespace horus::capi
