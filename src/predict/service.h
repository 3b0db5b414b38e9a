// SPDX-License-Identifier: Apache-2.0
// Service: a model that is served under a load: its memory, its times, and how much others may slow it.
//
// Enters:  a graph with the dimensions batch, seq and past (graph/from_config.h) and a run of an engine that leaves
// them
//          open; or another graph, that answers in one step, and a run whose batch is the largest that its server
//          makes; the load and the times promised; GPU types.
// Leaves:  a Service for each GPU type, for one GPU of those that share the model.
// Units:   us, tokens, requests/s, MiB.
// Cost:    16 analyses (predictor.h), then one more and about 1 ms a GPU type.
//
// Continuous batching is a queue whose requests are all served at once, each slower for the others: one step gives
// every running request a token, and the prompts of those that come take their time from all (chunked prefill). With
// independent users the number that run is the load times the time of a request, which grows with that number: a fixed
// point. docs/services.md says what it was held against. Who answers in one step is served in batches: batch_queue.h.
#pragma once

#include "predict/predictor.h"

namespace horus {

// What somebody measured of the service: means, with so many users who ask again as soon as they are answered, and all
// memory of the GPU. 0 = not measured, of one of the times.
struct ServiceRun {
  std::string gpu;  // type
  double concurrency = 0;
  double first_token_us = 0, token_us = 0;
  friend bool operator==(const ServiceRun&, const ServiceRun&) = default;
};

// What is asked of a service. Exactly one of the first two is positive.
struct ServiceLoad {
  double requests_per_s = 0;         // of independent users: arrivals are Poisson
  double concurrency = 0;            // users who ask again as soon as they are answered
  double tokens_in = 0;              // of a prompt, mean; 0, and of the answer, of a model that answers in one step
  double tokens_out = 0;             // of an answer, mean
  double longest = 0;                // tokens of prompt and answer of the longest request; 0 = four times the mean,
                                     // at most what the model was made for
  double first_token_us = 0;         // promised time from a request to its first token, or its one answer; 0 = none
  double token_us = 0;               // promised time of each further token; 0 = none
  double confidence = 0.9;           // share of the requests that must keep them; kLeastProbability to kMostProbability
  std::vector<ServiceRun> measured;  // correct the times on their GPU type; at most kMostServiceRuns
  friend bool operator==(const ServiceLoad&, const ServiceLoad&) = default;
};
inline constexpr double kMostTokens = 1 << 24;   // of a prompt, an answer or the longest request
inline constexpr double kMostServiceRate = 1e6;  // requests/s, and users at once
inline constexpr size_t kMostServiceRuns = 64;
inline constexpr int64_t kUsualBatch =
    32;  // the largest of a server, where the run names none: trtllm-serve embeddings
// A model that answers in one step, without an engine's cache.
[[nodiscard]] inline bool AnswersAtOnce(const ServiceLoad& load) { return load.tokens_in == 0 && load.tokens_out == 0; }
inline constexpr double kLeastServiceConfidence = 0.5;  // and the most: interference/laws.h has the same
inline constexpr double kMostServiceConfidence = 0.999;

enum class ServiceVerdict : uint8_t {
  kServed = 0,
  kNoRoom,       // the model with the longest request does not fit the GPU
  kOverloaded,   // more requests than this GPU can serve
  kLate,         // a promised time is not kept, even alone
  kUnsupported,  // the engine does not run on this GPU type, or not in these numbers: WhyNot
};

struct ServiceTime {
  double estimate_us = 0;  // mean
  double upper_us = 0;     // of the share of the requests that `confidence` names
};

struct Service {
  ServiceVerdict verdict = ServiceVerdict::kServed;
  // Memory of an engine that takes no more than the load needs; `cache` is for `cache_tokens`.
  double weights_mib = 0, activations_mib = 0, engine_mib = 0, cache_mib = 0;
  double cache_tokens = 0;
  double room_mib = 0;      // of the cache: for requests that run at once because neighbours slow the service
  double running = 0;       // requests that are served at once, mean
  double longest = 0;       // tokens of the longest request, the default filled in
  double most_running = 0;  // that the engine should admit at once (--max-num-seqs)
  ServiceTime first_token, token;
  double requests_per_s = 0, tokens_per_s = 0;  // served; tokens of answers
  double most_requests_per_s = 0;               // with all memory of the GPU, promises kept; 0 of users who ask again
  double busy = 0;                              // share of all time in which a step runs
  int64_t gpus = 1;                             // that share the model
  std::string type_arguments;                   // of EngineArguments: number types and GPUs, as the engine names them
  std::string engine_arguments;                 // EngineArguments on the GPU type; empty where it is not served
  double largest_slowdown = 0;                  // at which load and promises are still kept; below 1: not even alone
  Demand demand;  // of one GPU, for placement: memory is what the engine must be told to take

  // The times beside others, up to the slowdown at which more come than are served.
  struct Slowed {
    double slowdown = 1;
    ServiceTime first_token, token;
  };
  std::vector<Slowed> slowed;  // ascending
  [[nodiscard]] std::optional<Slowed> At(double slowdown) const;

  [[nodiscard]] double memory_mib() const { return weights_mib + activations_mib + engine_mib + cache_mib; }
};

// That tell an engine to take no more, on a GPU or a slice with that memory: "--gpu-memory-utilization 0.25 ...", or a
// server how large a batch it may make. vLLM
// 0.11, SGLang 0.5, trtllm-serve 1.0 and later; shares of memory only where the engine counts them of the whole.
[[nodiscard]] std::string EngineArguments(Framework engine, const Service& service, const GpuType& gpu,
                                          int64_t mem_mib);

// What the engine would take otherwise: one GPU, and the numbers of the checkpoint.
[[nodiscard]] std::string TypeArguments(const Graph& graph, const RunSpec& run, int64_t gpus, bool has_states);

// Tokens that one step takes of prompts, vLLM's default for servers: of large GPUs but A100.
inline constexpr double kChunkTokens = 8192, kSmallChunkTokens = 2048;
[[nodiscard]] double ChunkTokens(const GpuType& gpu);

// Why the engine does not run so on the GPU type: "vllm needs compute capability 7.0, found 6.0"; empty where it does.
[[nodiscard]] std::string WhyNot(const RunSpec& run, const GpuType& gpu);

// Errors: INVALID_ARGUMENT (a field of the load; a run of no engine, or that binds batch, seq or past; a graph without
// those dimensions where the load has tokens), and those of Analyse.
[[nodiscard]] absl::StatusOr<std::vector<Service>> PredictServices(const Predictor& predictor,
                                                                   const std::shared_ptr<const Graph>& graph,
                                                                   const RunSpec& run, const ServiceLoad& load,
                                                                   std::span<const GpuType* const> gpus);

// What is to be found, the load being as it is in all else.
enum class ServiceUnknown : uint8_t {
  kLoad,      // the most requests/s, in steps of kLoadStep; or users, where the load has users
  kContext,   // the most tokens of the longest request
  kReplicas,  // the fewest copies that share the load evenly, at most kMostReplicas
};
inline constexpr double kLoadStep = 0.01;
inline constexpr int64_t kMostReplicas = 64;  // beyond it a promise is kept by nearly idle GPUs alone

struct ServiceSolution {
  double value = 0;  // requests/s, users, tokens or copies; 0 = none
  double next = 0;   // that is not served any more (of copies: one fewer); 0 = the range ends at `value`
  Service service;   // one copy at `value`; without it at the least load. Without a demand
  Service beyond;    // at `next`
};

// One solution a GPU type, by bisection: about 30 times 2 ms each. `service` is what PredictServices says at `value`.
// Errors: as PredictServices.
[[nodiscard]] absl::StatusOr<std::vector<ServiceSolution>> SolveServices(const Predictor& predictor,
                                                                         const std::shared_ptr<const Graph>& graph,
                                                                         const RunSpec& run, const ServiceLoad& load,
                                                                         ServiceUnknown unknown,
                                                                         std::span<const GpuType* const> gpus);

}  // namespace horus
