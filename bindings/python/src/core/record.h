// SPDX-License-Identifier: Apache-2.0
// Values of the interface (Job, Node, Demand, ...): a table of fields gives the constructor with keywords, read-only
// attributes, ==, repr, replace(), to_dict() and pickling, and a docstring from which the stubs are made.
#ifndef HORUS_PYTHON_RECORD_H_
#define HORUS_PYTHON_RECORD_H_

#include <pybind11/pybind11.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "args.h"
#include "core.h"

namespace horus_python {

// T has copies. Values do not change once made.
template <typename T>
class Record {
 public:
  // The first `positional` fields may be given without their names.
  Record(py::module_& m, const char* name, const char* doc, size_t positional = 0, T defaults = {})
      : class_(Class<T>(m, name)), doc_(doc) {
    Table().name = name;
    Table().positional = positional;
    Table().defaults = std::move(defaults);
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record() { Finish(); }

  // `member`: a pointer to it, or a function from T& to it.
  template <typename Member>
  Record& Field(const char* name, Member member, const char* doc) {
    using A = Arg<std::remove_cvref_t<std::invoke_result_t<Member, T&>>>;
    return Add(
        name, A::In(), A::Out(), doc,
        [member](T& value, py::handle given, const std::string& what) {
          std::invoke(member, value) = A::From(given, what);
        },
        [member](const T& value) -> py::object { return A::To(std::invoke(member, value)); });
  }
  // A constant, as one of the words.
  template <typename Owner>
  Record& OneOf(const char* name, int32_t Owner::* member, const Word* words, const char* doc) {
    return Add(
        name, LiteralOf(words), LiteralOf(words), doc,
        [=](T& value, py::handle given, const std::string& what) { value.*member = NumberOf(words, given, what); },
        [=](const T& value) -> py::object { return py::str(WordOf(words, value.*member)); });
  }
  // The number named last is refused outside the range, NaN too, where it is given.
  Record& Within(double least, double most) {
    FieldOf& field = Table().fields.back();
    field.set = [set = std::move(field.set), get = field.get, least, most](T& value, py::handle given,
                                                                           const std::string& what) {
      set(value, given, what);
      CheckWithin(py::cast<double>(get(value)), least, most, what);
    };
    return *this;
  }
  // For what is neither.
  Record& Add(const char* name, std::string in, std::string out, const char* doc,
              std::function<void(T&, py::handle, const std::string&)> set, std::function<py::object(const T&)> get) {
    Table().fields.push_back({name, std::move(in), std::move(out), doc, std::move(set), std::move(get)});
    return *this;
  }
  py::class_<T>& type() { return class_; }

 private:
  struct FieldOf {
    std::string name, in, out, doc;
    std::function<void(T&, py::handle, const std::string&)> set;
    std::function<py::object(const T&)> get;
  };
  struct Fields {
    std::string name;
    std::vector<FieldOf> fields;
    size_t positional = 0;
    T defaults = {};
  };
  // One table a type for the life of the process: constructors read it.
  static Fields& Table() {
    static auto* table = new Fields();
    return *table;
  }

  static void Set(T& value, const std::string& name, py::handle given) {
    for (const FieldOf& field : Table().fields) {
      if (field.name == name) return field.set(value, given, Table().name + "." + name);
    }
    std::string known;
    py::list names;
    for (const FieldOf& field : Table().fields) {
      known += (known.empty() ? "" : ", ") + field.name;
      names.append(field.name);
    }
    const auto near = py::cast<std::string>(py::module_::import("horus._args").attr("near")(name, names));
    PyErr_SetString(PyExc_TypeError, (Table().name + " has no field '" + name + "'; it has " + known + near).c_str());
    throw py::error_already_set();
  }
  static std::string KeyOf(py::handle name) { return Arg<std::string>::From(name, Table().name + ": name"); }
  static T FromArguments(const py::args& args, const py::kwargs& keywords) {
    T value = Table().defaults;
    if (args.size() > Table().positional) {
      PyErr_SetString(PyExc_TypeError, (Table().name + " takes " + std::to_string(Table().positional) +
                                        " positional arguments, found " + std::to_string(args.size()))
                                           .c_str());
      throw py::error_already_set();
    }
    for (size_t i = 0; i < args.size(); ++i) {
      const FieldOf& field = Table().fields[i];
      if (keywords.contains(field.name.c_str())) {
        PyErr_SetString(PyExc_TypeError, (Table().name + "." + field.name + " is given twice").c_str());
        throw py::error_already_set();
      }
      field.set(value, py::object(args[i]), Table().name + "." + field.name);
    }
    for (const auto& [name, given] : keywords) Set(value, KeyOf(name), given);
    return value;
  }
  static py::dict ToDict(const T& value) {
    py::dict out;
    for (const FieldOf& field : Table().fields) out[py::str(field.name)] = field.get(value);
    return out;
  }
  static T FromDict(const py::dict& fields) {
    T value = Table().defaults;
    const auto own = py::reinterpret_steal<py::dict>(PyDict_Copy(fields.ptr()));  // a field's __index__ may change it
    if (!own) throw py::error_already_set();
    for (const auto& [name, given] : own) Set(value, KeyOf(name), given);
    return value;
  }
  // For constructors: the value's own arguments may have made the object meanwhile, which then stays as it is.
  static void Place(py::detail::value_and_holder& object, T value) {
    if (!object.instance_registered()) object.value_ptr() = new T(std::move(value));
  }
  // The fields that differ from their defaults.
  static std::string Repr(const T& value) {
    std::string text;
    for (const FieldOf& field : Table().fields) {
      const py::object now = field.get(value);
      if (now.equal(field.get(Table().defaults))) continue;
      text += (text.empty() ? "" : ", ") + field.name + "=" + py::cast<std::string>(py::repr(now));
    }
    return Table().name + "(" + text + ")";
  }

  // Signatures go into docstrings, from where the stubs take them.
  void Finish() {
    std::string signature;
    std::string list;
    const auto& fields = Table().fields;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i == Table().positional) signature += ", *";
      signature += ", " + fields[i].name + ": " + fields[i].in + " = ...";
      list += "\n    " + fields[i].name + ": " + fields[i].doc;
      const auto get = fields[i].get;
      class_.def_property_readonly(fields[i].name.c_str(), py::cpp_function(get, py::is_method(class_)),
                                   (fields[i].name + "(self) -> " + fields[i].out + "\n\n" + fields[i].doc).c_str());
    }

    class_.attr("__doc__") = doc_ + "\n\nFields:" + list;
    class_.def(
        "__init__",
        [](py::detail::value_and_holder& object, const py::args& args, const py::kwargs& keywords) {
          Place(object, FromArguments(args, keywords));
        },
        py::detail::is_new_style_constructor(), ("__init__(self" + signature + ") -> None").c_str());
    std::string changed;
    for (const auto& field : fields) changed += ", " + field.name + ": " + field.in + " = ...";
    class_.def(
        "replace",
        [](const T& value, const py::kwargs& changes) {
          T other = value;
          for (const auto& [name, given] : changes) Set(other, KeyOf(name), given);
          if constexpr (requires(T& made) { made.Changed(); }) other.Changed();
          return other;
        },
        ("replace(self, *" + changed + ") -> " + Table().name + "\n\nThe same with other values in some fields.")
            .c_str());
    class_.def("to_dict", &ToDict, "to_dict(self) -> dict[str, typing.Any]\n\nEvery field by its name.");
    class_.def("__repr__", &Repr, "__repr__(self) -> str");
    class_.def(
        "__eq__",
        [](const T& value, py::handle other) -> py::object {
          if (!py::isinstance<T>(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
          return py::bool_(Same(ToDict(value), ToDict(py::cast<const T&>(other))));
        },
        "__eq__(self, other: object) -> bool");
    class_.attr("__hash__") = py::none();
    class_.def("__getstate__", &ToDict);
    class_.def(
        "__setstate__",
        [](py::detail::value_and_holder& object, const py::dict& state) { Place(object, FromDict(state)); },
        py::detail::is_new_style_constructor());
    py::dict docs;
    for (const auto& field : fields) docs[py::str(field.name)] = py::str(field.doc);
    class_.attr("__fields__") = docs;
  }

  py::class_<T> class_;
  std::string doc_;
};

}  // namespace horus_python

#endif  // HORUS_PYTHON_RECORD_H_
