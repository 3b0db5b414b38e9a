// SPDX-License-Identifier: Apache-2.0
// What every file of the module needs: calls into the C ABI without the interpreter's lock, errors, owned handles.
//
// A call goes through Run(): the lock (GIL) is released while the library works, what a Python callback raised inside
// it comes back as itself, and a status becomes the exception of horus.errors.
#ifndef HORUS_PYTHON_CORE_H_
#define HORUS_PYTHON_CORE_H_

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "class.h"
#include "horus/lab/lab.hpp"

namespace horus_python {

namespace py = pybind11;

// Raises the exception of horus.errors that belongs to `status`. The lock must be held.
[[noreturn]] void Raise(horus_status status, const std::string& message);
// Of a wrong argument: "what: expected ..., found ...".
[[noreturn]] void Refuse(const std::string& what, const std::string& expected, const std::string& found);
// A Python value in a message: its repr, cut, and its type.
[[nodiscard]] std::string Shown(py::handle value);

// What callbacks of one call raise, until it has returned; a call within a callback has its own.
class Pending {
 public:
  Pending();
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  // To be called from a catch block; the answer that ends the library's call.
  static int32_t Keep();
  static void Rethrow();  // if there is any

 private:
  std::exception_ptr outer_;
};

// The interpreter's lock: let go while the library works, held while a callback runs. At the interpreter's end Python
// before 3.14 unwinds a thread that asks for the lock (pthread_exit), through destructors that would need it: here such
// a thread waits for the end of the process, as from 3.14 on.
[[noreturn]] void WaitForTheEnd();
class Released {
 public:
  Released() : thread_(PyEval_SaveThread()) {}
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* thread_;
};
class Held {
 public:
  Held();
  ~Held() { PyGILState_Release(state_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  PyGILState_STATE state_;
};
// Runs what may ask for the lock; where it would be unwound, waits. To be called right around it: what is unwound on
// the way here is destroyed without the lock.
template <typename Function>
auto OrWait(const Function& function) {
#ifdef __GLIBCXX__
  try {
    return function();
  } catch (const abi::__forced_unwind&) {
    WaitForTheEnd();
  }
#else
  return function();
#endif
}
// Calls a callback of Python, which lets go of the lock now and then.
[[nodiscard]] py::object CallWith(const py::object& callable, const py::tuple& arguments);
template <typename... Arguments>
py::object CallPython(const py::object& callable, Arguments&&... arguments) {
  return CallWith(callable, py::make_tuple(std::forward<Arguments>(arguments)...));
}
// Drops what a callback answered, whose __del__ may be the caller's.
inline void Forget(py::object& answer) {
  OrWait([&] { answer.release().dec_ref(); });
}

// While a callback runs on this thread: writers must not wait for a call that waits for them.
class InCallback {
 public:
  InCallback() { ++Depth(); }
  ~InCallback() { --Depth(); }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
  static int& Depth();
};

// The body of a callback of the library, which holds the interpreter's lock: what it throws ends the library's call.
template <typename Function>
int32_t Callback(const Function& body) {
  const Held held;
  const InCallback inside;
  try {
    return OrWait(body);
  } catch (...) {
    return Pending::Keep();
  }
}

// Calls `function(horus_error*)` without the interpreter's lock.
template <typename Function>
void Run(const Function& function) {
  horus_error error = HORUS_ERROR_INIT;
  horus_status status = HORUS_OK;
  const Pending pending;
  {
    const Released released;
    status = function(&error);
  }
  Pending::Rethrow();  // even where the library did without the callback's answer
  if (status != HORUS_OK) Raise(status, error.message);
}

// Two calls, the first for the count: `function(capacity, data, count, error)`. What a callback raises in the first
// does not keep the second from being made.
template <typename T, typename Function>
std::vector<T> Collect(const Function& function) {
  std::vector<T> values;
  Run([&](horus_error* error) {
    for (;;) {
      size_t count = 0;
      const horus_status status = function(values.size(), values.data(), &count, error);
      if (status != HORUS_OK && status != HORUS_ERR_BUFFER_TOO_SMALL) return status;
      const bool filled = status == HORUS_OK && count <= values.size();
      values.resize(count);
      if (filled) return status;
    }
  });
  return values;
}

inline py::bytes ToBytes(const std::vector<char>& bytes) { return py::bytes(bytes.data(), bytes.size()); }

// A bytes-like argument, held while it is used.
class Bytes {
 public:
  Bytes(const py::buffer& source, const char* what);
  [[nodiscard]] const void* data() const { return info_.ptr; }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(info_.size * info_.itemsize); }

 private:
  py::buffer_info info_;
};

// A handle of the C ABI, and the Python objects that its callbacks need.
template <typename T, void (*Free)(T*)>
class Handle {
 public:
  explicit Handle(T* owned, std::vector<py::object> keeps = {}) : handle_(owned), keeps_(std::move(keeps)) {}
  ~Handle() { Drop(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  [[nodiscard]] T* get() const { return handle_.get(); }
  [[nodiscard]] const std::vector<py::object>& keeps() const { return keeps_; }
  // Takes a reference to who is told about calls from now on, and returns the one before; the interpreter's lock need
  // not be held.
  [[nodiscard]] PyObject* KeepTold(PyObject* told) const { return told_.exchange(told); }

  // For the cyclic garbage collector: callbacks often know who owns the handle. After Drop it is
  // as NULL to the library.
  int Visit(visitproc visit, void* arg) const {  // named as Py_VISIT wants it
    for (const py::object& keep : keeps_) Py_VISIT(keep.ptr());
    Py_VISIT(told_.load());
    return 0;
  }
  void Drop() {
    handle_.reset();
    const std::vector<py::object> last = std::exchange(keeps_, {});
    Py_XDECREF(KeepTold(nullptr));
  }

 private:
  horus::detail::Owned<T, Free> handle_;
  std::vector<py::object> keeps_;
  mutable std::atomic<PyObject*> told_ = nullptr;
};

// Makes a handle: `function(T** out, horus_error*)`.
template <typename H, typename T, typename Function>
std::unique_ptr<H> Make(const Function& function, std::vector<py::object> keeps = {}) {
  std::unique_ptr<H> made;
  Run([&](horus_error* error) {
    T* out = nullptr;
    const horus_status status = function(&out, error);
    if (status == HORUS_OK) made = std::make_unique<H>(out, std::move(keeps));
    return status;
  });
  return made;
}

// Progress of a long call: asks for signals (Ctrl-C) and tells the caller's function, both some tens of times a second.
class Progress {
 public:
  explicit Progress(py::object callback) : callback_(std::move(callback)) {}
  static int32_t Tell(void* user, double done);
  // The same for loops of our own, which hold the lock or do not: throws what was raised, or Cancelled.
  void Check(double done);

 private:
  bool Due();
  bool Ask(double done);  // with the lock held: whether to go on; may throw
  py::object callback_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Positions of `names` as the C ABI takes them; borrows the texts.
std::vector<const char*> Texts(const std::vector<std::string>& names);

// Rooms of the module, in corridor order.
void BindValues(py::module_& m);
void BindJob(py::module_& m);
void BindCatalogue(py::module_& m);
void BindGraph(py::module_& m);
void BindPredictor(py::module_& m);
void BindObservations(py::module_& m);
void BindInterference(py::module_& m);
void BindCluster(py::module_& m);
void BindPlan(py::module_& m);
void BindPlacer(py::module_& m);
void BindLatency(py::module_& m);
void BindQueue(py::module_& m);
void BindTrace(py::module_& m);
void BindTruth(py::module_& m);
void BindPotential(py::module_& m);
void BindSim(py::module_& m);
void BindFiles(py::module_& m);
void BindLearn(py::module_& m);
void BindMetrics(py::module_& m);

}  // namespace horus_python

#endif  // HORUS_PYTHON_CORE_H_
