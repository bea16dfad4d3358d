// What the types of src/py that are made of CPython slots have in common.
#pragma once

#include "py/border.h"

namespace tricorn {

template <class Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

inline PyTypeObject* make_type(PyType_Spec& spec) { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); }

// tp_dealloc of a type with tp_clear whose struct needs no destructor.
inline void dealloc_slot(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  type->tp_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// A coroutine's send() and __next__ on top of its am_send: a returned value travels in StopIteration.
template <sendfunc step>
PyObject* send_method(PyObject* self, PyObject* value) {
  PyObject* result = nullptr;
  const PySendResult outcome = step(self, value, &result);
  if (outcome == PYGEN_NEXT) return result;
  if (outcome == PYGEN_RETURN) {
    const py::object owned = steal(result);
    // A tuple as the value would be unpacked into arguments; ours are dictionaries or None.
    PyErr_SetObject(PyExc_StopIteration, owned.ptr());
  }
  return nullptr;
}

template <sendfunc step>
PyObject* iternext_slot(PyObject* self) {
  return send_method<step>(self, Py_None);
}

// Raises what throw() was given: an exception, or a type and perhaps its value. There is at least one argument.
inline void raise_thrown(PyObject* const* args, Py_ssize_t count) {
  if (PyExceptionInstance_Check(args[0])) PyErr_SetObject(PyExceptionInstance_Class(args[0]), args[0]);
  else PyErr_SetObject(args[0], count > 1 ? args[1] : nullptr);
}

// The value that a StopIteration carries; it is the exception that is set.
inline py::object stop_value() {
  const py::object stop = take_exception();
  py::object value = steal(PyObject_GetAttrString(stop.ptr(), "value"));
  if (!value) PyErr_Clear();
  return value ? value : py::object(py::none());
}

}  // namespace tricorn
