#include "py/scope.h"

#include <unordered_map>

#include "base/text.h"

namespace tricorn {
namespace {

py::object text_of(std::string_view text) {
  return steal(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

// UTF-8 with errors replaced, as urllib.parse.unquote does.
py::object decoded(std::string_view text) {
  return steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// `bytes` objects of the field names that browsers, proxies and RPC clients send: shared, not made per request.
class FieldNames {
 public:
  FieldNames() {
    // clang-format off
    for (std::string_view name :
         {"host", "user-agent", "accept", "accept-encoding", "accept-language", "connection", "content-type",
          "content-length", "content-encoding", "transfer-encoding", "cookie", "authorization", "cache-control", "pragma",
          "origin", "referer", "te", "expect", "upgrade", "upgrade-insecure-requests", "range", "if-none-match",
          "if-modified-since", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "x-request-id",
          "forwarded", "via", "traceparent", "tracestate", "priority", "dnt", "sec-fetch-site", "sec-fetch-mode",
          "sec-fetch-dest", "sec-fetch-user", "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform",
          "connect-protocol-version", "connect-timeout-ms", "connect-accept-encoding", "connect-content-encoding",
          "grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "x-user-agent", "x-grpc-web"})
      names_.emplace(name, bytes_of(name));
    // clang-format on
  }
  py::object find(std::string_view name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? bytes_of(name) : found->second;
  }

 private:
  std::unordered_map<std::string_view, py::object> names_;
};

const FieldNames& field_names() {
  static const FieldNames* const names = new FieldNames;  // like the types, as long as the interpreter
  return *names;
}

py::object header_list(const Headers& headers) {
  const FieldNames& names = field_names();
  py::object list = steal(PyList_New(static_cast<Py_ssize_t>(headers.size())));
  if (!list) return {};
  Py_ssize_t i = 0;
  for (Field field : headers) {
    PyObject* pair = PyTuple_New(2);
    if (!pair) return {};
    PyList_SET_ITEM(list.ptr(), i++, pair);
    PyTuple_SET_ITEM(pair, 0, names.find(field.name).release().ptr());
    PyTuple_SET_ITEM(pair, 1, bytes_of(field.value).release().ptr());
  }
  return list;
}

py::object address(std::string_view host, int port) {
  if (host.empty()) return py::none();
  // A Unix socket's path need not be UTF-8.
  const py::object name = steal(PyUnicode_DecodeFSDefaultAndSize(host.data(), static_cast<Py_ssize_t>(host.size())));
  const py::object number = port < 0 ? py::object(py::none()) : steal(PyLong_FromLong(port));
  return name && number ? steal(PyTuple_Pack(2, name.ptr(), number.ptr())) : py::object{};
}

bool set(PyObject* dict, const Name& name, const py::object& value) {
  return value && PyDict_SetItem(dict, name.ptr(), value.ptr()) == 0;
}

bool set_target(PyObject* dict, const RequestHead& head, std::string_view root_path) {
  const Names& names = border().names;
  const std::string_view raw = head.path();
  const bool encoded = raw.contains('%');
  if (root_path.empty()) {
    const py::object path = encoded ? decoded(percent_decode(raw)) : decoded(raw);
    if (!set(dict, names.path, path) || !set(dict, names.raw_path, bytes_of(raw))) return false;
  } else {
    const std::string prefix{root_path};
    const std::string path = prefix + (encoded ? percent_decode(raw) : std::string{raw});
    if (!set(dict, names.path, decoded(path)) || !set(dict, names.raw_path, bytes_of(prefix + std::string{raw})))
      return false;
  }
  return set(dict, names.query_string, bytes_of(head.query()));
}

py::object method_of(const RequestHead& head) {
  static PyObject* const get = PyUnicode_InternFromString("GET");
  static PyObject* const post = PyUnicode_InternFromString("POST");
  if (head.method == "GET") return borrow(get);
  if (head.method == "POST") return borrow(post);
  return text_of(head.method);
}

}  // namespace

py::dict make_scope_template(std::string_view root_path) {
  const Names& names = border().names;
  py::dict scope;
  const auto put = [&](const Name& name, const py::object& value) {
    PyDict_SetItem(scope.ptr(), name.ptr(), value.ptr());
  };
  put(names.type, borrow(names.http.ptr()));
  for (const Name* name :
       {&names.asgi, &names.http_version, &names.server, &names.client, &names.scheme, &names.root_path, &names.headers,
        &names.state, &names.method, &names.path, &names.raw_path, &names.query_string, &names.extensions})
    put(*name, py::none());
  put(names.root_path, text_of(root_path));
  return scope;
}

py::object make_scope(PyObject* scope_template, const Exchange& exchange, std::string_view root_path, PyObject* state) {
  const Names& names = border().names;
  const RequestHead& head = exchange.request();
  const Peer& peer = exchange.peer();
  py::object scope = steal(PyDict_Copy(scope_template));
  if (!scope) return {};
  PyObject* dict = scope.ptr();
  static PyObject* const versions[] = {PyUnicode_InternFromString("1.0"), PyUnicode_InternFromString("1.1"),
                                       PyUnicode_InternFromString("2")};
  static PyObject* const asgi_version = PyUnicode_InternFromString("3.0");
  static PyObject* const spec_version = PyUnicode_InternFromString("2.5");
  const py::object asgi = steal(PyDict_New());
  const bool ok =
      asgi && PyDict_SetItem(asgi.ptr(), names.version.ptr(), asgi_version) == 0 &&
      PyDict_SetItem(asgi.ptr(), names.spec_version.ptr(), spec_version) == 0 && set(dict, names.asgi, asgi) &&
      PyDict_SetItem(dict, names.http_version.ptr(), versions[static_cast<std::size_t>(head.version)]) == 0 &&
      set(dict, names.server, address(peer.server_host, peer.server_port)) &&
      set(dict, names.client, address(peer.client_host, peer.client_port)) &&
      PyDict_SetItem(dict, names.scheme.ptr(), (peer.secure ? names.https : names.http).ptr()) == 0 &&
      set(dict, names.headers, header_list(head.headers)) && set(dict, names.state, steal(PyDict_Copy(state))) &&
      set(dict, names.method, method_of(head)) && set_target(dict, head, root_path);
  return ok ? scope : py::object{};
}

py::dict make_tls_extension(const TlsFacts& facts) {
  py::list chain;
  for (const std::string& certificate : facts.client_chain) chain.append(py::str(certificate));
  const auto optional = [](std::string_view text) { return text.empty() ? py::object(py::none()) : decoded(text); };
  py::dict tls;
  tls["server_cert"] = optional(facts.server_cert);
  tls["client_cert_chain"] = chain;
  tls["client_cert_name"] = optional(facts.client_name);
  tls["client_cert_error"] = optional(facts.client_error);
  tls["tls_version"] = facts.version;
  tls["cipher_suite"] = facts.cipher_suite;
  return tls;
}

}  // namespace tricorn
