// SPDX-License-Identifier: Apache-2.0
// Words, text and truth values; see args.h.
#include "args.h"

namespace horus_python {

void WrongType(const std::string& what, const std::string& expected, py::handle found) {
  PyErr_SetString(PyExc_TypeError, (what + ": expected " + expected + ", found " + Shown(found)).c_str());
  throw py::error_already_set();
}

void CheckWithin(double number, double least, double most, const std::string& what) {
  if (number >= least && number <= most) return;
  const auto shown = [](double value) { return py::cast<std::string>(py::str("{:.15g}").format(value)); };
  Refuse(what, most >= kNoMost ? "at least " + shown(least) : shown(least) + " to " + shown(most), shown(number));
}

void ForgetMismatch() {
  const auto raised = [](PyObject* kind) { return PyErr_ExceptionMatches(kind) != 0; };
  if (PyErr_Occurred() != nullptr && !raised(PyExc_TypeError) && !raised(PyExc_OverflowError)) {
    throw py::error_already_set();
  }
  PyErr_Clear();
}

bool Same(py::handle a, py::handle b) {
  if (PyFloat_Check(a.ptr()) && PyFloat_Check(b.ptr())) {
    const double x = PyFloat_AS_DOUBLE(a.ptr());
    const double y = PyFloat_AS_DOUBLE(b.ptr());
    return x == y || (x != x && y != y);
  }
  if (PyTuple_Check(a.ptr()) && PyTuple_Check(b.ptr())) {
    if (PyTuple_GET_SIZE(a.ptr()) != PyTuple_GET_SIZE(b.ptr())) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a.ptr()); ++i) {
      if (!Same(PyTuple_GET_ITEM(a.ptr(), i), PyTuple_GET_ITEM(b.ptr(), i))) return false;
    }
    return true;
  }
  if (PyDict_Check(a.ptr()) && PyDict_Check(b.ptr())) {
    if (PyDict_Size(a.ptr()) != PyDict_Size(b.ptr())) return false;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(a.ptr(), &at, &key, &value) != 0;) {
      PyObject* other = PyDict_GetItem(b.ptr(), key);
      if (other == nullptr || !Same(value, other)) return false;
    }
    return true;
  }
  return a.equal(b);
}

namespace {

// "; did you mean 'a'?"
std::string Near(const std::string& text, const Word* words) {
  py::list known;
  for (const Word* at = words; at->word != nullptr; ++at) known.append(at->word);
  return py::cast<std::string>(py::module_::import("horus._args").attr("near")(text, known));
}

}  // namespace

int32_t NumberOf(const Word* words, py::handle value, const std::string& what) {
  const std::string text = Arg<std::string>::From(value, what);
  std::string known;
  for (const Word* at = words; at->word != nullptr; ++at) {
    if (text == at->word) return at->number;
    known += (known.empty() ? "'" : ", '") + std::string(at->word) + "'";
  }
  Refuse(what, "one of " + known, Shown(value) + Near(text, words));
}

const char* WordOf(const Word* words, int32_t number) {
  for (const Word* at = words; at->word != nullptr; ++at) {
    if (at->number == number) return at->word;
  }
  return "unknown";
}

std::string LiteralOf(const Word* words) {
  std::string text = "typing.Literal[";
  for (const Word* at = words; at->word != nullptr; ++at) {
    text += (at == words ? "'" : ", '") + std::string(at->word) + "'";
  }
  return text + "]";
}

bool Arg<bool>::From(py::handle value, const std::string& what) {
  if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
  const char* type = Py_TYPE(value.ptr())->tp_name;
  if (std::string(type) == "numpy.bool" || std::string(type) == "numpy.bool_") {
    const int holds = PyObject_IsTrue(value.ptr());
    if (holds < 0) throw py::error_already_set();
    return holds == 1;
  }
  WrongType(what, "bool", value);
}

std::string Arg<std::string>::From(py::handle value, const std::string& what) {
  if (!PyUnicode_Check(value.ptr())) WrongType(what, "str", value);
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) {  // a lone surrogate
    PyErr_Clear();
    Refuse(what, "text that UTF-8 can write", Shown(value));
  }
  std::string copy(text, static_cast<size_t>(size));
  if (copy.find('\0') != std::string::npos) Refuse(what, "text without NUL", Shown(value));
  return copy;
}

}  // namespace horus_python
