// SPDX-License-Identifier: Apache-2.0
// The price of a gang, and the exact choice of its GPUs by the speed of the slowest.
#include "place/search/gang_price.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace horus {
namespace {

double LeastWork(std::span<const PricedGpu> gpus) {
  double least = std::numeric_limits<double>::infinity();
  for (const PricedGpu& gpu : gpus) least = std::min(least, gpu.own_work);
  return least;
}

// What a GPU costs a gang whose speed is given.
double Rest(const PricedGpu& gpu) { return gpu.cost + gpu.own_work; }

// Whether the GPUs that cost least by themselves, which it takes, cost the gang least too: they do where none waits for
// another and none that is slower would send for less.
bool TakeCheapest(std::span<const GangOffer> offers, const GangPace& pace, std::vector<PricedGpu>& chosen) {
  bool alike = true;
  const double own_work = offers.front().gpus.front().own_work;
  for (const GangOffer& offer : offers) {
    chosen.insert(chosen.end(), offer.gpus.begin(), offer.gpus.begin() + static_cast<ptrdiff_t>(offer.wanted));
    const std::span<const PricedGpu> asked = pace.communication > 0 ? offer.gpus : offer.gpus.first(offer.wanted);
    for (const PricedGpu& gpu : asked) alike = alike && gpu.own_work == own_work;
  }
  return alike;
}

// Of one offer, the cheapest so far among GPUs that come fastest first.
struct Kept {
  std::vector<double> rests;  // a heap, dearest first
  double sum = 0;
};

// The least own work that a GPU of the cheapest gang has.
double BestPace(std::span<const GangOffer> offers, const GangPace& pace) {
  std::vector<std::tuple<double, size_t, double>> order;  // own work negated, offer, rest
  size_t wanted = 0;
  for (size_t i = 0; i < offers.size(); ++i) {
    wanted += offers[i].wanted;
    for (const PricedGpu& gpu : offers[i].gpus) order.emplace_back(-gpu.own_work, i, Rest(gpu));
  }
  std::sort(order.begin(), order.end());
  std::vector<Kept> kept(offers.size());
  size_t full = 0;
  double best = std::numeric_limits<double>::infinity();
  double best_work = 0;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const double own_work = -std::get<0>(order[begin]);
    for (; end < order.size() && std::get<0>(order[end]) == std::get<0>(order[begin]); ++end) {
      const auto [key, offer, rest] = order[end];
      Kept& of = kept[offer];
      of.rests.push_back(rest);
      of.sum += rest;
      std::push_heap(of.rests.begin(), of.rests.end());
      full += of.rests.size() == offers[offer].wanted ? 1 : 0;
      if (of.rests.size() <= offers[offer].wanted) continue;
      std::pop_heap(of.rests.begin(), of.rests.end());
      of.sum -= of.rests.back();
      of.rests.pop_back();
    }
    if (full < offers.size()) continue;
    double cost = -static_cast<double>(wanted) * WorkWhileSending(own_work, pace);
    for (const Kept& of : kept) cost += of.sum;
    if (cost >= best) continue;
    best = cost;
    best_work = own_work;
  }
  return best_work;
}

}  // namespace

GangPrice PriceGang(std::span<const PricedGpu> gpus, const GangPace& pace) {
  GangPrice price;
  const double least = WorkWhileSending(LeastWork(gpus), pace);
  for (const PricedGpu& gpu : gpus) {
    const double own_work = WorkWhileSending(gpu.own_work, pace);
    price.cost += gpu.cost;
    price.sent += gpu.own_work - own_work;
    price.straggler += own_work - least;
  }
  price.cost += price.sent + price.straggler;
  return price;
}

GangPrice CheapestGang(std::span<const GangOffer> offers, const GangPace& pace, std::vector<PricedGpu>& chosen) {
  chosen.clear();
  if (TakeCheapest(offers, pace, chosen)) return PriceGang(chosen, pace);
  chosen.clear();
  const double least = BestPace(offers, pace);
  std::vector<PricedGpu> able;
  for (const GangOffer& offer : offers) {
    able.clear();
    for (const PricedGpu& gpu : offer.gpus) {
      if (gpu.own_work >= least) able.push_back(gpu);
    }
    std::sort(able.begin(), able.end(), [](const PricedGpu& a, const PricedGpu& b) {
      return std::tuple(Rest(a), a.cost, a.device) < std::tuple(Rest(b), b.cost, b.device);
    });
    chosen.insert(chosen.end(), able.begin(), able.begin() + static_cast<ptrdiff_t>(offer.wanted));
  }
  return PriceGang(chosen, pace);
}

}  // namespace horus
