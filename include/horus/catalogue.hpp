// SPDX-License-Identifier: Apache-2.0
// The GPU types in C++, over demand.h. Included by horus.hpp.
#ifndef HORUS_CATALOGUE_HPP_
#define HORUS_CATALOGUE_HPP_

#include <cstddef>
#include <string>

#include "horus/horus.h"
#include "horus/values.hpp"

namespace horus {
inline namespace face_v0 {  // see values.hpp

// The GPU types. Where a catalogue is optional, null means the built-in one.
class Catalogue {
 public:
  Catalogue() {
    horus_catalogue* out = nullptr;
    detail::Call(horus_catalogue_default, &out);
    handle_.reset(out);
  }
  [[nodiscard]] size_t size() const noexcept { return horus_catalogue_count(get()); }
  [[nodiscard]] horus_gpu at(size_t index) const {
    horus_gpu gpu = HORUS_GPU_INIT;
    detail::Call(horus_catalogue_get, get(), index, &gpu);
    return gpu;
  }
  [[nodiscard]] size_t Find(const std::string& name) const {
    size_t index = 0;
    detail::Call(horus_catalogue_find, get(), name.c_str(), &index);
    return index;
  }
  [[nodiscard]] const horus_catalogue* get() const noexcept { return handle_.get(); }

 private:
  detail::Owned<horus_catalogue, horus_catalogue_free> handle_;
};

namespace detail {

inline const horus_catalogue* HandleOf(const Catalogue* catalogue) {
  return catalogue == nullptr ? nullptr : catalogue->get();
}

}  // namespace detail

}  // namespace face_v0
}  // namespace horus

#endif  // HORUS_CATALOGUE_HPP_
