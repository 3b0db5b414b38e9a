// SPDX-License-Identifier: Apache-2.0
// Classes of the module. Misuse that pybind11 lets pass, at the price of the interpreter, raises TypeError.
#ifndef HORUS_PYTHON_CLASS_H_
#define HORUS_PYTHON_CLASS_H_

#include <pybind11/pybind11.h>

#include <string>

namespace horus_python {

namespace py = pybind11;

// The value of an object of T; null before __init__ has made it.
template <typename T>
T* MadeOf(PyObject* self) {
  auto* object = reinterpret_cast<py::detail::instance*>(self);
  const bool made = object->simple_layout && object->simple_holder_constructed;
  return made ? static_cast<T*>(object->simple_value_holder[0]) : nullptr;
}

// The name of a class of the module, as Python sees it.
template <typename T>
std::string NameOf() {
  return py::cast<std::string>(py::type::of<T>().attr("__name__"));
}

// Final, as the stubs say, and without subclasses' ways around __init__. What has Visit and Drop takes part in cyclic
// garbage collection.
template <typename T>
py::class_<T> Class(py::module_& m, const char* name, const char* doc = nullptr) {
  const auto setup = [](PyHeapTypeObject* heap) {
    PyTypeObject& type = heap->ht_type;
    type.tp_basicsize += sizeof(void*);  // unlike that of pybind11's base: `value.__class__ = Other` finds no match
    if constexpr (requires(T& value) { value.Drop(); }) {
      type.tp_flags |= Py_TPFLAGS_HAVE_GC;
      type.tp_traverse = [](PyObject* self, visitproc visit, void* argument) {
        const T* value = MadeOf<T>(self);
        return value == nullptr ? 0 : value->Visit(visit, argument);
      };
      type.tp_clear = [](PyObject* self) {
        if (T* value = MadeOf<T>(self)) value->Drop();
        return 0;
      };
    }
  };
  // Local: other modules may have classes for values of the C++ face, too.
  py::class_<T> made(m, name, py::is_final(), py::module_local(), py::custom_type_setup(setup), doc);
  // Asked for memory only where a function is given an object of T.__new__(T).
  auto* type = reinterpret_cast<PyTypeObject*>(made.ptr());
  py::detail::get_type_info(type)->operator_new = [](size_t) -> void* {
    throw py::type_error(NameOf<T>() + ".__init__ was never called");
  };
  return made;
}

}  // namespace horus_python

#endif  // HORUS_PYTHON_CLASS_H_
