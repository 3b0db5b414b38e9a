// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, ICLR 2015) on all rows at once, and the starting weights of small networks.
//
// Enters:  parameters and the gradient of a loss at them.
// Leaves:  parameters a step further.
// Units:   whatever the loss says.
// Cost:    linear in the parameters.     Thread class: one thread at a time.
#ifndef HORUS_INTERFERENCE_ADAM_H_
#define HORUS_INTERFERENCE_ADAM_H_

#include <Eigen/Core>
#include <cmath>
#include <cstdint>

#include "base/hash.h"

namespace horus {

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
inline double RateAt(int step, int steps, double first) {
  constexpr double kPi = 3.14159265358979323846;
  return first * 0.5 * (1 + std::cos(kPi * step / steps));
}

// A number of variance 1 that is a function of its arguments alone: uniform, as the shape does not matter.
inline double StartingDraw(uint64_t seed, uint64_t index) {
  constexpr double kSpan = 3.4641016151377544;  // sqrt(12): the width of a uniform variable of variance 1
  constexpr double kTwoTo53 = 9007199254740992.0;
  const uint64_t bits = Mix64(CombineHash(seed, index)) >> 11;
  return kSpan * ((static_cast<double>(bits) + 0.5) / kTwoTo53 - 0.5);
}

}  // namespace horus

#endif  // HORUS_INTERFERENCE_ADAM_H_
