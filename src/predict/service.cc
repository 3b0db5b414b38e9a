// SPDX-License-Identifier: Apache-2.0
// A served model as a queue over the times of its steps.
#include "predict/service.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "base/status.h"
#include "base/units.h"
#include "graph/from_config.h"
#include "predict/batch_queue.h"

namespace horus {
namespace {

constexpr double kMib = static_cast<double>(kBytesPerMib);

// Of the times to the first token of served nets (`bench llm --only steps`, chosen by their median error): tokenising,
// HTTP and the engine's queue; and the least time of a prompt, whose kernels the host launches one by one.
constexpr double kEntryUs = 30'000;
constexpr double kPromptKernelUs = 80;
// Assumptions, down to kPackedTokens. What the driver and the placer keep free of a GPU.
constexpr double kKeptFreeMib = 640, kKeptFreeShare = 0.05;  // whichever is more
constexpr double kBlockTokens = 16;                          // of vLLM's cache
double WholeBlocks(double tokens, double block) { return block * std::ceil(tokens / block); }
// CUDA graphs of the decoding steps; buffers of collectives where GPUs share a model.
constexpr double kGraphsMib = 1024, kCollectivesMib = 1024;
constexpr double kPackedTokens = 16384;  // of prompts that are computed together, where many wait

// Measured over predicted, at most, of nine in ten rows of served nets (`bench llm --only steps`, served_bounds).
// That of the first token is for two that run, and grows with the root of the root of their number. Where the net was
// measured on the GPU type three times or more, half of its logarithm is left.
constexpr double kTokenUpper = 1.3, kFirstTokenUpper = 2;
constexpr double kUpperConfidence = 0.9;
constexpr double kMeasuredWidth = 0.5;
constexpr size_t kEnoughRuns = 3;
constexpr double kMostCorrection = 20;  // beyond it the units are wrong, or it is another service

constexpr double kLongestOverMean = 4;
constexpr double kMemoryConfidence = 0.99;  // of the number that run at once
constexpr double kMostSlowdown = static_cast<double>(kMaxDemandSlowdown);
// A service gets cache and admits requests for this slowdown, or as far as its promises reach: bounds of two jobs on a
// GPU are mostly below it. One that promises nothing is slowed no further than the other. Both chosen.
constexpr double kPlannedSlowdown = 6, kUnpromisedSlowdown = 2;
constexpr double kLeastBusy = 1e-6, kLeastShare = 0.002;
static_assert(kLeastShare > static_cast<double>(kNeverServed));
constexpr float kMostDuty = 0.999F;  // of independent users: some time nobody is there (KeepsWork)
constexpr int kHalvings = 40;

constexpr std::array<int64_t, 11> kRunning = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr double kMostRunning = static_cast<double>(kRunning.back());

absl::Status CheckNumber(const char* field, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("service: %s: expected %g to %g, found %g", field, least, most, value);
}

// Tokens that the model was made for; 0 = unknown.
double ContextOf(const Graph& graph) {
  double context = 0;
  return absl::SimpleAtod(std::string(SaidOf(graph, "context")), &context) ? context : 0;
}

// Tokens of the longest request. Unless it is stated, what the model takes at most bounds it.
double LongestOf(const ServiceLoad& load, double context) {
  if (load.longest > 0) return load.longest;
  const double usual = kLongestOverMean * (load.tokens_in + load.tokens_out);
  return context > 0 ? std::min(usual, context) : usual;
}

bool HasDimension(const Graph& graph, std::string_view name) {
  return std::ranges::find(graph.symbols, name) != graph.symbols.end();
}

absl::Status Check(const ServiceLoad& load, const Graph& graph, const RunSpec& run) {
  HORUS_RETURN_IF_ERROR(CheckNumber("requests_per_s", load.requests_per_s, 0, kMostServiceRate));
  HORUS_RETURN_IF_ERROR(CheckNumber("concurrency", load.concurrency, 0, kMostServiceRate));
  if ((load.requests_per_s > 0) == (load.concurrency > 0)) {
    return InvalidArgument("service: expected either requests_per_s or concurrency above 0, found %g and %g",
                           load.requests_per_s, load.concurrency);
  }
  if (load.concurrency > 0) HORUS_RETURN_IF_ERROR(CheckNumber("concurrency", load.concurrency, 1, kMostServiceRate));
  const bool at_once = AnswersAtOnce(load) && !HasDimension(graph, "past");
  if (!at_once) HORUS_RETURN_IF_ERROR(CheckNumber("tokens_in", load.tokens_in, 1, kMostTokens));
  if (!at_once) HORUS_RETURN_IF_ERROR(CheckNumber("tokens_out", load.tokens_out, 1, kMostTokens));
  if (load.longest != 0)
    HORUS_RETURN_IF_ERROR(CheckNumber("longest", load.longest, load.tokens_in + load.tokens_out, 2 * kMostTokens));
  HORUS_RETURN_IF_ERROR(CheckNumber("first_token_us", load.first_token_us, 0, 1e12));
  HORUS_RETURN_IF_ERROR(CheckNumber("token_us", load.token_us, 0, 1e12));
  if (load.measured.size() > kMostServiceRuns)
    return InvalidArgument("service: measured: expected at most %d, found %d", kMostServiceRuns, load.measured.size());
  for (size_t i = 0; i < load.measured.size(); ++i) {
    const ServiceRun& one = load.measured[i];
    const std::string at = absl::StrFormat("measured[%d]: ", i);
    HORUS_RETURN_IF_ERROR(CheckNumber((at + "concurrency").c_str(), one.concurrency, 1, kMostServiceRate));
    HORUS_RETURN_IF_ERROR(CheckNumber((at + "first_token_us").c_str(), one.first_token_us, 0, 1e12));
    HORUS_RETURN_IF_ERROR(CheckNumber((at + "token_us").c_str(), one.token_us, 0, 1e12));
    if (one.first_token_us == 0 && one.token_us == 0)
      return InvalidArgument("service: %sexpected first_token_us or token_us above 0, found none", at);
  }
  // The float that C has for the most is a little above it.
  HORUS_RETURN_IF_ERROR(CheckNumber("confidence", load.confidence, kLeastServiceConfidence,
                                    static_cast<double>(static_cast<float>(kMostServiceConfidence))));
  if (at_once) {
    if (run.mode != RunMode::kInference)
      return InvalidArgument("service: mode: expected inference, found %s", Name(run.mode));
    if (load.token_us == 0 && load.measured.empty()) return absl::OkStatus();
    return InvalidArgument("service: %s: expected none of a model that answers in one step, found some",
                           load.token_us > 0 ? "token_us" : "measured");
  }
  constexpr std::array<std::string_view, 3> kDims = {"batch", "seq", "past"};
  const auto missing =
      std::ranges::find_if(kDims, [&graph](std::string_view dim) { return !HasDimension(graph, dim); });
  if (missing != kDims.end()) {
    return InvalidArgument(
        "service: expected no tokens, or a language model (a config.json or a known name), found a graph without the "
        "dimension %s",
        *missing);
  }
  for (const auto& [dim, size] : run.dims.dims) {
    if (std::ranges::find(kDims, dim) != kDims.end())
      return InvalidArgument("service: %s: expected none (the load decides), found %d", dim, size);
  }
  const double context = ContextOf(graph);
  const double asked = std::max(load.longest, load.tokens_in + load.tokens_out);
  if (context > 0 && asked > context) {
    return InvalidArgument("service: %s: expected at most the %g tokens that the model was made for, found %g",
                           load.longest > 0 ? "longest" : "tokens_in and tokens_out", context, asked);
  }
  if (!IsEngine(run.framework)) {
    return InvalidArgument("service: framework: expected an engine (vllm, tensorrt-llm or sglang), found '%s'",
                           Name(run.framework));
  }
  if (run.dims.batch != 0)
    return InvalidArgument("service: batch: expected none (the load decides), found %d", run.dims.batch);
  return absl::OkStatus();
}

// Measured over predicted, on one GPU type.
struct Correction {
  double token = 1, first = 1, first_width = 1;
};

// What holds on every GPU type.
struct Steps {
  std::array<EngineStep, kRunning.size()> decode;  // one token of each of so many requests
  // A prompt alone, in steps of kSmallChunkTokens and of kChunkTokens, and how many there are of each.
  std::array<std::vector<std::pair<EngineStep, double>>, 2> prompt;
  EngineStep packed;  // `prompts` of them together, where they are several
  double prompts = 1;
  double weights = 0, bytes_per_token = 0;  // of the cache
  double bytes_per_request = 0;             // states of linear attention
  double block = kBlockTokens;              // tokens that the cache is given out in
  double activations = 0, small_activations = 0;
  bool parallel = false;
};

class Analyser {
 public:
  Analyser(const std::shared_ptr<const Graph>& graph, const RunSpec& run) : graph_(graph), run_(run) {}
  [[nodiscard]] absl::StatusOr<JobProfile> operator()(double batch, double seq, double past) const {
    RunSpec run = run_;
    const auto whole = [](double value) { return std::max(int64_t{1}, static_cast<int64_t>(std::llround(value))); };
    run.dims.batch = whole(batch);
    run.dims.dims.emplace_back("seq", whole(seq));
    if (past > 0) run.dims.dims.emplace_back("past", whole(past));
    return Analyse(graph_, run);
  }

 private:
  const std::shared_ptr<const Graph>& graph_;
  const RunSpec& run_;
};

double Activations(const StepMemory& memory) {
  return static_cast<double>(memory.Peak() - memory.weights - memory.inputs - memory.context);
}

double KernelsOf(const EngineStep& step) {
  double kernels = 0;
  for (const auto& [op, count] : step.operators) kernels += count;
  for (const auto& [op, count] : step.plain) kernels += op.kernels * count;
  return kernels;
}

// Tokens of a running request in the cache, on average over its answer.
double HeldTokens(const ServiceLoad& load) { return load.tokens_in + load.tokens_out / 2; }

// vLLM keeps states and keys in pages of one size: a block has so many tokens that a layer's page holds a state, and
// the layers with states are padded to groups as large as that of attention (HybridAttentionMambaModelConfig).
void ShareBlocks(Steps& steps) {
  double linear = 0, attention = 0;
  for (const auto& [op, count] : steps.decode.front().operators) {
    if (op.kind == OperatorKind::kLinearDecode) linear += count;
    if (op.kind == OperatorKind::kDecode || op.kind == OperatorKind::kLatentDecode) attention += count;
  }
  if (!(steps.bytes_per_request > 0 && steps.bytes_per_token > 0 && linear > 0 && attention > 0)) return;
  const double tokens = steps.bytes_per_request / linear / (steps.bytes_per_token / attention);
  steps.block = WholeBlocks(tokens, kBlockTokens);
  steps.bytes_per_request = std::ceil(linear / attention) * steps.block * steps.bytes_per_token;
}

// The steps of a prompt: a chunk's time grows evenly with the tokens before it, so that the first, the middle and the
// last one stand for all (Simpson's rule).
absl::StatusOr<std::vector<std::pair<EngineStep, double>>> ChunksOf(const Analyser& analyse, double tokens,
                                                                    double chunk) {
  std::vector<std::pair<EngineStep, double>> steps;
  const auto add = [&](double seq, double past, double count) {
    HORUS_ASSIGN_OR_RETURN(JobProfile job, analyse(1, seq, past));
    steps.emplace_back(std::move(job.engine), count);
    return absl::OkStatus();
  };
  const double whole = std::floor(tokens / chunk), last = chunk * (whole - 1);
  if (whole == 1) HORUS_RETURN_IF_ERROR(add(chunk, 0, 1));
  for (const auto& [at, share] : {std::pair(0.0, 1.0 / 6), std::pair(0.5, 4.0 / 6), std::pair(1.0, 1.0 / 6)}) {
    if (whole > 1) HORUS_RETURN_IF_ERROR(add(chunk, at * last, share * whole));
  }
  if (const double rest = tokens - whole * chunk; rest > 0) HORUS_RETURN_IF_ERROR(add(rest, whole * chunk, 1));
  return steps;
}

absl::StatusOr<Steps> Measure(const Analyser& analyse, const ServiceLoad& load, Framework engine) {
  Steps steps;
  for (size_t i = 0; i < kRunning.size(); ++i) {
    HORUS_ASSIGN_OR_RETURN(JobProfile job, analyse(static_cast<double>(kRunning[i]), 1, HeldTokens(load)));
    steps.decode[i] = std::move(job.engine);
    if (i == 0) steps.weights = static_cast<double>(job.memory.weights);
    if (i == 0) {
      HORUS_ASSIGN_OR_RETURN(const JobProfile longer, analyse(1, 1, HeldTokens(load) + kSmallChunkTokens));
      steps.bytes_per_token = (longer.cost.cache_bytes - job.cost.cache_bytes) / kSmallChunkTokens;
      steps.bytes_per_request =
          job.cost.cache_bytes - steps.bytes_per_token * (std::max(1.0, std::round(HeldTokens(load))) + 1);
    }
  }
  if (engine == Framework::kVllm) ShareBlocks(steps);
  steps.parallel = std::ranges::any_of(steps.decode.front().operators,
                                       [](const auto& one) { return one.first.kind == OperatorKind::kAllReduce; });
  HORUS_ASSIGN_OR_RETURN(steps.prompt[0], ChunksOf(analyse, load.tokens_in, kSmallChunkTokens));
  steps.prompt[1] = steps.prompt[0];
  if (load.tokens_in > kSmallChunkTokens)
    HORUS_SET_OR_RETURN(steps.prompt[1], ChunksOf(analyse, load.tokens_in, kChunkTokens));
  steps.prompts = std::max(1.0, std::floor(kPackedTokens / load.tokens_in));
  if (steps.prompts > 1) {
    HORUS_ASSIGN_OR_RETURN(JobProfile packed, analyse(steps.prompts, load.tokens_in, 0));
    steps.packed = std::move(packed.engine);
  }
  HORUS_ASSIGN_OR_RETURN(const JobProfile chunk, analyse(1, kChunkTokens, 0));
  steps.activations = Activations(chunk.memory);
  HORUS_ASSIGN_OR_RETURN(const JobProfile small, analyse(1, kSmallChunkTokens, 0));
  steps.small_activations = Activations(small.memory);
  return steps;
}

// A load's times with some slowdown.
struct Point {
  double running = 0, rate = 0;  // requests/s
  double busy = 1;               // share of all time in which a step runs
  ServiceTime first_token, token;
};

bool Promises(const ServiceLoad& load) { return load.token_us > 0 || load.first_token_us > 0; }

bool Keeps(const ServiceLoad& load, const std::optional<Point>& point) {
  return point.has_value() && (load.token_us == 0 || point->token.upper_us <= load.token_us) &&
         (load.first_token_us == 0 || point->first_token.upper_us <= load.first_token_us);
}

// The largest value up to `most` that `takes` takes, where it takes all below; 0: none from `least` on.
double Largest(double least, double most, const auto& takes) {
  if (!takes(least)) return 0;
  if (takes(most)) return most;
  double low = least, high = most;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    (takes(middle) ? low : high) = middle;
  }
  return low;
}

ServiceLoad WithRate(ServiceLoad load, double rate) {
  load.requests_per_s = rate;
  return load;
}

// The most that is served and the times alone; `at`: those of a load, with all memory of the GPU. Nullopt only of
// requests so long that not even one a day is served.
std::optional<Point> ServeAlone(const ServiceLoad& load, const auto& at, Service& service) {
  std::optional<Point> point = at(load);
  if (load.requests_per_s > 0) {
    // Down to a request a day; the fastest any GPU could be asked for is far above what one serves.
    constexpr double kLeastRate = 1e-5;
    service.most_requests_per_s =
        Largest(kLeastRate, kMostServiceRate, [&](double rate) { return Keeps(load, at(WithRate(load, rate))); });
    // Beyond capacity the figures are those at capacity.
    if (!point.has_value()) {
      const double most =
          Largest(kLeastRate, load.requests_per_s, [&](double rate) { return at(WithRate(load, rate)).has_value(); });
      point = at(WithRate(load, most));
      service.verdict = ServiceVerdict::kOverloaded;
    }
  }
  if (point.has_value()) {
    service.running = point->running;
    service.first_token = point->first_token;
    service.token = point->token;
    service.requests_per_s = point->rate;
    service.tokens_per_s = point->rate * load.tokens_out;
  }
  service.busy = load.requests_per_s == 0 ? 1 : std::max(point.has_value() ? point->busy : 0, kLeastBusy);
  return point;
}

// What neighbours make of it; `at`: the times of the load with a slowdown, in the memory that it is given.
void ServeSlowed(const ServiceLoad& load, const std::optional<Point>& alone, bool fits, const auto& at,
                 Service& service) {
  for (const double slowdown : {1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 50.0, kMostSlowdown}) {
    if (const auto here = at(slowdown)) service.slowed.push_back({slowdown, here->first_token, here->token});
  }
  service.largest_slowdown =
      std::min(Largest(1, kMostSlowdown, [&](double slowdown) { return Keeps(load, at(slowdown)); }),
               Promises(load) ? kMostSlowdown : kUnpromisedSlowdown);
  if (!fits) {
    service.verdict = ServiceVerdict::kNoRoom;
    service.most_requests_per_s = 0;
  } else if (service.largest_slowdown == 0 && service.verdict == ServiceVerdict::kServed) {
    service.verdict = ServiceVerdict::kLate;
  }
  if (service.largest_slowdown == 0) {
    // By how much it falls short: of the load, or of the time that is missed most.
    const Point point = alone.value_or(Point{});
    double share = service.verdict == ServiceVerdict::kOverloaded ? point.rate / load.requests_per_s : 1;
    if (load.token_us > 0) share = std::min(share, load.token_us / point.token.upper_us);
    if (load.first_token_us > 0) share = std::min(share, load.first_token_us / point.first_token.upper_us);
    service.largest_slowdown = std::clamp(share, kLeastShare, 0.999);
  }
}

// The times of a load on one GPU type.
class Queue {
 public:
  Queue(const Steps& steps, const ServiceLoad& load, const GpuType& gpu, const Correction& correction = {})
      : load_(load), correction_(correction) {
    for (size_t i = 0; i < kRunning.size(); ++i) step_us_[i] = TimeOf(steps.decode[i], gpu).step_us;
    const auto& prompt = steps.prompt[ChunkTokens(gpu) == kChunkTokens ? 1 : 0];
    double prompt_us = 0;
    for (const auto& [step, count] : prompt) prompt_us += count * TimeOf(step, gpu).device_us;
    packed_us_ = prompt_us;
    if (steps.prompts > 1) packed_us_ = std::min(prompt_us, TimeOf(steps.packed, gpu).device_us / steps.prompts);
    prompt_us_ = std::max(prompt_us, kPromptKernelUs * KernelsOf(prompt.front().first));
  }

  // At most so many are served at once; all times are `slowdown` times those alone.
  struct State {
    double most = kMostRunning;
    double slowdown = 1;
  };

  // The load's times; nullopt: more come than are served.
  [[nodiscard]] std::optional<Point> At(const ServiceLoad& load, const State& state) const {
    Point point;
    if (load.concurrency > 0) {
      point.running = std::min(load.concurrency, state.most);
      // Requests that wait for others to end: the time of all users' requests is that of those who run.
      const double others = point.running - 1;
      const double token_us = TokenUs(others, state);
      double request_us = FirstUs(others, 0, state) + load.tokens_out * token_us;
      point.rate = point.running / request_us * kUsPerS;
      // Nobody waits for a prompt of his own.
      const double first_us = FirstUs(others, point.rate * others / point.running, state) +
                              (load.concurrency - point.running) / point.rate * kUsPerS;
      point.token = {token_us, token_us * TokenUpper()};
      point.first_token = {first_us, first_us * FirstUpper(point.running)};
      return point;
    }
    const std::optional<double> running = RunningAt(load.requests_per_s, state);
    if (!running.has_value()) return std::nullopt;
    point.running = *running;
    point.rate = load.requests_per_s;
    point.busy = -std::expm1(-*running);
    point.token.estimate_us = TokenUs(point.running, state);
    point.first_token.estimate_us = FirstUs(point.running, point.rate, state);
    // The number that run is Poisson, as where everybody is served at once.
    const double many = Quantile(point.running, load.confidence);
    const double served = std::min(many, state.most);
    const double wait_us = many > served ? (many - served) / point.rate * kUsPerS : 0;
    point.token.upper_us = TokenUs(served, state) * TokenUpper();
    point.first_token.upper_us = (FirstUs(served, point.rate, state) + wait_us) * FirstUpper(point.running);
    return point;
  }

  static double Quantile(double running, double confidence) {
    return running + DeviationsAt(confidence) * std::sqrt(running);
  }

 private:
  [[nodiscard]] double StepUs(double running) const {
    const double at = std::clamp(running, 1.0, kMostRunning);
    const size_t high = static_cast<size_t>(
        std::lower_bound(kRunning.begin() + 1, kRunning.end() - 1, static_cast<int64_t>(std::ceil(at))) -
        kRunning.begin());
    const auto low_at = static_cast<double>(kRunning[high - 1]), high_at = static_cast<double>(kRunning[high]);
    return step_us_[high - 1] + (step_us_[high] - step_us_[high - 1]) * (at - low_at) / (high_at - low_at);
  }
  // As far as the confidence goes, times are lognormal.
  [[nodiscard]] double TokenUpper() const { return std::pow(kTokenUpper, deviations_); }
  [[nodiscard]] double FirstUpper(double running) const {
    const double upper = kFirstTokenUpper * std::sqrt(std::sqrt(std::max(1.0, running / 2)));
    return std::pow(upper, deviations_ * correction_.first_width);
  }
  // Of a request beside `others`: a step of all, and the prompts of those who replace the others meanwhile.
  [[nodiscard]] double TokenUs(double others, const State& state) const {
    return correction_.token * state.slowdown * (StepUs(1 + others) + others * packed_us_ / load_.tokens_out);
  }
  // The step that runs, the prompt itself, and prompts that came before it (M/D/1 of their own).
  [[nodiscard]] double FirstUs(double others, double rate, const State& state) const {
    const double packed_us = state.slowdown * packed_us_;
    const double busy = std::min(rate * packed_us / kUsPerS, kMostBusy);
    return correction_.first *
           (kEntryUs + state.slowdown * (StepUs(1 + others) + prompt_us_) + busy / (2 * (1 - busy)) * packed_us);
  }
  // The smallest number that run with `rate` requests/s: rate x the time of one among so many.
  [[nodiscard]] std::optional<double> RunningAt(double rate, const State& state) const {
    if (rate * state.slowdown * packed_us_ / kUsPerS >= kMostBusy) return std::nullopt;
    const auto above = [&](double running) {
      return running >= rate / kUsPerS * (FirstUs(running, rate, state) + load_.tokens_out * TokenUs(running, state));
    };
    double low = 0, high = 0;
    for (double next = 1; !above(high); next *= 2) {
      if (high >= state.most) return std::nullopt;
      low = high;
      high = std::min(next, state.most);
    }
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (above(middle) ? high : low) = middle;
    }
    return high;
  }

  static constexpr double kMostBusy = 0.98;  // with prompts: beyond it the wait has no mean worth naming
  const ServiceLoad& load_;
  const Correction correction_;
  const double deviations_ = DeviationsAt(load_.confidence) / DeviationsAt(kUpperConfidence);
  std::array<double, kRunning.size()> step_us_ = {};
  double prompt_us_ = 0, packed_us_ = 0;
};

// Whatever was measured of it, it is the same service.
uint64_t HashOf(const ServiceLoad& load) {
  uint64_t hash = 0;
  for (const double value : {load.requests_per_s, load.concurrency, load.tokens_in, load.tokens_out, load.longest,
                             load.first_token_us, load.token_us, load.confidence}) {
    hash = CombineHash(hash, std::bit_cast<uint64_t>(value));
  }
  return hash;
}

int64_t WholeUs(double us) { return static_cast<int64_t>(std::min(std::ceil(us), 1e13)); }

// `whole`: the engine as it was measured, with all memory of the GPU.
absl::StatusOr<Correction> CorrectionOf(const Steps& steps, const ServiceLoad& load, const GpuType& gpu,
                                        const Queue::State& whole) {
  const Queue queue(steps, load, gpu);
  std::vector<double> tokens, firsts;
  const auto add = [&](size_t at, const char* time, double measured, double predicted, std::vector<double>& to) {
    if (measured == 0) return absl::OkStatus();
    const double ratio = measured / predicted;
    to.push_back(ratio);
    if (ratio >= 1 / kMostCorrection && ratio <= kMostCorrection) return absl::OkStatus();
    constexpr double kUsPerMs = 1e3;
    return InvalidArgument(
        "service: measured[%d]: %s: expected within %g times of the predicted %.3g ms, found %.3g ms", at, time,
        kMostCorrection, predicted / kUsPerMs, measured / kUsPerMs);
  };
  for (size_t i = 0; i < load.measured.size(); ++i) {
    const ServiceRun& run = load.measured[i];
    if (run.gpu != gpu.name) continue;
    ServiceLoad there = load;
    there.requests_per_s = 0;
    there.concurrency = run.concurrency;
    const Point point = *queue.At(there, whole);  // of users who ask again there is always one
    HORUS_RETURN_IF_ERROR(add(i, "a further token", run.token_us, point.token.estimate_us, tokens));
    HORUS_RETURN_IF_ERROR(add(i, "the first token", run.first_token_us, point.first_token.estimate_us, firsts));
  }
  Correction correction;
  if (!tokens.empty()) correction.token = Median(tokens);
  if (!firsts.empty()) correction.first = Median(firsts);
  if (firsts.size() >= kEnoughRuns) correction.first_width = kMeasuredWidth;
  return correction;
}

// All but the demand.
absl::StatusOr<Service> ServeOn(const Steps& steps, const ServiceLoad& load, const GpuType& gpu) {
  Service service;
  service.weights_mib = steps.weights / kMib;
  service.activations_mib = (ChunkTokens(gpu) == kChunkTokens ? steps.activations : steps.small_activations) / kMib;
  service.engine_mib =
      static_cast<double>(std::max<int64_t>(0, gpu.context_mib)) + kGraphsMib + (steps.parallel ? kCollectivesMib : 0);
  const double longest = service.longest = load.longest;
  const auto gpu_mib = static_cast<double>(gpu.mem_mib);
  const double free_mib = gpu_mib - std::max(kKeptFreeMib, kKeptFreeShare * gpu_mib) - service.memory_mib();
  // Of a request's last block half is empty; with the blocks of plain caches that is nothing.
  const double held = HeldTokens(load) + (steps.block - kBlockTokens) / 2;
  const double request_mib = (held * steps.bytes_per_token + steps.bytes_per_request) / kMib;
  const double longest_mib =
      (WholeBlocks(longest, steps.block) * steps.bytes_per_token + steps.bytes_per_request) / kMib;
  const bool fits = free_mib > 0 && free_mib >= longest_mib;
  // Of the whole GPU; one request always runs.
  const Queue::State whole = {.most = request_mib > 0 ? std::clamp(free_mib / request_mib, 1.0, kMostRunning)
                                                      : kMostRunning};
  HORUS_ASSIGN_OR_RETURN(const Correction correction, CorrectionOf(steps, load, gpu, whole));
  const Queue queue(steps, load, gpu, correction);

  const auto point = ServeAlone(load, [&](const ServiceLoad& one) { return queue.At(one, whole); }, service);
  const bool open = load.requests_per_s > 0;
  // Slowed, more run at once.
  const auto with = [&](double most) {
    return [&queue, &load, most](double slowdown) { return queue.At(load, {.most = most, .slowdown = slowdown}); };
  };
  const double kept =
      Largest(1, kMostSlowdown, [&](double slowdown) { return Keeps(load, with(whole.most)(slowdown)); });
  const double planned = std::clamp(kept, 1.0, Promises(load) ? kPlannedSlowdown : kUnpromisedSlowdown);
  const std::optional<Point> slowed = queue.At(load, {.most = whole.most, .slowdown = planned});
  const double running = slowed.has_value() ? slowed->running : whole.most;
  const auto most_of = [&](double mean) {
    const double many = open ? Queue::Quantile(mean, kMemoryConfidence) : load.concurrency;
    return std::clamp(std::ceil(many), 1.0, std::floor(whole.most));
  };
  const auto tokens_of = [&](double most) { return WholeBlocks(std::max(longest, most * held), steps.block); };
  const auto cache_mib_of = [&](double most) {
    return (tokens_of(most) * steps.bytes_per_token + most * steps.bytes_per_request) / kMib;
  };
  service.most_running = most_of(running);
  service.cache_tokens = tokens_of(service.most_running);
  service.cache_mib = cache_mib_of(service.most_running);
  service.room_mib = service.cache_mib - cache_mib_of(most_of(service.running));
  ServeSlowed(load, point, fits, with(std::max(service.most_running, service.running)), service);
  return service;
}

// A model that answers in one step, by the size of the batch: powers of two up to the largest.
struct Batches {
  std::vector<double> requests;
  std::vector<JobProfile> steps;
};

absl::StatusOr<Batches> MeasureBatches(const std::shared_ptr<const Graph>& graph, const RunSpec& run) {
  const int64_t most = run.dims.batch > 0 ? run.dims.batch : kUsualBatch;
  Batches batches;
  for (int64_t batch = 1;; batch = std::min(2 * batch, most)) {
    RunSpec tried = run;
    tried.dims.batch = batch;
    HORUS_ASSIGN_OR_RETURN(batches.steps.emplace_back(), Analyse(graph, tried));
    batches.requests.push_back(static_cast<double>(batch));
    if (batch == most) return batches;
  }
}

// With its demand: the memory of the largest batch, all else of the mean one.
Service ServeBatchesOn(const Predictor& predictor, const Batches& batches, const ServiceLoad& load,
                       const GpuType& gpu) {
  std::vector<std::pair<double, double>> us;
  std::vector<Demand> demands;
  double width = 1;  // of the times, upper over estimate
  for (size_t i = 0; i < batches.steps.size(); ++i) {
    const Demand& demand = demands.emplace_back(predictor.PredictUnmeasured(batches.steps[i], gpu));
    const auto step_us = static_cast<double>(std::max<int64_t>(1, demand.step_time_us.estimate));
    us.emplace_back(batches.requests[i], step_us);
    width = std::max(width, static_cast<double>(demand.step_time_us.upper) / step_us);
  }
  width = std::pow(width, DeviationsAt(load.confidence) / DeviationsAt(kUpperConfidence));
  const BatchQueue queue(std::move(us));
  const auto at = [&](const ServiceLoad& one, double slowdown) -> std::optional<Point> {
    const auto found = one.concurrency > 0 ? queue.OfUsers(one.concurrency, slowdown)
                                           : queue.At(one.requests_per_s, slowdown, load.confidence);
    if (!found.has_value()) return std::nullopt;
    return Point{.running = found->rate * found->mean_us / kUsPerS,
                 .rate = found->rate,
                 .busy = found->busy,
                 .first_token = {found->mean_us, found->upper_us * width},
                 .token = {}};
  };
  Service service;
  const auto point = ServeAlone(load, [&](const ServiceLoad& one) { return at(one, 1); }, service);
  service.most_running = batches.requests.back();
  service.weights_mib = static_cast<double>(batches.steps.back().memory.weights) / kMib;
  service.engine_mib = static_cast<double>(std::max<int64_t>(0, gpu.context_mib));
  const auto upper_mib = static_cast<double>(demands.back().mem_mib.upper);
  service.activations_mib = std::max(0.0, upper_mib - service.weights_mib - service.engine_mib);
  ServeSlowed(
      load, point, upper_mib + kKeptFreeMib <= static_cast<double>(gpu.mem_mib),
      [&](double slowdown) { return at(load, slowdown); }, service);
  const double batch = load.concurrency > 0 ? load.concurrency / 2 : service.busy < 1 ? 1 : service.running;
  const auto mean = std::ranges::lower_bound(batches.requests, std::min(batch, batches.requests.back()));
  service.demand = demands[static_cast<size_t>(mean - batches.requests.begin())];
  service.demand.mem_mib = demands.back().mem_mib;
  service.demand.flags = demands.back().flags;
  return service;
}

// A model at the tokens of a load, to be asked of GPU types and of other numbers of requests.
class ServedModel {
 public:
  [[nodiscard]] static absl::StatusOr<ServedModel> Make(const Predictor& predictor,
                                                        const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                                        const ServiceLoad& load) {
    HORUS_RETURN_IF_ERROR(Check(load, *graph, run));
    ServedModel model(predictor, graph, run);
    if (AnswersAtOnce(load)) {
      HORUS_ASSIGN_OR_RETURN(model.batches_, MeasureBatches(graph, run));
      return model;
    }
    HORUS_ASSIGN_OR_RETURN(model.steps_, Measure(Analyser(graph, run), load, run.framework));
    if (!absl::SimpleAtoi(std::string(SaidOf(*graph, "tensor_parallel")), &model.gpus_)) model.gpus_ = 1;
    model.type_arguments_ = TypeArguments(*graph, run, model.gpus_, model.steps_.bytes_per_request > 0);
    return model;
  }

  [[nodiscard]] double context() const { return ContextOf(*graph_); }

  // All but the demand of an engine.
  [[nodiscard]] absl::StatusOr<Service> On(const ServiceLoad& load, const GpuType& gpu) const {
    Service service;
    if (AnswersAtOnce(load)) {
      service = ServeBatchesOn(*predictor_, batches_, load, gpu);
    } else {
      ServiceLoad whole = load;
      whole.longest = LongestOf(load, context());
      HORUS_ASSIGN_OR_RETURN(service, ServeOn(steps_, whole, gpu));
    }
    service.gpus = gpus_;
    service.type_arguments = type_arguments_;
    if (!AnswersAtOnce(load) && service.verdict != ServiceVerdict::kNoRoom && !WhyNot(run_, gpu).empty()) {
      service.verdict = ServiceVerdict::kUnsupported;
      service.most_requests_per_s = 0;
      service.largest_slowdown = static_cast<double>(kNeverServed);
    }
    if (service.verdict == ServiceVerdict::kServed)
      service.engine_arguments = EngineArguments(run_.framework, service, gpu, gpu.mem_mib);
    return service;
  }

  [[nodiscard]] absl::Status AddDemand(const ServiceLoad& load, const GpuType& gpu, Service& service) const {
    Demand& demand = service.demand;
    if (!AnswersAtOnce(load)) {
      HORUS_ASSIGN_OR_RETURN(const JobProfile typical, Analyser(graph_, run_)(service.running, 1, HeldTokens(load)));
      demand = predictor_->PredictUnmeasured(typical, gpu);
      const auto memory_mib = static_cast<int64_t>(std::ceil(service.memory_mib()));
      demand.mem_mib = {memory_mib, memory_mib};
      // Of memory that the predictor did not predict.
      demand.flags &= ~static_cast<uint32_t>(kDemandTooLarge | kDemandOutside);
      demand.distance = 0;
      if (steps_.weights > static_cast<double>(gpu.mem_mib) * kMib) demand.flags |= kDemandTooLarge;
      demand.step_time_us = {WholeUs(service.token.estimate_us), WholeUs(service.token.upper_us)};
    }
    demand.profile_id = CombineHash(demand.profile_id, HashOf(load)) | 1;
    demand.duty = load.concurrency > 0 ? 1 : std::min(static_cast<float>(service.busy), kMostDuty);
    demand.slowdown_bound = static_cast<float>(service.largest_slowdown);
    return absl::OkStatus();
  }

 private:
  ServedModel(const Predictor& predictor, std::shared_ptr<const Graph> graph, const RunSpec& run)
      : predictor_(&predictor), graph_(std::move(graph)), run_(run) {}

  const Predictor* predictor_;
  std::shared_ptr<const Graph> graph_;
  RunSpec run_;
  Steps steps_;      // of an engine
  Batches batches_;  // of what answers at once
  int64_t gpus_ = 1;
  std::string type_arguments_;
};

// The load of the n-th step of what is to be found; n from 1.
ServiceLoad StepOf(ServiceLoad load, ServiceUnknown unknown, int64_t n) {
  const auto number = static_cast<double>(n);
  switch (unknown) {
    case ServiceUnknown::kLoad:
      if (load.concurrency > 0) {
        load.concurrency = number;
      } else {
        load.requests_per_s = number / std::round(1 / kLoadStep);  // as the nearest double to what people write
      }
      break;
    case ServiceUnknown::kContext:
      load.longest = std::ceil(load.tokens_in + load.tokens_out) + number - 1;
      break;
    case ServiceUnknown::kReplicas:
      load.requests_per_s /= number;
      load.concurrency = std::ceil(load.concurrency / number);
      break;
  }
  return load;
}

double ValueOf(const ServiceLoad& step, ServiceUnknown unknown, int64_t n) {
  if (unknown == ServiceUnknown::kReplicas) return static_cast<double>(n);
  if (unknown == ServiceUnknown::kContext) return step.longest;
  return step.concurrency > 0 ? step.concurrency : step.requests_per_s;
}

}  // namespace

std::optional<Service::Slowed> Service::At(double slowdown) const {
  const auto above = std::ranges::find_if(slowed, [&](const Slowed& one) { return one.slowdown >= slowdown; });
  if (above == slowed.end()) return std::nullopt;
  if (above == slowed.begin()) return *above;
  const Slowed& low = above[-1];
  const double share = (slowdown - low.slowdown) / (above->slowdown - low.slowdown);
  const auto between = [&](const ServiceTime& a, const ServiceTime& b) {
    return ServiceTime{std::lerp(a.estimate_us, b.estimate_us, share), std::lerp(a.upper_us, b.upper_us, share)};
  };
  return Slowed{slowdown, between(low.first_token, above->first_token), between(low.token, above->token)};
}

absl::StatusOr<std::vector<Service>> PredictServices(const Predictor& predictor,
                                                     const std::shared_ptr<const Graph>& graph, const RunSpec& run,
                                                     const ServiceLoad& load, std::span<const GpuType* const> gpus) {
  HORUS_ASSIGN_OR_RETURN(const ServedModel model, ServedModel::Make(predictor, graph, run, load));
  std::vector<Service> services;
  for (const GpuType* gpu : gpus) {
    HORUS_ASSIGN_OR_RETURN(services.emplace_back(), model.On(load, *gpu));
    HORUS_RETURN_IF_ERROR(model.AddDemand(load, *gpu, services.back()));
  }
  return services;
}

absl::StatusOr<std::vector<ServiceSolution>> SolveServices(const Predictor& predictor,
                                                           const std::shared_ptr<const Graph>& graph,
                                                           const RunSpec& run, const ServiceLoad& load,
                                                           ServiceUnknown unknown,
                                                           std::span<const GpuType* const> gpus) {
  if (unknown == ServiceUnknown::kContext && AnswersAtOnce(load))
    return InvalidArgument("service: context: expected a language model, found one that answers in one step");
  if (unknown == ServiceUnknown::kLoad && load.concurrency > 0 && !Promises(load))
    return InvalidArgument("service: load: expected a promised time beside users: without one any number may wait");
  const bool fewest = unknown == ServiceUnknown::kReplicas;
  HORUS_ASSIGN_OR_RETURN(const ServedModel model,
                         ServedModel::Make(predictor, graph, run, fewest ? load : StepOf(load, unknown, 1)));
  double most = static_cast<double>(kMostReplicas);
  if (unknown == ServiceUnknown::kLoad) most = kMostServiceRate / (load.concurrency > 0 ? 1 : kLoadStep);
  if (unknown == ServiceUnknown::kContext)
    most = (model.context() > 0 ? model.context() : 2 * kMostTokens) - StepOf(load, unknown, 1).longest + 1;
  std::vector<ServiceSolution> solutions;
  for (const GpuType* gpu : gpus) {
    // Served at `low`, not at `high`; of copies the other way round.
    int64_t low = 0, high = static_cast<int64_t>(most) + 1;
    ServiceSolution& found = solutions.emplace_back();
    Service& below = fewest ? found.beyond : found.service;
    Service& above = fewest ? found.service : found.beyond;
    HORUS_ASSIGN_OR_RETURN(below, model.On(StepOf(load, unknown, 1), *gpu));
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      HORUS_ASSIGN_OR_RETURN(Service service, model.On(StepOf(load, unknown, middle), *gpu));
      const bool served = service.verdict == ServiceVerdict::kServed;
      if (served != fewest) {
        low = middle;
        below = std::move(service);
      } else {
        high = middle;
        above = std::move(service);
      }
    }
    const auto value = [&](int64_t n) {
      return n < 1 || static_cast<double>(n) > most ? 0 : ValueOf(StepOf(load, unknown, n), unknown, n);
    };
    found.value = value(fewest ? high : low);
    found.next = value(fewest ? low : high);
    if (fewest && found.value == 0) found.service = found.beyond;
  }
  return solutions;
}

}  // namespace horus
