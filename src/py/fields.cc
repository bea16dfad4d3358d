#include "py/fields.h"

#include "base/text.h"

namespace tricorn {

bool add_field(Headers& headers, std::string_view name, std::string_view value) {
  if (!is_token(name)) {
    PyErr_SetString(PyExc_RuntimeError, "Invalid HTTP header name.");
    return false;
  }
  if (!is_field_value(value)) {
    PyErr_SetString(PyExc_RuntimeError, "Invalid HTTP header value.");
    return false;
  }
  headers.add(name, trim(value));
  return true;
}

bool add_field(Headers& headers, PyObject* name, PyObject* value) {
  const Octets name_octets{name};
  if (!name_octets) return false;
  const Octets value_octets{value};
  return value_octets && add_field(headers, name_octets.view(), value_octets.view());
}

bool add_fields(Headers& headers, PyObject* pairs) {
  const py::object list = steal(PySequence_Fast(pairs, "headers must be an iterable of pairs of bytes"));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.ptr()); ++i) {
    const py::object pair =
        steal(PySequence_Fast(PySequence_Fast_GET_ITEM(list.ptr(), i), "a header must be a pair of bytes"));
    if (!pair) return false;
    if (PySequence_Fast_GET_SIZE(pair.ptr()) != 2) {
      PyErr_SetString(PyExc_ValueError, "a header must be a pair of bytes");
      return false;
    }
    if (!add_field(headers, PySequence_Fast_GET_ITEM(pair.ptr(), 0), PySequence_Fast_GET_ITEM(pair.ptr(), 1)))
      return false;
  }
  return true;
}

}  // namespace tricorn
