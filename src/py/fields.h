// Header fields as Python gives them -> Headers, checked: nothing that could end a line or a head gets through.
#pragma once

#include "http/head.h"
#include "py/border.h"

namespace tricorn {

// Octets of a bytes-like object, alive as long as this is. False with an exception set when it is none.
class Octets {
 public:
  explicit Octets(PyObject* object) : ok_(PyObject_GetBuffer(object, &buffer_, PyBUF_SIMPLE) == 0) {}
  ~Octets() {
    if (ok_) PyBuffer_Release(&buffer_);
  }
  Octets(const Octets&) = delete;
  Octets& operator=(const Octets&) = delete;
  explicit operator bool() const { return ok_; }
  std::string_view view() const {
    return {static_cast<const char*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
  bool ok_;
};

// Each adds to `headers`, or returns false with an exception set: RuntimeError for what is not a field (with uvicorn's
// texts), TypeError or ValueError for what is not a pair.
bool add_field(Headers& headers, std::string_view name, std::string_view value);
bool add_field(Headers& headers, PyObject* name, PyObject* value);  // bytes-like
bool add_fields(Headers& headers, PyObject* pairs);                 // an iterable of pairs of bytes

}  // namespace tricorn
