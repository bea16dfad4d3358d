// RequestHead -> ASGI scope values. Only what differs between requests; the constant part is copied from a template.
#pragma once

#include "http/exchange.h"
#include "http/host.h"
#include "py/border.h"

namespace tricorn {

// The constant part of every http scope of one application, all keys present, in the order of the specification.
py::dict make_scope_template(std::string_view root_path);
// A fresh scope for `exchange`; null with an exception set. `root_path` is prefixed to path and raw_path.
py::object make_scope(PyObject* scope_template, const Exchange& exchange, std::string_view root_path, PyObject* state);
// The `tls` extension (ASGI TLS specification 0.2).
py::dict make_tls_extension(const TlsFacts& facts);

}  // namespace tricorn
