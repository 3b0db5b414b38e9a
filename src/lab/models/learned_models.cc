// SPDX-License-Identifier: Apache-2.0
// Reads and walks `boosted`, `iapp` and `iasp`, and fits the first.
#include "lab/models/learned_models.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "base/text.h"
#include "trees/trainer.h"

namespace horus {
namespace {

constexpr std::string_view kOffsets = "device_offset";   // of each device, then of one without rows
constexpr std::string_view kTrained = "device_trained";  // 1 for a device with rows, else 0
constexpr double kMostOffset = 50;                       // of a margin: e^50 is beyond kMaxSlowdown
constexpr int32_t kMostDepth = 4, kMostTrees = 200;      // about a microsecond a pair

// Some twenty jobs are few values a column, which trees fit exactly: small leaves, and each tree sees half of the
// columns.
constexpr float kLearningRate = 0.1f, kLambda = 10, kFeatureShare = 0.5f;

// The other's columns, the victim's, then one a device: 1 for the present one.
constexpr size_t kPairColumns = 2 * kPointColumns;

size_t WidthOf(size_t devices) { return kPairColumns + devices; }

void FillColumns(const JobPoint& victim, const JobPoint& other, float* row) {
  for (size_t c = 0; c < kPointColumns; ++c) {
    row[c] = other[c];
    row[kPointColumns + c] = victim[c];
  }
}

// A busier other, or one with longer turns, never makes it easier for the victim.
std::vector<int32_t> Monotone(size_t devices) {
  std::vector<int32_t> monotone(WidthOf(devices), 0);
  for (const PointColumn column : {PointColumn::kLogKernelUs, PointColumn::kLogOperatorUs, PointColumn::kLogUtil})
    monotone[static_cast<size_t>(column)] = 1;
  return monotone;
}

using Tree = std::vector<TreeNode>;

// What a tree says of one device: its splits on devices are decided.
void Decide(std::span<const TreeNode> tree, size_t at, uint32_t device, Tree& out) {
  while (!tree[at].is_leaf() && tree[at].feature() >= kPairColumns) {
    const float value = tree[at].feature() == kPairColumns + device ? 1.0f : 0.0f;
    at = value < tree[at].value ? at + 1 : tree[at].right;
  }
  const size_t to = out.size();
  out.push_back(tree[at]);
  if (tree[at].is_leaf()) return;
  Decide(tree, at + 1, device, out);
  out[to].right = static_cast<uint32_t>(out.size());
  Decide(tree, tree[at].right, device, out);
}

// Trees over the columns of two tenants: what those of `data` add on the devices, on average. A tree that says the same
// of several devices is there once.
ForestData OnDevices(const ForestData& data, std::span<const uint32_t> devices) {
  ForestData on{.num_features = kPairColumns};
  size_t first = 0;
  for (const uint32_t size : data.tree_sizes) {
    std::vector<std::pair<Tree, float>> trees;  // and on how many of the devices
    for (const uint32_t device : devices) {
      Tree tree;
      Decide(std::span(data.nodes).subspan(first, size), 0, device, tree);
      auto same = std::find_if(trees.begin(), trees.end(), [&](const auto& known) { return known.first == tree; });
      if (same == trees.end()) same = trees.insert(same, {std::move(tree), 0.0f});
      ++same->second;
    }
    for (auto& [tree, count] : trees) {
      for (TreeNode& node : tree) {
        if (node.is_leaf()) node.value *= count / static_cast<float>(devices.size());
      }
      on.nodes.insert(on.nodes.end(), tree.begin(), tree.end());
      on.tree_sizes.push_back(static_cast<uint32_t>(tree.size()));
    }
    first += size;
  }
  return on;
}

class BoostedModel final : public PairModel {
 public:
  struct OnDevice {
    double offset;
    Forest forest;
  };

  // `trained` rises; `devices` has one for each of them in that order, then one for all other devices.
  BoostedModel(PointScale scale, std::vector<uint32_t> trained, std::vector<OnDevice> devices)
      : scale_(scale), trained_(std::move(trained)), devices_(std::move(devices)) {}

  void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const override {
    for (size_t i = 0; i < tenants.size(); ++i) {
      for (size_t j = 0; j < tenants.size(); ++j) {
        if (i == j) continue;
        const TwoPoints pair = {tenants[i].point, tenants[j].point};
        Slowdowns(device, {&pair, 1}, out.subspan(i * tenants.size() + j, 1));
      }
    }
  }

  void Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
              std::span<float> theirs) const override {
    std::array<TwoPoints, kBatch> pairs;
    for (size_t first = 0; first < others.size(); first += kBatch) {
      const size_t count = std::min(kBatch, others.size() - first);
      const auto ask = [&](bool as_victim, std::span<float> out) {
        for (size_t i = 0; i < count; ++i) {
          const JobPoint& other = others[first + i].point;
          pairs[i] = as_victim ? TwoPoints{newcomer.point, other} : TwoPoints{other, newcomer.point};
        }
        Slowdowns(device, std::span(pairs).first(count), out.subspan(first, count));
      };
      ask(true, mine);
      ask(false, theirs);
    }
  }

  [[nodiscard]] size_t bytes_held() const override {
    size_t bytes = sizeof(*this) + trained_.capacity() * sizeof(uint32_t) + devices_.capacity() * sizeof(OnDevice);
    for (const OnDevice& on : devices_) bytes += on.forest.bytes_held();
    return bytes;
  }

 private:
  static constexpr size_t kBatch = 64;  // of pairs, on the stack
  struct TwoPoints {
    JobPoint victim, other;
  };

  // Of the victims.
  void Slowdowns(uint32_t device, std::span<const TwoPoints> pairs, std::span<float> out) const {
    const auto at = std::lower_bound(trained_.begin(), trained_.end(), device);
    const bool known = at != trained_.end() && *at == device;
    const auto& [offset, forest] = known ? devices_[static_cast<size_t>(at - trained_.begin())] : devices_.back();
    std::array<float, kBatch * kPairColumns> rows;
    std::array<float, kBatch> margins;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto& [victim, other] = pairs[i];
      FillColumns(victim, other, &rows[i * kPairColumns]);
      margins[i] = static_cast<float>(offset + scale_.Theory(victim, other));
    }
    const std::span<float> of_pairs = std::span(margins).first(pairs.size());
    forest.PredictMargins(rows, pairs.size(), kPairColumns, of_pairs, of_pairs);
    for (size_t i = 0; i < pairs.size(); ++i) out[i] = static_cast<float>(SlowdownOf(double{margins[i]}));
  }

  PointScale scale_;
  std::vector<uint32_t> trained_;
  std::vector<OnDevice> devices_;
};

absl::Status Damaged(const BundleTarget& target, const std::string& what) {
  return MakeError(absl::StatusCode::kDataLoss, "bundle: target %s: %s", Quoted(target.name), what);
}

absl::Status CheckTrees(const BundleTarget& target) {
  const absl::Status valid = ValidateForest(target.forest, {.max_trees = kMostTrees, .max_depth = kMostDepth});
  if (!valid.ok()) return Damaged(target, std::string(valid.message()));
  for (const TreeNode& node : target.forest.nodes) {
    if (!node.is_leaf() || std::abs(double{node.value}) <= kMostOffset) continue;
    return Damaged(target, Formatted("expected leaves of magnitude up to %g, found %g", kMostOffset, node.value));
  }
  return absl::OkStatus();
}

// ---- Reads the networks of `iapp` and walks them; no foreign library.

// Weights are decayed towards 0 and stay near 1; sums of so few of these are far from overflow.
constexpr double kMostWeight = 1000;

// Floats: four to a vector on every machine, and what they round away is far below any margin's error.
using Hidden = std::array<float, kIappHidden>;

// As bounded as a hyperbolic tangent, and a tenth of its time.
float Soft(float x) { return x / (1 + std::abs(x)); }

class IappModel final : public PairModel {
 public:
  IappModel(PointScale scale, IappShape shape, std::span<const double> weights)
      : scale_(scale), shape_(shape), weights_(weights.begin(), weights.end()) {}

  void Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const override {
    const size_t n = tenants.size();
    for (size_t i = 0; i + 1 < n; ++i) {
      const Parts one = PartsOf(device, tenants[i]);
      for (size_t j = i + 1; j < n; ++j) {
        const Parts other = PartsOf(device, tenants[j]);
        out[i * n + j] = Answer(one, other);
        out[j * n + i] = Answer(other, one);
      }
    }
  }

  void Beside(uint32_t device, const Tenant& newcomer, std::span<const Tenant> others, std::span<float> mine,
              std::span<float> theirs) const override {
    const Parts one = PartsOf(device, newcomer);
    for (size_t i = 0; i < others.size(); ++i) {
      const Parts other = PartsOf(device, others[i]);
      mine[i] = Answer(one, other);
      theirs[i] = Answer(other, one);
    }
  }

  [[nodiscard]] size_t bytes_held() const override { return sizeof(*this) + weights_.capacity() * sizeof(float); }

 private:
  // The first layer is the sum of a part of the victim and a part of the other. Of each network.
  struct Parts {
    JobPoint point;
    std::array<Hidden, kIappNetworks> as_victim, as_other;
  };

  [[nodiscard]] Parts PartsOf(uint32_t device, const Tenant& tenant) const {
    const size_t bias = std::min<size_t>(device, shape_.devices - 1);
    const Columns columns = scale_.Standardise(tenant.point);
    Parts parts{.point = tenant.point};
    for (size_t k = 0; k < kIappNetworks; ++k) {
      const float* net = &weights_[k * shape_.size()];
      Hidden &victim = parts.as_victim[k], &other = parts.as_other[k];
      std::copy_n(net + shape_.biases() + bias * kIappHidden, kIappHidden, victim.begin());
      other.fill(0);
      for (size_t c = 0; c < kPointColumns; ++c) {
        const auto value = static_cast<float>(columns[c]);
        const float* of_victim = net + c * kIappHidden;
        const float* of_other = of_victim + kPointColumns * kIappHidden;
        for (size_t h = 0; h < kIappHidden; ++h) victim[h] += of_victim[h] * value;
        for (size_t h = 0; h < kIappHidden; ++h) other[h] += of_other[h] * value;
      }
    }
    return parts;
  }

  [[nodiscard]] float Answer(const Parts& victim, const Parts& other) const {
    float sum = 0;
    for (size_t k = 0; k < kIappNetworks; ++k)
      sum += MarginOf(&weights_[k * shape_.size()], victim.as_victim[k], other.as_other[k]);
    const double z = double{sum} / kIappNetworks + scale_.Theory(victim.point, other.point);
    return static_cast<float>(SlowdownOf(z));
  }

  [[nodiscard]] float MarginOf(const float* net, const Hidden& of_victim, const Hidden& of_other) const {
    Hidden first, second;
    for (size_t h = 0; h < kIappHidden; ++h) first[h] = Soft(of_victim[h] + of_other[h]);
    std::copy_n(net + shape_.second_bias(), kIappHidden, second.begin());
    for (size_t g = 0; g < kIappHidden; ++g) {
      const float* row = net + shape_.second() + g * kIappHidden;
      for (size_t h = 0; h < kIappHidden; ++h) second[h] += row[h] * first[g];
    }
    for (float& value : second) value = Soft(value);
    float margin = net[shape_.last_bias()];
    for (size_t h = 0; h < kIappHidden; ++h) margin += net[shape_.last() + h] * second[h];
    return margin;
  }

  PointScale scale_;
  IappShape shape_;
  std::vector<float> weights_;
};

// ---- Reads the factors of `iasp` and multiplies them; no foreign library.

constexpr size_t kTenantsOnStack = 16;

}  // namespace

absl::StatusOr<BundleTarget> FitBoosted(const PairSet& set, std::span<const PairRow> rows,
                                        const PairFitOptions& options) {
  const size_t width = WidthOf(set.devices.size());
  const PointScale scale = ScaleOf(set, rows);
  const MeanResidual offset = MeanResidualOf(set, rows, scale);
  std::vector<float> columns(rows.size() * width), targets, margins;
  for (size_t i = 0; i < rows.size(); ++i) {
    const PairRow& row = rows[i];
    const JobPoint &victim = set.jobs[row.victim].points[row.device], &other = set.jobs[row.other].points[row.device];
    FillColumns(victim, other, &columns[i * width]);
    columns[i * width + kPairColumns + row.device] = 1;
    targets.push_back(static_cast<float>(ExcessOf(row.slowdown)));
    margins.push_back(static_cast<float>(offset.devices[row.device] + scale.Theory(victim, other)));
  }
  TrainingParams params = DefaultTrainingParams(rows.size());
  params.max_depth = std::min(params.max_depth, kMostDepth);
  params.rounds = std::min(params.rounds, kMostTrees);
  params.learning_rate = kLearningRate;
  params.lambda = kLambda;
  params.feature_share = kFeatureShare;
  params.seed = options.seed;
  params.library_path = options.library_path;
  params.monotone = Monotone(set.devices.size());
  const TrainingData data{.row_count = rows.size(),
                          .feature_count = width,
                          .rows = columns,
                          .targets = targets,
                          .base_margins = margins,
                          .weights = {}};
  HORUS_ASSIGN_OR_RETURN(const Forest forest, Fit(data, params));
  BundleTarget target;
  target.name = std::string(kBoostedName);
  target.link = Link::kExp;
  AddScale(scale, target);
  std::vector<double> offsets = offset.devices;
  offsets.push_back(offset.all);
  target.calibration.push_back({std::string(kOffsets), std::move(offsets)});
  const std::vector<bool> trained = PresenceOf(set, rows).devices;
  target.calibration.push_back({std::string(kTrained), {trained.begin(), trained.end()}});
  target.forest = forest.data();
  return target;
}

absl::StatusOr<std::unique_ptr<const PairModel>> ReadBoosted(const PairHeader& header, const BundleTarget& target) {
  const size_t devices = header.devices.size();
  if (devices > kMostPairDevices) {
    return MakeError(absl::StatusCode::kDataLoss, "bundle: expected at most %d devices, found %d", kMostPairDevices,
                     devices);
  }
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kBoostedName, static_cast<uint32_t>(WidthOf(devices))));
  HORUS_ASSIGN_OR_RETURN(const PointScale scale, ReadScale(target));
  HORUS_ASSIGN_OR_RETURN(const auto offsets, ReadSeries(target, kOffsets, devices + 1, kMostOffset));
  HORUS_ASSIGN_OR_RETURN(const auto flags, ReadSeries(target, kTrained, devices, 1));
  std::vector<uint32_t> trained;
  for (uint32_t d = 0; d < devices; ++d) {
    if (flags[d] == 1) trained.push_back(d);
  }
  if (trained.empty() || trained.size() + static_cast<size_t>(std::count(flags.begin(), flags.end(), 0.0)) != devices)
    return Damaged(target, "series " + std::string(kTrained) + ": expected only 0 and 1 and at least one 1");
  HORUS_RETURN_IF_ERROR(CheckTrees(target));
  // Of an untrained device: what the trees add on the trained ones, on average. Trees asked about no device at all
  // would answer for whichever their splits leave over.
  std::vector<BoostedModel::OnDevice> on;
  const auto add = [&](double offset, std::span<const uint32_t> as) {
    absl::StatusOr<Forest> forest = Forest::Create(OnDevices(target.forest, as));
    if (!forest.ok()) return Damaged(target, std::string(forest.status().message()));
    on.push_back({offset, *std::move(forest)});
    return absl::OkStatus();
  };
  for (const uint32_t& device : trained) HORUS_RETURN_IF_ERROR(add(offsets[device], {&device, 1}));
  HORUS_RETURN_IF_ERROR(add(offsets.back(), trained));
  return std::make_unique<const BoostedModel>(scale, std::move(trained), std::move(on));
}

absl::StatusOr<std::unique_ptr<const PairModel>> ReadIapp(const PairHeader& header, const BundleTarget& target) {
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kIappName, 0));
  HORUS_ASSIGN_OR_RETURN(const PointScale scale, ReadScale(target));
  const IappShape shape{.devices = header.devices.size() + 1};
  HORUS_ASSIGN_OR_RETURN(const auto weights,
                         ReadSeries(target, kIappWeights, kIappNetworks * shape.size(), kMostWeight));
  return std::make_unique<const IappModel>(scale, shape, weights);
}

const double* IaspModel::DeviceAt(uint32_t device) const {
  return &devices_[std::min(device * kIaspDeviceWidth, devices_.size() - kIaspDeviceWidth)];
}

IaspFactors IaspModel::FactorsOf(uint32_t device, const Tenant& tenant) const {
  const Columns columns = scale_.Standardise(tenant.point);
  std::array<double, kIaspHidden> hidden;
  std::copy_n(&tower_[kIaspHiddenBias], kIaspHidden, hidden.begin());
  const double* of_device = DeviceAt(device) + 1;
  for (size_t h = 0; h < kIaspHidden; ++h) hidden[h] += of_device[h];
  for (size_t c = 0; c < kPointColumns; ++c) {
    for (size_t h = 0; h < kIaspHidden; ++h) hidden[h] += tower_[c * kIaspHidden + h] * columns[c];
  }
  std::array<double, kIaspWidth> out;
  std::copy_n(&tower_[kIaspLastBias], kIaspWidth, out.begin());
  for (size_t h = 0; h < kIaspHidden; ++h) {
    const double active = hidden[h] / (1 + std::abs(hidden[h]));
    for (size_t f = 0; f < kIaspWidth; ++f) out[f] += tower_[kIaspLast + h * kIaspWidth + f] * active;
  }
  const auto known = std::lower_bound(remembered_.begin(), remembered_.end(), std::pair(tenant.profile_id, 0u));
  if (known != remembered_.end() && known->first == tenant.profile_id) {
    for (size_t f = 0; f < kIaspWidth; ++f) out[f] += embeddings_[known->second * kIaspWidth + f];
  }
  IaspFactors factors{.suffers_alike = out[kIaspSuffersAlike], .inflicts_alike = out[kIaspInflictsAlike]};
  std::copy_n(out.begin(), kIaspRank, factors.suffers.begin());
  std::copy_n(out.begin() + kIaspInflicts, kIaspRank, factors.inflicts.begin());
  return factors;
}

void IaspModel::Pairs(uint32_t device, std::span<const Tenant> tenants, std::span<float> out) const {
  std::array<IaspFactors, kTenantsOnStack> few;
  std::vector<IaspFactors> many;
  std::span<IaspFactors> factors = few;
  if (tenants.size() > few.size()) {
    many.resize(tenants.size());
    factors = many;
  }
  for (size_t i = 0; i < tenants.size(); ++i) factors[i] = FactorsOf(device, tenants[i]);
  const double offset = *DeviceAt(device);
  for (size_t i = 0; i < tenants.size(); ++i) {
    for (size_t j = 0; j < tenants.size(); ++j) {
      if (i == j) continue;
      const IaspFactors &victim = factors[i], &other = factors[j];
      double margin =
          offset + victim.suffers_alike + other.inflicts_alike + scale_.Theory(tenants[i].point, tenants[j].point);
      for (size_t r = 0; r < kIaspRank; ++r) margin += victim.suffers[r] * other.inflicts[r];
      out[i * tenants.size() + j] = static_cast<float>(SlowdownOf(margin));
    }
  }
}

size_t IaspModel::bytes_held() const {
  return sizeof(*this) + (devices_.capacity() + tower_.capacity() + embeddings_.capacity()) * sizeof(double) +
         remembered_.capacity() * sizeof(remembered_[0]);
}

absl::StatusOr<std::unique_ptr<const IaspModel>> ReadIaspModel(const PairHeader& header, const BundleTarget& target) {
  HORUS_RETURN_IF_ERROR(CheckPairTarget(target, kIaspName, 0));
  auto model = std::make_unique<IaspModel>();
  HORUS_ASSIGN_OR_RETURN(model->scale_, ReadScale(target));
  const auto read = [&target](std::string_view name, size_t count, std::vector<double>& values) {
    const auto series = ReadSeries(target, name, count, kMostWeight);
    if (series.ok()) values.assign(series->begin(), series->end());
    return series.status();
  };
  HORUS_RETURN_IF_ERROR(read(kIaspDevices, (header.devices.size() + 1) * kIaspDeviceWidth, model->devices_));
  HORUS_RETURN_IF_ERROR(read(kIaspTower, kIaspTowerSize, model->tower_));
  HORUS_RETURN_IF_ERROR(read(kIaspEmbeddings, header.profiles.size() * kIaspWidth, model->embeddings_));
  for (uint32_t job = 0; job < header.profiles.size(); ++job) {
    if (header.profiles[job] != 0) model->remembered_.emplace_back(header.profiles[job], job);
  }
  std::sort(model->remembered_.begin(), model->remembered_.end());  // of jobs of one profile the first is found
  return model;
}

absl::StatusOr<std::unique_ptr<const PairModel>> ReadIasp(const PairHeader& header, const BundleTarget& target) {
  HORUS_ASSIGN_OR_RETURN(std::unique_ptr<const PairModel> model, ReadIaspModel(header, target));
  return model;
}

}  // namespace horus
