// No C++ exception may leave a function that CPython calls: it would tear down the interpreter's own frames.
#pragma once

#include <new>

#include "py/border.h"

namespace tricorn {

// What `body` returns, or `failure` with the Python exception set that it threw or stands for. A thread's forced end
// (at the interpreter's exit) passes through.
template <class T, class Body>
T guarded(T failure, Body&& body) {
  try {
    return body();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failure;
}

}  // namespace tricorn
