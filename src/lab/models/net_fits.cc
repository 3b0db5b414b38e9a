// SPDX-License-Identifier: Apache-2.0
// Trains `iapp` and `iasp` by Adam: forward and backward by hand.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "base/draws.h"
#include "base/hash.h"
#include "base/status.h"
#include "lab/models/learned_models.h"

namespace horus {
namespace {

// What each device adds, `width` numbers a device, as bundles store it: a device without rows, and one more for any
// other, has the mean of those with.
std::vector<double> WithMean(std::span<const double> of_devices, size_t width, const std::vector<bool>& present) {
  std::vector<double> all(of_devices.begin(), of_devices.end()), mean(width, 0.0);
  const auto count = static_cast<double>(std::count(present.begin(), present.end(), true));
  for (size_t i = 0; i < of_devices.size(); ++i) {
    if (present[i / width]) mean[i % width] += of_devices[i] / count;
  }
  for (size_t i = 0; i < of_devices.size(); ++i) {
    if (!present[i / width]) all[i] = mean[i % width];
  }
  all.insert(all.end(), mean.begin(), mean.end());
  return all;
}

// ---- Adam (Kingma and Ba, ICLR 2015) on all rows at once, and the starting weights of small networks.
// Cost: linear in the parameters.

class Adam {
 public:
  explicit Adam(Eigen::Index size) : mean_(Eigen::ArrayXd::Zero(size)), square_(Eigen::ArrayXd::Zero(size)) {}

  void Step(const Eigen::ArrayXd& gradient, double rate, Eigen::ArrayXd& parameters) {
    constexpr double kMeanDecay = 0.9, kSquareDecay = 0.999, kTiny = 1e-8;  // as published
    mean_decayed_ *= kMeanDecay;
    square_decayed_ *= kSquareDecay;
    mean_ = kMeanDecay * mean_ + (1 - kMeanDecay) * gradient;
    square_ = kSquareDecay * square_ + (1 - kSquareDecay) * gradient.square();
    parameters -= rate * (mean_ / (1 - mean_decayed_)) / ((square_ / (1 - square_decayed_)).sqrt() + kTiny);
  }

 private:
  Eigen::ArrayXd mean_, square_;
  double mean_decayed_ = 1, square_decayed_ = 1;
};

// Falls from `first` to 0 over the steps, by half a cosine.
double RateAt(int step, int steps, double first) {
  constexpr double kPi = 3.14159265358979323846;
  return first * 0.5 * (1 + std::cos(kPi * step / steps));
}

// A number of variance 1 that is a function of its arguments alone: uniform, as the shape does not matter.
double StartingDraw(uint64_t seed, uint64_t index) {
  constexpr double kSpan = 3.4641016151377544;  // sqrt(12): the width of a uniform variable of variance 1
  return kSpan * (UnitOf(Mix64(CombineHash(seed, index))) + 0x1p-54 - 0.5);
}

// ---- Trains the networks of `iapp`: forward, backward and Adam.

constexpr int kSteps = 400;
constexpr double kRate = 0.02;
// How far a weight is expected from 0, and a margin from what a network can say: so strongly are weights held back.
constexpr double kWeightSpread = 0.5, kNoise = 0.2;

constexpr auto kHidden = static_cast<Eigen::Index>(kIappHidden);
constexpr auto kInputs = static_cast<Eigen::Index>(kIappInputs);
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Weights = Eigen::Map<const Matrix>;

// x / (1 + |x|); its slope, from its value y, is (1 - |y|)^2.
void Activate(Matrix& values) { values = values.array() / (1 + values.array().abs()); }

struct Rows {
  Matrix columns;  // a row a PairRow: victim, other, one-hot device
  Eigen::ArrayXd residuals;
};

Rows RowsFor(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale) {
  Rows result;
  const auto n = static_cast<Eigen::Index>(rows.size());
  result.columns.setZero(n, kInputs + static_cast<Eigen::Index>(set.devices.size()));
  const std::vector<double> residuals = ResidualsOf(set, rows, scale);
  result.residuals = Eigen::Map<const Eigen::ArrayXd>(residuals.data(), n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const PairRow& row = rows[static_cast<size_t>(i)];
    const Columns victim = scale.Standardise(set.jobs[row.victim].points[row.device]);
    const Columns other = scale.Standardise(set.jobs[row.other].points[row.device]);
    for (size_t c = 0; c < kPointColumns; ++c) {
      result.columns(i, static_cast<Eigen::Index>(c)) = victim[c];
      result.columns(i, static_cast<Eigen::Index>(kPointColumns + c)) = other[c];
    }
    result.columns(i, kInputs + row.device) = 1;
  }
  return result;
}

class Network {
 public:
  Network(const Rows& rows, size_t devices) : rows_(rows), shape_{.devices = devices} {}

  [[nodiscard]] Eigen::ArrayXd Train(uint64_t seed, double mean) {
    const auto size = static_cast<Eigen::Index>(shape_.size());
    Eigen::ArrayXd weights = Eigen::ArrayXd::Zero(size), gradient(size), precision(size);
    precision.setConstant(1 / (kWeightSpread * kWeightSpread));
    precision[size - 1] = 0;
    const auto draw = [&](size_t first, size_t count, double inputs) {
      for (size_t i = first; i < first + count; ++i)
        weights[static_cast<Eigen::Index>(i)] = StartingDraw(seed, i) / std::sqrt(inputs);
    };
    draw(0, shape_.biases(), kIappInputs);
    draw(shape_.second(), kIappHidden * kIappHidden, kIappHidden);
    draw(shape_.last(), kIappHidden, kIappHidden);
    weights[size - 1] = mean;
    Adam adam(size);
    const double rows = static_cast<double>(rows_.residuals.size());
    for (int step = 0; step < kSteps; ++step) {
      Gradient(weights, gradient);
      gradient = (gradient + kNoise * kNoise * precision * weights) / rows;
      adam.Step(gradient, RateAt(step, kSteps, kRate), weights);
    }
    return weights;
  }

 private:
  void Gradient(const Eigen::ArrayXd& weights, Eigen::ArrayXd& gradient) {
    const double* w = weights.data();
    double* g = gradient.data();
    const Eigen::Index inputs = rows_.columns.cols();
    const Weights first(w, inputs, kHidden), second(w + shape_.second(), kHidden, kHidden);
    const Eigen::Map<const Eigen::RowVectorXd> second_bias(w + shape_.second_bias(), kHidden);
    const Eigen::Map<const Eigen::VectorXd> last(w + shape_.last(), kHidden);
    hidden_.noalias() = rows_.columns * first;
    Activate(hidden_);
    second_.noalias() = hidden_ * second;
    second_.rowwise() += second_bias;
    Activate(second_);
    errors_.noalias() = second_ * last;
    errors_.array() += w[shape_.last_bias()] - rows_.residuals;
    g[shape_.last_bias()] = errors_.sum();
    Eigen::Map<Eigen::VectorXd>(g + shape_.last(), kHidden).noalias() = second_.transpose() * errors_;
    second_ = (1 - second_.array().abs()).square().colwise() * errors_.array();
    second_.array().rowwise() *= last.transpose().array();
    Eigen::Map<Eigen::RowVectorXd>(g + shape_.second_bias(), kHidden) = second_.colwise().sum();
    Eigen::Map<Matrix>(g + shape_.second(), kHidden, kHidden).noalias() = hidden_.transpose() * second_;
    back_.noalias() = second_ * second.transpose();
    back_.array() *= (1 - hidden_.array().abs()).square();
    Eigen::Map<Matrix>(g, inputs, kHidden).noalias() = rows_.columns.transpose() * back_;
  }

  const Rows& rows_;
  IappShape shape_;
  Matrix hidden_, second_, back_;
  Eigen::VectorXd errors_;
};

// ---- Trains the tower and the embeddings of `iasp` together.

constexpr int kIaspSteps = 1'000;
// How far a weight of the tower and a number of an embedding are expected from 0, what a device adds from its mean, and
// a margin from what factors can say: so strongly is each held back. An embedding most: what the tower can say of a job
// by its point, it shall say, as it must for jobs that were never run beside others.
constexpr double kTowerSpread = 0.2, kEmbeddingSpread = 0.1, kDeviceSpread = 0.3, kIaspNoise = 0.3;

constexpr auto kTowerHidden = static_cast<Eigen::Index>(kIaspHidden);
constexpr auto kWidth = static_cast<Eigen::Index>(kIaspWidth);
constexpr auto kRank = static_cast<Eigen::Index>(kIaspRank);
constexpr auto kColumns = static_cast<Eigen::Index>(kPointColumns);

// Rows by the points that they name; only jobs and devices with rows take part.
class Problem {
 public:
  Problem(const PairSet& set, std::span<const PairRow> rows, const PointScale& scale)
      : residuals_(ResidualsOf(set, rows, scale)), devices_(static_cast<Eigen::Index>(set.devices.size())) {
    const auto embedding_of = EmbeddingsOf(set);
    std::map<std::pair<uint32_t, uint32_t>, Eigen::Index> points;  // of job and device
    std::vector<Columns> columns;
    const auto point_of = [&](uint32_t job, uint32_t device) {
      const auto [at, added] = points.emplace(std::pair(job, device), static_cast<Eigen::Index>(columns.size()));
      if (added) {
        columns.push_back(scale.Standardise(set.jobs[job].points[device]));
        job_of_.push_back(embedding_of[job]);
        device_of_.push_back(device);
      }
      return at->second;
    };
    for (const PairRow& row : rows)
      rows_.push_back({point_of(row.victim, row.device), point_of(row.other, row.device), row.device});
    columns_.resize(static_cast<Eigen::Index>(columns.size()), kColumns);
    for (Eigen::Index i = 0; i < columns_.rows(); ++i) {
      for (Eigen::Index c = 0; c < kColumns; ++c)
        columns_(i, c) = columns[static_cast<size_t>(i)][static_cast<size_t>(c)];
    }
    embeddings_at_ = DeviceAt(devices_);
    size_ = embeddings_at_ + static_cast<Eigen::Index>(set.jobs.size()) * kWidth;
  }

  // Tower, devices, embeddings.
  [[nodiscard]] Eigen::ArrayXd Train(uint64_t seed, const MeanResidual& mean) {
    Eigen::ArrayXd x = Eigen::ArrayXd::Zero(size_), centre = Eigen::ArrayXd::Zero(size_), precision(size_),
                   gradient(size_);
    precision.setConstant(1 / (kTowerSpread * kTowerSpread));
    precision.segment(DeviceAt(0), DeviceAt(devices_) - DeviceAt(0)).setConstant(1 / (kDeviceSpread * kDeviceSpread));
    precision.tail(size_ - embeddings_at_).setConstant(1 / (kEmbeddingSpread * kEmbeddingSpread));
    for (Eigen::Index d = 0; d < devices_; ++d) {
      x[DeviceAt(d)] = mean.devices[static_cast<size_t>(d)];
      centre[DeviceAt(d)] = mean.all;
    }
    const auto draw = [&](size_t first, size_t count, size_t inputs) {
      for (size_t i = first; i < first + count; ++i)
        x[static_cast<Eigen::Index>(i)] = StartingDraw(seed, i) / std::sqrt(static_cast<double>(inputs));
    };
    draw(0, kIaspHiddenBias, kPointColumns);
    draw(kIaspLast, kIaspLastBias - kIaspLast, kIaspHidden);
    Adam adam(size_);
    const double pull = kIaspNoise * kIaspNoise, rows = static_cast<double>(rows_.size());
    for (int step = 0; step < kIaspSteps; ++step) {
      Gradient(x, gradient);
      gradient = (gradient + pull * precision * (x - centre)) / rows;
      adam.Step(gradient, RateAt(step, kIaspSteps, kRate), x);
    }
    return x;
  }

  // Jobs of one profile are one job: the first of them.
  [[nodiscard]] static std::vector<Eigen::Index> EmbeddingsOf(const PairSet& set) {
    std::map<uint64_t, Eigen::Index> first;
    std::vector<Eigen::Index> embeddings;
    for (const PairJob& job : set.jobs) {
      const auto own = static_cast<Eigen::Index>(embeddings.size());
      embeddings.push_back(job.profile_id == 0 ? own : first.emplace(job.profile_id, own).first->second);
    }
    return embeddings;
  }

 private:
  struct Row {
    Eigen::Index victim, other, device;  // points, and the device
  };

  void Gradient(const Eigen::ArrayXd& x, Eigen::ArrayXd& gradient) {
    gradient.setZero();
    const Eigen::Map<const Matrix> first(x.data(), kColumns, kTowerHidden);
    const Eigen::Map<const Eigen::RowVectorXd> first_bias(x.data() + kIaspHiddenBias, kTowerHidden);
    const Eigen::Map<const Matrix> last(x.data() + kIaspLast, kTowerHidden, kWidth);
    const Eigen::Map<const Eigen::RowVectorXd> last_bias(x.data() + kIaspLastBias, kWidth);
    hidden_ = (columns_ * first).rowwise() + first_bias;
    for (Eigen::Index i = 0; i < hidden_.rows(); ++i)
      hidden_.row(i) += Eigen::Map<const Eigen::RowVectorXd>(x.data() + PointDeviceAt(i) + 1, kTowerHidden);
    Activate(hidden_);
    factors_ = (hidden_ * last).rowwise() + last_bias;
    for (Eigen::Index i = 0; i < factors_.rows(); ++i)
      factors_.row(i) += Eigen::Map<const Eigen::RowVectorXd>(x.data() + EmbeddingAt(i), kWidth);
    AddRows(x, gradient);
    for (Eigen::Index i = 0; i < factors_.rows(); ++i)
      Eigen::Map<Eigen::RowVectorXd>(gradient.data() + EmbeddingAt(i), kWidth) += slopes_.row(i);
    Eigen::Map<Matrix>(gradient.data() + kIaspLast, kTowerHidden, kWidth) = hidden_.transpose() * slopes_;
    Eigen::Map<Eigen::RowVectorXd>(gradient.data() + kIaspLastBias, kWidth) = slopes_.colwise().sum();
    back_ = (slopes_ * last.transpose()).array() * (1 - hidden_.array().abs()).square();
    Eigen::Map<Matrix>(gradient.data(), kColumns, kTowerHidden) = columns_.transpose() * back_;
    Eigen::Map<Eigen::RowVectorXd>(gradient.data() + kIaspHiddenBias, kTowerHidden) = back_.colwise().sum();
    for (Eigen::Index i = 0; i < back_.rows(); ++i)
      Eigen::Map<Eigen::RowVectorXd>(gradient.data() + PointDeviceAt(i) + 1, kTowerHidden) += back_.row(i);
  }

  // Slopes of half the squared errors by factors and devices.
  void AddRows(const Eigen::ArrayXd& x, Eigen::ArrayXd& gradient) {
    constexpr auto kInflicts = static_cast<Eigen::Index>(kIaspInflicts);
    constexpr auto kSuffersAlike = static_cast<Eigen::Index>(kIaspSuffersAlike);
    constexpr auto kInflictsAlike = static_cast<Eigen::Index>(kIaspInflictsAlike);
    slopes_.setZero(factors_.rows(), kWidth);
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      const Eigen::Index device = DeviceAt(row.device);
      const auto suffers = factors_.block<1, kRank>(row.victim, 0);
      const auto inflicts = factors_.block<1, kRank>(row.other, kInflicts);
      const double error = suffers.dot(inflicts) + factors_(row.victim, kSuffersAlike) +
                           factors_(row.other, kInflictsAlike) + x[device] - residuals_[i];
      slopes_.block<1, kRank>(row.victim, 0) += error * inflicts;
      slopes_.block<1, kRank>(row.other, kInflicts) += error * suffers;
      slopes_(row.victim, kSuffersAlike) += error;
      slopes_(row.other, kInflictsAlike) += error;
      gradient[device] += error;
    }
  }

  [[nodiscard]] static Eigen::Index DeviceAt(Eigen::Index device) {
    return static_cast<Eigen::Index>(kIaspTowerSize + static_cast<size_t>(device) * kIaspDeviceWidth);
  }
  [[nodiscard]] Eigen::Index PointDeviceAt(Eigen::Index point) const {
    return DeviceAt(device_of_[static_cast<size_t>(point)]);
  }
  [[nodiscard]] Eigen::Index EmbeddingAt(Eigen::Index point) const {
    return embeddings_at_ + job_of_[static_cast<size_t>(point)] * kWidth;
  }

  std::vector<double> residuals_;
  std::vector<Row> rows_;
  std::vector<Eigen::Index> job_of_, device_of_;  // of each point
  Matrix columns_, hidden_, factors_, slopes_, back_;
  Eigen::Index devices_, embeddings_at_ = 0, size_ = 0;
};

}  // namespace

absl::StatusOr<BundleTarget> FitIapp(const PairSet& set, std::span<const PairRow> rows, const PairFitOptions& options) {
  if (rows.empty()) return InvalidArgument("iapp: expected at least 1 row, found 0");
  const PointScale scale = ScaleOf(set, rows);
  const Rows data = RowsFor(set, rows, scale);
  Network network(data, set.devices.size());
  const std::vector<bool> present = PresenceOf(set, rows).devices;
  const IappShape shape{.devices = set.devices.size()};
  std::vector<double> all;
  for (size_t k = 0; k < kIappNetworks; ++k) {
    const Eigen::ArrayXd weights = network.Train(CombineHash(options.seed, k), data.residuals.mean());
    const std::span<const double> net(weights.data(), shape.size());
    const size_t devices = shape.second() - shape.biases();
    const std::vector<double> biases = WithMean(net.subspan(shape.biases(), devices), kIappHidden, present);
    for (const std::span<const double> part :
         {net.first(shape.biases()), std::span(biases), net.subspan(shape.second())}) {
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  BundleTarget target;
  target.name = std::string(kIappName);
  target.link = Link::kExp;
  AddScale(scale, target);
  target.calibration.push_back({std::string(kIappWeights), std::move(all)});
  return target;
}

absl::StatusOr<BundleTarget> FitIasp(const PairSet& set, std::span<const PairRow> rows, const PairFitOptions& options) {
  if (rows.empty()) return InvalidArgument("iasp: expected at least 1 row, found 0");
  const PointScale scale = ScaleOf(set, rows);
  Problem problem(set, rows, scale);
  const Eigen::ArrayXd x = problem.Train(options.seed, MeanResidualOf(set, rows, scale));
  const std::span<const double> all(x.data(), static_cast<size_t>(x.size()));
  const auto tower = all.first(kIaspTowerSize),
             devices = all.subspan(kIaspTowerSize, set.devices.size() * kIaspDeviceWidth);
  const auto embeddings = all.subspan(kIaspTowerSize + devices.size());

  std::vector<double> of_devices = WithMean(devices, kIaspDeviceWidth, PresenceOf(set, rows).devices);
  std::vector<double> remembered(embeddings.begin(), embeddings.end());
  for (size_t j = 0; j < set.jobs.size(); ++j) {
    if (set.jobs[j].profile_id == 0)
      std::fill_n(remembered.begin() + static_cast<std::ptrdiff_t>(j * kIaspWidth), kIaspWidth, 0.0);
  }
  BundleTarget target;
  target.name = std::string(kIaspName);
  target.link = Link::kExp;
  AddScale(scale, target);
  target.calibration.push_back({std::string(kIaspDevices), std::move(of_devices)});
  target.calibration.push_back({std::string(kIaspTower), {tower.begin(), tower.end()}});
  target.calibration.push_back({std::string(kIaspEmbeddings), std::move(remembered)});
  return target;
}

}  // namespace horus
