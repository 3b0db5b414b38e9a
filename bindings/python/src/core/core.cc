// SPDX-License-Identifier: Apache-2.0
// Errors, callbacks that raise, and progress; see core.h.
#include "core.h"

#include <unistd.h>

#include <string>

namespace horus_python {
namespace {

constexpr size_t kShownChars = 80;                   // of a value in a message
constexpr std::chrono::milliseconds kTellEvery{20};  // Ctrl-C is to be answered within 100 ms

thread_local std::exception_ptr pending;

}  // namespace

void Raise(horus_status status, const std::string& message) {
  const py::object made = py::module_::import("horus.errors").attr("from_status")(status, message);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
  throw py::error_already_set();
}

void Refuse(const std::string& what, const std::string& expected, const std::string& found) {
  Raise(HORUS_ERR_INVALID_ARGUMENT, what + ": expected " + expected + ", found " + found);
}

std::string Shown(py::handle value) {
  const auto utf8 = py::reinterpret_steal<py::bytes>(
      PyUnicode_AsEncodedString(py::repr(value).ptr(), "utf-8", "backslashreplace"));  // surrogates are shown too
  if (!utf8) throw py::error_already_set();
  std::string text = utf8;
  if (text.size() > kShownChars) {
    size_t cut = kShownChars;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;  // between characters of UTF-8
    text = text.substr(0, cut) + "...";
  }
  return text + " (" + Py_TYPE(value.ptr())->tp_name + ")";
}

Pending::Pending() : outer_(std::exchange(pending, nullptr)) {}

Pending::~Pending() { pending = std::move(outer_); }

int32_t Pending::Keep() {
  if (!pending) pending = std::current_exception();
  return 1;
}

void Pending::Rethrow() {
  if (pending) std::rethrow_exception(std::exchange(pending, nullptr));
}

void WaitForTheEnd() {
  for (;;) pause();
}

Released::~Released() {
  OrWait([&] { PyEval_RestoreThread(thread_); });
}

Held::Held() : state_(OrWait([] { return PyGILState_Ensure(); })) {}

py::object CallWith(const py::object& callable, const py::tuple& arguments) {
  PyObject* answer = OrWait([&] { return PyObject_CallObject(callable.ptr(), arguments.ptr()); });
  if (answer == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(answer);
}

int& InCallback::Depth() {
  thread_local int depth = 0;
  return depth;
}

Bytes::Bytes(const py::buffer& source, const char* what) : info_(source.request()) {
  if (info_.itemsize != 1 || info_.ndim != 1) {
    Refuse(what, "contiguous bytes",
           std::to_string(info_.ndim) + " dimensions of items of " + std::to_string(info_.itemsize) + " bytes");
  }
  if (info_.size > 1 && info_.strides[0] != 1) Refuse(what, "contiguous bytes", "a stepped slice");
}

bool Progress::Due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kTellEvery) return false;
  last_ = now;
  return true;
}

bool Progress::Ask(double done) {
  const InCallback inside;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  if (callback_.is_none()) return true;
  py::object answer = CallPython(callback_, done);
  const bool go_on = answer.ptr() != Py_False;
  Forget(answer);
  return go_on;
}

int32_t Progress::Tell(void* user, double done) {
  auto* self = static_cast<Progress*>(user);
  if (!self->Due()) return 0;
  return Callback([&] { return self->Ask(done) ? 0 : 1; });
}

void Progress::Check(double done) {
  if (!Due()) return;
  const Held held;
  if (!Ask(done)) Raise(HORUS_ERR_CANCELLED, "the progress callback asked to stop");
}

std::vector<const char*> Texts(const std::vector<std::string>& names) {
  std::vector<const char*> texts;
  texts.reserve(names.size());
  for (const std::string& name : names) texts.push_back(name.c_str());
  return texts;
}

}  // namespace horus_python
