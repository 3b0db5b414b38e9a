// SPDX-License-Identifier: Apache-2.0
// Laws of operators: tiles in waves over the SMs, bytes from memory or L2, fixed costs; a forest on what they leave.
#include "predict/operators.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "device/catalogue.h"

namespace horus {

// Generated at build time from operators.hbundle.
extern const unsigned char kOperatorBundle[];
extern const size_t kOperatorBundleSize;

namespace {

constexpr std::array<std::string_view, kOperatorKinds> kKindNames = {
    "product",       "experts",    "prefill",        "decode",        "encoder",    "latent_prefill",
    "latent_decode", "all_reduce", "linear_prefill", "linear_decode", "convolution"};
constexpr std::array<std::string_view, kNumberTypes> kTypeNames = {"bf16",         "fp8",          "fp8_block", "nvfp4",
                                                                   "int4_weights", "int8_weights", "int8"};
constexpr std::array<std::string_view, kEngines> kEngineNames = {"vllm", "tensorrt-llm", "sglang"};

// Bytes of an element: of weights, of what they are multiplied with, and whether an extra kernel makes the latter.
// nvfp4 and int4 have a scale for 16 and for about 64 elements.
struct TypeBytes {
  double weight, activation;
  bool quantised;
};
constexpr std::array<TypeBytes, kNumberTypes> kBytes = {
    {{2, 2, false}, {1, 1, true}, {1, 1, true}, {0.5625, 0.5625, true}, {0.53, 2, false}, {1, 2, false}, {1, 1, true}}};

// Typical values are assumptions, fits stay near them. Latencies count in 1,000 cycles of the boost clock.
constexpr LawConstant kProductLaw[] = {
    {"fixed_kcycles", 4.5, .3},        // start and drain
    {"compute_share", .85, .1},        // of the peak, once tiles fill the device
    {"bandwidth_share", .9, .1},       // of the memory's
    {"overlap", 3, .5},                // exponent p of (compute^p + memory^p)^(1/p): infinite = all hidden
    {"prologue", 60, 1},               // steps of k that filling and draining a tile's pipeline take
    {"tile_loss", .15, .7},            // exponent of a tile's area in the rate that it reaches
    {"step_kcycles", .15, .7},         // of 64 steps of k in one tile, however small the tile
    {"blocks_for_bandwidth", .5, .5},  // an SM: fewer do not saturate the memory
    {"split_kcycles", 2, .7},          // to sum the parts where SMs share k
    {"copies", 4, .5},                 // of the operands that a repeated measurement rotates
    {"l2_slowness", 3, .5},            // 64 bytes a cycle and SM over what L2 delivers
    {"quantise_kcycles", 4, .7},       // a kernel more: activations in fewer bits
    {"row_kcycles", .02, 1},           // of it, for a row on one SM
};
constexpr LawConstant kExpertsLaw[] = {
    {"fixed_kcycles", 25, .5},     {"compute_share", .7, .2},
    {"bandwidth_share", .85, .15}, {"overlap", 3, .5},
    {"prologue", 60, 1},           {"tile_loss", .15, .7},
    {"step_kcycles", .15, .7},     {"blocks_for_bandwidth", .5, .5},
    {"split_kcycles", 20, .7},     {"copies", 1, .5},
    {"l2_slowness", 3, .5},        {"quantise_kcycles", 4, .7},
    {"row_kcycles", .2, 1},
};
constexpr LawConstant kAttentionLaw[] = {
    {"fixed_kcycles", 13, .5},        {"compute_share", .5, .5},
    {"bandwidth_share", .85, .1},     {"overlap", 2, .5},
    {"blocks_for_bandwidth", .5, .7}, {"copies", 1, .2},
    {"l2_slowness", 4, .5},           {"keys_kcycles", .5, 1},  // for each doubling of the keys beyond 64
    {"key_block_kcycles", 1, 1},                                // of a block of queries of one key head, on one SM
    {"query_block_kcycles", .5, 1},                             // and of one query head
};
constexpr LawConstant kCollectiveLaw[] = {
    {"fixed_kcycles", 8, .5},
    {"rank_kcycles", .5, 1},
    {"bandwidth_share", .7, .3},
};

// Positions in the laws; the first four are those of attention too.
enum LawAt : size_t {
  kFixed,
  kCompute,
  kBandwidth,
  kOverlap,
  kPrologue,
  kTileLoss,
  kStep,
  kBlocks,
  kSplit,
  kCopies,
  kL2,
  kQuantise,
  kRow,
  kABlocks = 4,
  kACopies,
  kAL2,
  kKeys,
  kKeyBlock,
  kQueryBlock
};

bool IsProduct(OperatorKind kind) { return kind == OperatorKind::kProduct || kind == OperatorKind::kExperts; }

bool HasState(OperatorKind kind) {
  return kind == OperatorKind::kLinearPrefill || kind == OperatorKind::kLinearDecode ||
         kind == OperatorKind::kConvolution;
}

struct Rates {
  double kcycle_us, sms, flops_per_us, bytes_per_us, l2_bytes, l2_bytes_per_us, sustained;
  bool on_chip;  // linear attention keeps states there between chunks
};

double Positive(int64_t value) { return std::max<double>(1, static_cast<double>(value)); }

double PeakGflops(NumberType type, const GpuType& gpu) {
  constexpr int64_t kBlackwell = 100;
  const int64_t half = std::max(gpu.bf16_gflops, gpu.fp16_gflops);
  int64_t peak = half;
  if (type == NumberType::kFp8 || type == NumberType::kFp8Block) peak = gpu.fp8_gflops;
  if (type == NumberType::kNvfp4) peak = gpu.compute_capability >= kBlackwell ? 2 * gpu.fp8_gflops : 0;
  if (type == NumberType::kInt8) peak = gpu.int8_gops;
  return Positive(peak > 0 ? peak : half);  // without such units engines unpack the weights
}

// GDDR boards for servers and workstations keep ECC bits in the memory itself, read by its bandwidth; GeForce has none.
double AfterEcc(const GpuType& gpu) {
  constexpr int64_t kHbmOnly[] = {60, 70, 80, 90, 100, 103};
  constexpr double kInlineEcc = 0.88;  // assumption: one byte in eight is for ECC
  const bool hbm = std::find(std::begin(kHbmOnly), std::end(kHbmOnly), gpu.compute_capability) != std::end(kHbmOnly);
  return hbm || gpu.display_name.find("GeForce") != std::string::npos ? 1 : kInlineEcc;
}

// From Hopper on vLLM has one kernel for all chunks of a prompt (FlashInfer); elsewhere there are several (Triton).
constexpr int64_t kFusedScan = 90;

Rates RatesOf(const Operator& op, const GpuType& gpu, double compute, double bandwidth, double l2_slowness) {
  constexpr double kKibToBytes = 1024, kL2BytesPerCycle = 64, kKilo = 1e3;
  const double mhz = Positive(gpu.boost_clock_mhz), sms = Positive(gpu.sm_count);
  return {.kcycle_us = kKilo / mhz,
          .sms = sms,
          .flops_per_us = PeakGflops(op.type, gpu) * kKilo * compute,
          .bytes_per_us = Positive(gpu.mem_bandwidth_mb_s) * AfterEcc(gpu) * bandwidth,
          .l2_bytes = Positive(gpu.l2_kib) * kKibToBytes,
          .l2_bytes_per_us = sms * kL2BytesPerCycle * mhz / l2_slowness,
          .sustained = SustainedShare(gpu),
          .on_chip = op.engine == ServingEngine::kVllm && gpu.compute_capability >= kFusedScan};
}

// Time to bring `bytes` in, of a repeated operator partly from L2.
double TransferUs(const Operator& op, double bytes, double copies, double sharpness, const Rates& rates) {
  if (!op.repeated) return bytes / rates.bytes_per_us;
  const double missed = 1 - 1 / (1 + std::pow(copies * bytes / rates.l2_bytes, sharpness));
  return bytes * (missed / rates.bytes_per_us + (1 - missed) / rates.l2_bytes_per_us);
}

double Waves(double x) { return x <= 1 ? 1 : (std::ceil(x) + x) / 2; }

struct Tile {
  double rows, columns;
};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {64, 256}, {64, 128},
                           {128, 64},  {64, 64},   {16, 128},  {16, 64}};
constexpr double kLargestTile = 256 * 128;
constexpr double kSplits[] = {1, 2, 4, 8, 16};
constexpr double kLeastSplitK = 256;

constexpr double kPowerDelayUs = 300;  // until the clock falls, of one kernel alone

// In a net kernels follow each other, and all run at the clock that the power allows.
double Sustained(const Operator& op, double compute_us, const Rates& rates) {
  const double share = op.repeated ? compute_us / (compute_us + kPowerDelayUs) : 1;
  return compute_us * (1 + (1 / rates.sustained - 1) * share);
}

// (1 + ratio^p)^(1/p), ratio 0-1.
double SmoothMax(double ratio, double p) { return std::exp(std::log1p(std::pow(ratio, p)) / p); }

// `groups` products of [m, k] x [k, n] at once: whole tiles in waves, by the tile and split of k that suit best.
double ProductUs(const Operator& op, double groups, double m, double n, double k, double transfer_us,
                 const Rates& rates, const LawConstants& c) {
  double best = HUGE_VAL;
  const double flops_per_us_sm = rates.flops_per_us / rates.sms;
  for (const Tile& tile : kTiles) {
    const double tiles = groups * std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    const double area = tile.rows * tile.columns, rate = flops_per_us_sm * std::pow(area / kLargestTile, c[kTileLoss]);
    for (const double split : kSplits) {
      const double depth = k / split;
      if (split > 1 && (depth < kLeastSplitK || tiles * split >= 4 * rates.sms)) break;  // full already
      const double compute = Sustained(
          op,
          Waves(tiles * split / rates.sms) * std::max(2 * area * (depth + c[kPrologue]) / rate,
                                                      (depth + c[kPrologue]) / 64 * c[kStep] * rates.kcycle_us),
          rates);
      const double memory = transfer_us / std::min(1.0, tiles * split / (c[kBlocks] * rates.sms));
      const double fixed = split > 1 ? c[kSplit] * rates.kcycle_us : 0;
      const double larger = std::max(compute, memory);
      if (larger + fixed >= best) continue;
      best = std::min(best, fixed + larger * SmoothMax(std::min(compute, memory) / larger, c[kOverlap]));
    }
  }
  return best;
}

struct ProductSizes {
  double groups = 1, m, bytes, flops;
};

// Experts that at least one of the tokens chooses, tokens of each of them, and one product's bytes.
ProductSizes SizesOf(const Operator& op, double n, double k) {
  const TypeBytes& bytes = kBytes[static_cast<size_t>(op.type)];
  ProductSizes s{.m = op.m, .bytes = 0, .flops = 0};
  if (op.kind == OperatorKind::kExperts) {
    const double local = std::max(1.0, op.experts / op.expert_parallel);
    const double rows = std::max(1.0, op.m * op.top_k / op.expert_parallel);
    s.groups = op.balanced ? std::min(local, rows) : local * (1 - std::pow(1 - 1 / (local + 1), rows));
    s.groups = std::max(1.0, s.groups);
    s.m = rows / s.groups;
  }
  s.bytes = s.groups * (s.m * k * bytes.activation + n * k * bytes.weight + 2 * s.m * n);
  s.flops = 2 * s.groups * s.m * n * k;
  return s;
}

double OneProductUs(const Operator& op, double n, double k, const Rates& rates, const LawConstants& c) {
  constexpr double kSharpness = 4;
  const ProductSizes s = SizesOf(op, n, k);
  double us = ProductUs(op, s.groups, s.m, n, k, TransferUs(op, s.bytes, c[kCopies], kSharpness, rates), rates, c);
  const TypeBytes& bytes = kBytes[static_cast<size_t>(op.type)];
  if (bytes.quantised) {
    const double rows = s.groups * s.m;
    us += (c[kQuantise] + c[kRow] * rows / rates.sms) * rates.kcycle_us +
          rows * k * (2 + bytes.activation) / rates.bytes_per_us;
  } else if (op.kind == OperatorKind::kExperts) {
    us += c[kRow] * s.groups * s.m / rates.sms * rates.kcycle_us;
  }
  return us;
}

struct AttentionSizes {
  double keys = 1, flops = 0, bytes = 0, blocks = 0, key_blocks = 0, query_blocks = 0;
};

// States and convolutions: work grows with the tokens, and the blocks of a sequence's head follow each other.
AttentionSizes LinearSizesOf(const Operator& op) {
  constexpr double kChunk = 64, kChannels = 64, kBf16Bytes = 2;
  AttentionSizes s;
  const double tokens = op.batch * op.queries, chunks = std::ceil(op.queries / kChunk);
  if (op.kind == OperatorKind::kConvolution) {
    s.flops = 2 * op.convolved * tokens * op.head_size;
    s.bytes = 2 * kBf16Bytes * op.head_size * (tokens + op.batch * (op.convolved - 1));
    s.key_blocks = op.batch * std::ceil(op.head_size / kChannels) * chunks;
    s.query_blocks = op.batch;
    s.blocks = s.key_blocks;
    return s;
  }
  const bool decode = op.kind == OperatorKind::kLinearDecode;
  const double state = op.heads * op.key_size * op.head_size;
  const double parts = op.delta ? 2 : 1;  // as features/cost_attention.cc counts them
  const double within = decode ? 0 : 2 * parts * kChunk * op.heads * (op.key_size + op.head_size);
  s.flops = tokens * (within + 2 * (1 + parts) * state);
  s.bytes = 2 * op.batch * state * op.state_bytes +
            kBf16Bytes * tokens * 2 * (op.key_heads * op.key_size + op.heads * op.head_size);
  s.blocks = op.batch * op.heads;
  s.key_blocks = s.blocks * chunks;
  return s;
}

AttentionSizes SizesOf(const Operator& op) {
  if (HasState(op.kind)) return LinearSizesOf(op);
  constexpr double kQueryTile = 128, kKeyTile = 256, kMmaRows = 16, kLatent = 512, kRotary = 64, kUnfoldedKey = 192,
                   kUnfoldedValue = 128;
  const bool decode = op.kind == OperatorKind::kDecode || op.kind == OperatorKind::kLatentDecode;
  const bool latent = op.kind == OperatorKind::kLatentDecode;
  AttentionSizes s;
  const double all = op.window > 0 ? std::min(op.window, op.keys) : op.keys;
  // A causal query sees half of the new tokens on average.
  s.keys = decode || op.kind == OperatorKind::kEncoder ? all
           : op.window > 0                             ? std::min(op.window, op.keys - op.queries / 2)
                                                       : op.keys - op.queries / 2;
  s.keys = std::max(1.0, s.keys);
  const double cache = op.cache_fp8 ? 1 : 2;
  const double key_heads = latent ? 1 : std::max(1.0, op.key_heads),
               tiles = decode ? 1 : std::ceil(op.queries / kQueryTile);
  if (latent) {
    s.flops = 2 * op.batch * std::ceil(op.heads / kMmaRows) * kMmaRows * s.keys * (2 * kLatent + kRotary);
    s.bytes = op.batch * s.keys * (kLatent + kRotary) * cache + 2 * op.batch * op.heads * (2 * kLatent + kRotary);
  } else if (op.kind == OperatorKind::kLatentPrefill) {
    s.flops = 2 * op.batch * op.heads * op.queries * s.keys * (kUnfoldedKey + kUnfoldedValue);
    s.bytes = 4 * op.batch * op.heads * op.queries * (kUnfoldedKey + kUnfoldedValue);
  } else if (decode) {
    const double rows = std::ceil(op.heads / key_heads / kMmaRows) * kMmaRows * key_heads;  // of whole instructions
    s.flops = 4 * op.batch * rows * s.keys * op.head_size;
    s.bytes = op.batch * op.head_size * (2 * key_heads * s.keys * cache + 4 * op.heads);
  } else {
    s.flops = 4 * op.batch * op.heads * op.queries * s.keys * op.head_size;
    s.bytes = op.batch * op.head_size *
              (4 * op.queries * op.heads + 4 * op.queries * key_heads + 2 * cache * key_heads * (op.keys - op.queries));
  }
  s.key_blocks = op.batch * (decode ? key_heads : op.heads) * tiles;
  s.query_blocks = op.batch * op.heads * tiles;
  s.blocks = s.key_blocks * (decode ? std::ceil(s.keys / kKeyTile) : 1);
  return s;
}

double AttentionUs(const Operator& op, const Rates& rates, const LawConstants& c) {
  constexpr double kSharpness = 10, kKeyTile = 64;
  AttentionSizes s = SizesOf(op);
  const double fill = s.blocks / rates.sms;
  double turns = 1;
  if (op.kind == OperatorKind::kLinearPrefill) {
    turns = Waves(fill) / fill;                                   // a head's chunks follow each other
    constexpr double kBetween = 12, kChunk = 64, kBf16Bytes = 2;  // tensors of a chunk, and its state, between kernels
    if (!rates.on_chip) {
      s.bytes += s.key_blocks *
                 (2 * op.key_size * op.head_size * op.state_bytes + kBetween * kChunk * op.head_size * kBf16Bytes);
    }
  }
  const double compute = Sustained(op, s.flops / rates.flops_per_us * Waves(fill) / fill, rates);
  const double memory = TransferUs(op, s.bytes, c[kACopies], kSharpness, rates) / std::min(1.0, fill / c[kABlocks]);
  const double blocks =
      turns * (c[kKeyBlock] * s.key_blocks + c[kQueryBlock] * s.query_blocks) / rates.sms * rates.kcycle_us;
  const double p = c[kOverlap];
  // What a sequence's block costs to start hides behind no reading where one token is decoded.
  const bool shown = op.kind == OperatorKind::kDecode;
  return (c[kFixed] + c[kKeys] * std::log2(1 + op.keys / kKeyTile)) * rates.kcycle_us + (shown ? blocks : 0) +
         std::pow(std::pow(compute, p) + std::pow(memory, p) + std::pow(shown ? 0 : blocks, p), 1 / p);
}

// A ring or two shots: every rank sends and receives 2 (r - 1) / r of the tensor.
double AllReduceUs(const Operator& op, const GpuType& gpu, const LawConstants& c) {
  const double link = gpu.nvlink_mb_s > 0 ? Positive(gpu.nvlink_mb_s) / 2 : Positive(gpu.pcie_mb_s);
  const double ranks = std::max(1.0, op.ranks);
  return (c[0] + c[1] * ranks) * 1e3 / Positive(gpu.boost_clock_mhz) +
         op.bytes * 2 * (ranks - 1) / ranks / (link * c[2]);
}

// How much of what the forests learned holds for a GPU type whose generation nobody measured: the kinds of kernels that
// carry over most have most. From leaving out each of four types (`scripts/bench llm --data DIR`).
constexpr double kUnseenForestShare[kOperatorKinds] = {.5, 1, .75, .25, .75, .75, .5, 0, .5, .5, .5};

// Such types run the same kernels: data-centre Blackwells, else those of one compute capability. An RTX 4090's decode
// attention errs by half as much with all that an L40S taught.
bool SameGeneration(const GpuType& a, const GpuType& b) {
  constexpr int64_t kBlackwell = 100, kFamily = 10;
  return a.compute_capability == b.compute_capability ||
         (a.compute_capability >= kBlackwell && a.compute_capability / kFamily == b.compute_capability / kFamily);
}

constexpr std::string_view kGpus = "gpus.", kMargins = "margins", kSeries = "law.";

// Another board of the chip with its rates, as A800 and A100 are; the slower memory of a PCIe board is near enough.
bool IsAlike(const GpuType& a, const GpuType& b) {
  const auto near = [](int64_t x, int64_t y) { return 10 * std::abs(x - y) <= y; };  // Bounded: figures of data sheets
  return a.compute_capability == b.compute_capability && a.sm_count == b.sm_count &&
         near(a.fp16_gflops, b.fp16_gflops) && near(a.mem_bandwidth_mb_s, b.mem_bandwidth_mb_s);
}

}  // namespace

// Watts of a board that its units leave for a TFLOP/s of half precision, and what generations need: with less they
// clock down in long kernels. From the largest products of four boards (aiconfigurator); of RTX Blackwell
// an assumption. Types of fewer bits need proportionally less.
double SustainedShare(const GpuType& gpu) {
  constexpr std::pair<int64_t, double> kHalfW[] = {{80, 1.0}, {90, 0.7}, {100, 0.53}, {120, 1.0}};  // from capability
  constexpr double kIdleW = 100, kTera = 1e3;  // memory, links, fans
  double half_w = 0;
  for (const auto& [from, watts] : kHalfW) half_w = gpu.compute_capability >= from ? watts : half_w;
  const double needed_w = static_cast<double>(std::max(gpu.bf16_gflops, gpu.fp16_gflops)) / kTera * half_w;
  const double left_w = static_cast<double>(gpu.tdp_w) - kIdleW;
  return left_w > 0 && needed_w > 0 ? std::clamp(left_w / needed_w, 0.3, 1.0) : 1;
}

std::string_view Name(OperatorKind kind) { return kKindNames[static_cast<size_t>(kind)]; }
std::string_view Name(NumberType type) { return kTypeNames[static_cast<size_t>(type)]; }
std::string_view Name(ServingEngine engine) { return kEngineNames[static_cast<size_t>(engine)]; }

std::span<const LawConstant> LawOf(OperatorKind kind) {
  if (kind == OperatorKind::kProduct) return kProductLaw;
  if (kind == OperatorKind::kExperts) return kExpertsLaw;
  if (kind == OperatorKind::kAllReduce) return kCollectiveLaw;
  return kAttentionLaw;
}

LawConstants TypicalConstants(OperatorKind kind) {
  LawConstants constants = {};
  const std::span<const LawConstant> law = LawOf(kind);
  for (size_t i = 0; i < law.size(); ++i) constants[i] = law[i].typical;
  return constants;
}

double LawUs(const Operator& op, const GpuType& gpu, const LawConstants& c) {
  if (op.kind == OperatorKind::kAllReduce) return AllReduceUs(op, gpu, c);
  const Rates rates = RatesOf(op, gpu, c[kCompute], c[kBandwidth], c[IsProduct(op.kind) ? kL2 : kAL2]);
  if (!IsProduct(op.kind)) return AttentionUs(op, rates, c);
  double us = c[kFixed] * rates.kcycle_us;
  if (op.kind == OperatorKind::kProduct) return us + OneProductUs(op, op.n, op.k, rates, c);
  const double inner = std::max(1.0, op.n / op.tensor_parallel);
  return us + OneProductUs(op, (op.gated ? 2 : 1) * inner, op.k, rates, c) + OneProductUs(op, op.k, inner, rates, c);
}

double FloorUs(const Operator& op, const GpuType& gpu) {
  constexpr double kGflopsToFlopsPerUs = 1e3;
  // Attention to a cache of fp8 may compute in it too.
  const double peak = PeakGflops(op.cache_fp8 ? NumberType::kFp8 : op.type, gpu) * kGflopsToFlopsPerUs;
  return std::max(op.least_flops / peak, op.least_bytes / Positive(gpu.mem_bandwidth_mb_s));
}

OperatorRow RowOf(const Operator& op, const GpuType& gpu, double law_us) {
  OperatorRow row = {};
  size_t at = 0;
  const auto add = [&row, &at](double value) { row[at++] = static_cast<float>(value); };
  const auto log = [](double value) { return std::log2(std::max(value, 1e-9)); };
  const Rates rates = RatesOf(op, gpu, 1, 1, 1);
  double flops = 0, bytes = op.bytes, blocks = op.ranks;
  if (IsProduct(op.kind)) {
    const bool experts = op.kind == OperatorKind::kExperts;
    const double n = experts ? (op.gated ? 2 : 1) * std::max(1.0, op.n / op.tensor_parallel) : op.n;
    const ProductSizes s = SizesOf(op, n, op.k);
    flops = s.flops, bytes = s.bytes, blocks = s.groups * std::ceil(s.m / 128) * std::ceil(n / 128);
    add(log(op.m)), add(log(op.n)), add(log(op.k));
    add(log(s.groups)), add(log(s.m));
    for (const Tile& tile : {kTiles[0], kTiles[2], kTiles[5], kTiles[7]}) {
      const double tiles = s.groups * std::ceil(s.m / tile.rows) * std::ceil(n / tile.columns);
      add(log(Waves(tiles / rates.sms) * rates.sms * tile.rows * tile.columns / (s.groups * s.m * n)));
    }
    add(log(op.experts)), add(op.top_k), add(op.balanced);
  } else if (op.kind != OperatorKind::kAllReduce) {
    const AttentionSizes s = SizesOf(op);
    flops = s.flops, bytes = s.bytes, blocks = s.blocks;
    add(log(op.batch)), add(log(op.heads)), add(log(op.key_heads)), add(log(op.head_size)), add(log(op.keys));
    add(log(op.queries)), add(log(op.window)), add(log(op.heads / std::max(1.0, op.key_heads)));
    add(log(s.key_blocks)), add(op.cache_fp8), add(log(s.keys)), add(0);
  } else {
    add(log(op.bytes)), add(op.ranks);
    at = 12;
  }
  add(log(law_us)), add(log(bytes / rates.bytes_per_us)), add(log(bytes / rates.l2_bytes));
  add(log(flops / rates.flops_per_us)), add(log(blocks / rates.sms));
  add(log(flops / rates.flops_per_us) - log(bytes / rates.bytes_per_us));
  add(static_cast<double>(op.type)), add(op.engine == ServingEngine::kVllm), add(op.engine == ServingEngine::kSglang);
  // Generations have kernels of their own: 8.0, 8.6 to 8.9, 9.0, 10.0, 12.0.
  add(static_cast<double>(gpu.compute_capability)), add(rates.sms), add(rates.kcycle_us);
  return row;
}

// A change of what a column or constant means needs another version.
uint64_t OperatorSchemaHash() {
  constexpr uint64_t kVersion = 2;
  uint64_t hash = CombineHash(kVersion, kOperatorColumns);
  for (size_t kind = 0; kind < kOperatorKinds; ++kind) {
    hash = CombineHash(hash, Hash64(kKindNames[kind]));
    for (const LawConstant& constant : LawOf(static_cast<OperatorKind>(kind)))
      hash = CombineHash(hash, Hash64(constant.name));
  }
  return hash;
}

uint32_t SeriesOf(const Operator& op) {
  return (static_cast<uint32_t>(op.type) * 2 + (op.cache_fp8 ? 1U : 0U)) * static_cast<uint32_t>(kEngines) +
         static_cast<uint32_t>(op.engine);
}

std::string SeriesName(const Operator& op) {
  return Formatted("%s%s%s", Name(op.type), op.cache_fp8 ? ".cache_fp8." : ".", Name(op.engine));
}

BundleTarget ToBundle(const TrainedOperators& trained) {
  BundleTarget target{.name = std::string(Name(trained.kind)), .link = Link::kExp};
  target.calibration.push_back({std::string(kMargins), {trained.margin, trained.unseen_gpu_margin}});
  const size_t size = LawOf(trained.kind).size();
  for (const auto& [name, constants] : trained.constants)
    target.calibration.push_back({std::string(kSeries) + name, {constants.begin(), constants.begin() + size}});
  target.forest = trained.forest;
  return target;
}

absl::StatusOr<std::unique_ptr<const OperatorModel>> OperatorModel::FromBundle(const Bundle& bundle) {
  std::map<std::string, uint32_t> series;
  Operator op;
  for (size_t type = 0; type < kNumberTypes; ++type) {
    for (size_t engine = 0; engine < kEngines; ++engine) {
      for (const bool fp8 : {false, true}) {
        op.type = static_cast<NumberType>(type), op.engine = static_cast<ServingEngine>(engine), op.cache_fp8 = fp8;
        series[std::string(kSeries) + SeriesName(op)] = SeriesOf(op);
      }
    }
  }
  auto model = std::make_unique<OperatorModel>();
  for (const NamedSeries& gpu : bundle.series) {
    if (!gpu.name.starts_with(kGpus)) continue;
    const auto catalogue = Catalogue::Default();
    const auto type = catalogue->FindKnown(gpu.name.substr(kGpus.size()));
    if (type) model->gpus_.push_back(catalogue->at(*type));
  }
  for (size_t at = 0; at < kOperatorKinds; ++at) {
    const BundleTarget* target = bundle.FindTarget(kKindNames[at]);
    if (target == nullptr) return DataLoss("operators: expected target %s, found none", kKindNames[at]);
    Kind& kind = model->kinds_[at];
    const size_t size = LawOf(static_cast<OperatorKind>(at)).size();
    for (const NamedSeries& one : target->calibration) {
      if (one.name == kMargins && one.values.size() == 2) {
        kind.margin = one.values[0], kind.unseen_gpu_margin = one.values[1];
        continue;
      }
      const auto found = series.find(one.name);
      if (found == series.end() || one.values.size() != size ||
          !std::ranges::all_of(one.values, [](double v) { return v > 0 && std::isfinite(v); })) {
        return DataLoss("operators: %s: expected %d positive constants under a known name, found %s", target->name,
                        size, one.name);
      }
      std::copy(one.values.begin(), one.values.end(), kind.constants[found->second].begin());
    }
    if (target->forest.num_features > kOperatorColumns) {
      return DataLoss("operators: %s: expected at most %d columns, found %d", target->name, kOperatorColumns,
                      target->forest.num_features);
    }
    HORUS_ASSIGN_OR_RETURN(kind.forest, Forest::Create(target->forest));
  }
  return std::unique_ptr<const OperatorModel>(std::move(model));
}

const OperatorModel& OperatorModel::Default() {
  static const std::unique_ptr<const OperatorModel> model = [] {
    auto bundle = ReadBundle(std::span(kOperatorBundle, kOperatorBundleSize), {}, OperatorSchemaHash());
    auto built_in = bundle.ok() ? FromBundle(*bundle) : bundle.status();
    // Only a schema that changed after the bundle was made can refuse it; a test forbids that.
    return built_in.ok() ? *std::move(built_in) : std::make_unique<const OperatorModel>();
  }();
  return *model;
}

// Of the same types in another engine where this one was not measured with them.
LawConstants OperatorModel::ConstantsOf(const Operator& op) const {
  const Kind& kind = kinds_[static_cast<size_t>(op.kind)];
  Operator asked = op;
  for (const bool cache_fp8 : {op.cache_fp8, false}) {
    asked.cache_fp8 = cache_fp8;
    for (size_t i = 0; i < kEngines; ++i) {
      asked.engine = static_cast<ServingEngine>((static_cast<size_t>(op.engine) + i) % kEngines);
      const auto found = kind.constants.find(SeriesOf(asked));
      if (found != kind.constants.end()) return found->second;
    }
  }
  return TypicalConstants(op.kind);
}

OperatorTime OperatorModel::TimeOf(const Operator& op, const GpuType& gpu) const {
  const Kind& kind = kinds_[static_cast<size_t>(op.kind)];
  const LawConstants constants = ConstantsOf(op);
  Operator repeated = op;
  repeated.repeated = true;  // as what the forest learned from was measured
  const double law_us = LawUs(repeated, gpu, constants);
  double us = op.repeated ? law_us : LawUs(op, gpu, constants);
  const bool seen = std::ranges::any_of(gpus_, [&gpu](const GpuType& taught) { return IsAlike(gpu, taught); });
  if (kind.forest.num_trees() > 0) {
    const bool known =
        std::ranges::any_of(gpus_, [&gpu](const GpuType& taught) { return SameGeneration(gpu, taught); });
    const float shift = kind.forest.PredictMargin(RowOf(repeated, gpu, law_us), 0);
    us *= std::exp(static_cast<double>(shift) * (known ? 1 : kUnseenForestShare[static_cast<size_t>(op.kind)]));
  }
  return {.us = us, .upper_us = us * std::exp(seen ? kind.margin : kind.unseen_gpu_margin)};
}

}  // namespace horus
