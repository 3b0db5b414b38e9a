// SPDX-License-Identifier: Apache-2.0
// Fields of values between Python and C++: Arg<T> takes and gives one type and names it in messages and stubs.
#ifndef HORUS_PYTHON_ARGS_H_
#define HORUS_PYTHON_ARGS_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core.h"

namespace horus_python {

// A constant of the C ABI as a word of the interface.
struct Word {
  int32_t number;
  const char* word;
};
// Tables end with a null word. Refuses what is not among them, naming those that are.
[[nodiscard]] int32_t NumberOf(const Word* words, py::handle value, const std::string& what);
[[nodiscard]] const char* WordOf(const Word* words, int32_t number);  // "unknown" for other numbers
[[nodiscard]] std::string LiteralOf(const Word* words);               // Literal['a', 'b']

// As ==, but for NaN, which equals itself: unknown is unknown. For what fields hold: numbers, text, tuples, dicts,
// values.
[[nodiscard]] bool Same(py::handle a, py::handle b);

inline constexpr double kNoMost = 9.2e18;  // of a count or an amount: whatever its type holds

void CheckWithin(double number, double least, double most, const std::string& what);
[[noreturn]] void WrongType(const std::string& what, const std::string& expected, py::handle found);

// A class of the module, unless below.
template <typename T, typename Enable = void>
struct Arg {
  static T From(py::handle value, const std::string& what) {
    if (!py::isinstance<T>(value)) WrongType(what, NameOf<T>(), value);
    return py::cast<const T&>(value);
  }
  static std::string In() { return NameOf<T>(); }
  static std::string Out() { return NameOf<T>(); }
  static py::object To(const T& value) { return py::cast(value); }
};

// After a conversion failed: forgets that the type or the range is wrong. What else a value's own __index__ or
// __float__ raised goes on.
void ForgetMismatch();

// Any integer type of Python or numpy, within the range of T.
template <typename T>
struct Arg<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static std::string In() { return "int"; }
  static std::string Out() { return "int"; }
  static T From(py::handle value, const std::string& what) {
    const py::object index =
        PyBool_Check(value.ptr()) ? py::object() : py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!index) {
      ForgetMismatch();
      WrongType(what, "int", value);
    }
    T number = 0;
    bool fits = false;
    if constexpr (std::is_signed_v<T>) {
      const long long wide = PyLong_AsLongLong(index.ptr());
      fits =
          PyErr_Occurred() == nullptr && wide >= std::numeric_limits<T>::min() && wide <= std::numeric_limits<T>::max();
      number = static_cast<T>(wide);
    } else {
      const unsigned long long wide = PyLong_AsUnsignedLongLong(index.ptr());
      fits = PyErr_Occurred() == nullptr && wide <= std::numeric_limits<T>::max();
      number = static_cast<T>(wide);
    }
    PyErr_Clear();
    if (!fits) {
      Refuse(what,
             "an integer from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                 std::to_string(std::numeric_limits<T>::max()),
             Shown(value));
    }
    return number;
  }
  static py::object To(T value) { return py::int_(value); }
};

template <typename T>
struct Arg<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static std::string In() { return "float"; }
  static std::string Out() { return "float"; }
  static T From(py::handle value, const std::string& what) {
    const double number = PyUnicode_Check(value.ptr()) ? -1.0 : PyFloat_AsDouble(value.ptr());
    if (PyUnicode_Check(value.ptr()) || PyErr_Occurred() != nullptr) {
      const bool wide = PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
      ForgetMismatch();
      if (wide) Refuse(what, "a number that a float can hold", Shown(value));
      WrongType(what, "float", value);
    }
    return static_cast<T>(number);
  }
  static py::object To(T value) { return py::float_(static_cast<double>(value)); }
};

template <>
struct Arg<bool> {
  static std::string In() { return "bool"; }
  static std::string Out() { return "bool"; }
  static bool From(py::handle value, const std::string& what);
  static py::object To(bool value) { return py::bool_(value); }
};

template <>
struct Arg<std::string> {
  static std::string In() { return "str"; }
  static std::string Out() { return "str"; }
  static std::string From(py::handle value, const std::string& what);
  static py::object To(const std::string& value) { return py::str(value); }
};

// Sequences, which become tuples: values do not change.
template <typename T>
struct Arg<std::vector<T>> {
  static std::string In() { return "collections.abc.Sequence[" + Arg<T>::In() + "]"; }
  static std::string Out() { return "tuple[" + Arg<T>::Out() + ", ...]"; }
  static std::vector<T> From(py::handle value, const std::string& what) {
    if (PyUnicode_Check(value.ptr()) || PySequence_Check(value.ptr()) == 0) WrongType(what, "a sequence", value);
    std::vector<T> items;
    const auto sequence = py::reinterpret_borrow<py::sequence>(value);
    const size_t count = sequence.size();
    items.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      items.push_back(Arg<T>::From(py::object(sequence[i]), what + "[" + std::to_string(i) + "]"));
    }
    return items;
  }
  static py::object To(const std::vector<T>& items) {
    py::tuple out(items.size());
    for (size_t i = 0; i < items.size(); ++i) out[i] = Arg<T>::To(items[i]);
    return out;
  }
};

template <typename T>
struct Arg<std::optional<T>> {
  static std::string In() { return Arg<T>::In() + " | None"; }
  static std::string Out() { return Arg<T>::Out() + " | None"; }
  static std::optional<T> From(py::handle value, const std::string& what) {
    if (value.is_none()) return std::nullopt;
    return Arg<T>::From(value, what);
  }
  static py::object To(const std::optional<T>& value) { return value ? Arg<T>::To(*value) : py::none(); }
};

// Mappings in their own order, with text as keys.
template <typename T>
struct Arg<std::vector<std::pair<std::string, T>>> {
  static std::string In() { return "collections.abc.Mapping[str, " + Arg<T>::In() + "]"; }
  static std::string Out() { return "dict[str, " + Arg<T>::Out() + "]"; }
  static std::vector<std::pair<std::string, T>> From(py::handle value, const std::string& what) {
    if (PyMapping_Check(value.ptr()) == 0 || !py::hasattr(value, "items")) WrongType(what, "a mapping", value);
    std::vector<std::pair<std::string, T>> pairs;
    for (py::handle item : py::list(value.attr("items")())) {
      const auto pair = py::reinterpret_borrow<py::sequence>(item);
      const std::string key = Arg<std::string>::From(py::object(pair[0]), what + ": key");
      pairs.emplace_back(key, Arg<T>::From(py::object(pair[1]), what + "[" + key + "]"));
    }
    return pairs;
  }
  static py::object To(const std::vector<std::pair<std::string, T>>& pairs) {
    py::dict out;
    for (const auto& [key, item] : pairs) out[py::str(key)] = Arg<T>::To(item);
    return out;
  }
};

// Pointers into a tuple of objects of a class of the module; the tuple must live on. No other sequence: a list may lose
// its items while the library reads them, others may make theirs for each look.
template <typename T, typename Base = T>
std::vector<const Base*> PointersOf(const py::tuple& values, const std::string& what) {
  std::vector<const Base*> pointers;
  const size_t count = values.size();
  pointers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const py::object value = values[i];
    if (!py::isinstance<T>(value)) WrongType(what + "[" + std::to_string(i) + "]", NameOf<T>(), value);
    pointers.push_back(py::cast<const T*>(value));
  }
  return pointers;
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_ARGS_H_
