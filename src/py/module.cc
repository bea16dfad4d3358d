// tricorn._core: the start-up surface. Per-request work is in asgi.cc and native_rpc.cc; nothing here runs once per
// request.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "net/loop.h"
#include "net/server.h"
#include "net/tls.h"
#include "py/asgi.h"
#include "py/border.h"
#include "py/native_rpc.h"
#include "py/options.h"

namespace tricorn {
namespace {

[[noreturn]] void raise(const Error& error) {
  PyErr_SetString(error.fault == Fault::os ? PyExc_OSError : PyExc_ValueError, error.what.c_str());
  throw py::error_already_set();
}

template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Not py::gil_scoped_release: at the interpreter's exit a daemon thread ends inside PyEval_RestoreThread, and may not
// do so in a destructor.
template <class Body>
bool without_gil(Body&& body) {
  PyThreadState* state = PyEval_SaveThread();
  const bool result = body();
  PyEval_RestoreThread(state);
  return result;
}

// net/'s Loop with the GIL's rules: released around flush and uv_run, held for dispatch.
class PyLoop {
 public:
  PyLoop() : loop_(unwrap(Loop::make())) {}
  ~PyLoop() { close(); }

  Loop& loop() { return *loop_; }
  Graveyard& graveyard() { return graveyard_; }
  // Of the event loop that this loop serves: there is one.
  const TaskStarter& tasks(const py::object& event_loop) {
    if (!tasks_) tasks_ = std::make_unique<TaskStarter>(event_loop);
    return *tasks_;
  }

  int backend_fd() const { return loop_->backend_fd(); }
  void watch(int fd) { unwrap(loop_->watch(fd)); }
  bool ready() const { return loop_->ready() || !graveyard_.empty(); }
  bool poll(std::optional<double> timeout) {
    if (!graveyard_.empty()) timeout = 0.0;
    return without_gil([&] { return loop_->poll(timeout); });
  }
  void dispatch() {
    graveyard_.clear();
    loop_->dispatch();
  }
  std::optional<double> turn() {
    poll(0.0);
    dispatch();
    without_gil([&] { return loop_->flush(), true; });
    return ready() ? std::optional{0.0} : loop_->next_timeout();
  }
  py::object on_dirty() const { return on_dirty_; }
  void set_on_dirty(py::object callback) {
    on_dirty_ = std::move(callback);
    if (on_dirty_.is_none()) loop_->on_dirty({});
    else loop_->on_dirty([this] { call(on_dirty_); });
  }
  void close() {
    loop_->close();
    on_dirty_ = py::none();
    tasks_.reset();
    graveyard_.clear();
  }
  static void call(const py::object& hook) {
    if (!steal(PyObject_CallNoArgs(hook.ptr()))) PyErr_WriteUnraisable(hook.ptr());
  }

 private:
  std::unique_ptr<Loop> loop_;
  Graveyard graveyard_;
  std::unique_ptr<TaskStarter> tasks_;
  py::object on_dirty_ = py::none();
};

class PyServer {
 public:
  PyServer(py::object loop, py::object event_loop, py::object app, const Options& options, const Hooks& hooks,
           py::dict state)
      : loop_object_(loop),
        loop_(loop.cast<PyLoop&>()),
        bridge_(event_loop, hooks, loop_.graveyard(), loop_.tasks(event_loop), [this] { loop_.loop().touched(); }),
        app_(bridge_, std::move(app), std::move(state), options.root_path),
        rpc_(bridge_, app_),
        server_(loop_.loop(), app_, options.limits) {
    Host& host = server_.host();
    host.server_header = options.server_header;
    host.date_header = options.date_header;
    host.headers = options.headers;
    server_.on_notice([this](const Notice& notice) { bridge_.log(static_cast<Level>(notice.level), notice.text); });
    if (!hooks.drained.is_none()) server_.on_drained([drained = hooks.drained] { PyLoop::call(drained); });
  }
  ~PyServer() { close(); }

  void listen(int fd, const std::vector<std::string>& protocols, const py::object& tls) {
    const auto has = [&](std::string_view name) { return std::ranges::find(protocols, name) != protocols.end(); };
    const Protocols chosen{.http1 = has("h1"), .http2 = has("h2")};
    if (!chosen.http1 && !chosen.http2) throw py::value_error("protocols must name h1, h2 or both");
    const TlsContext* context = tls.is_none() ? nullptr : &tls.cast<TlsContext&>();
    unwrap(server_.listen(fd, chosen, context));
    if (context) contexts_.append(tls);
    loop_.loop().touched();
  }
  // Before listen(): these methods are answered by the core, the rest by the application.
  void add_routes(const std::vector<RpcRoute>& routes) {
    for (const RpcRoute& route : routes) {
      rpc_.add(route);
      server_.router().add(route.path, rpc_);
    }
  }
  void stop_listening() { server_.stop_listening(); }
  void drain() {
    server_.drain();
    loop_.loop().touched();
  }
  void disconnect() {
    bridge_.disconnect();
    loop_.loop().touched();
  }
  std::size_t cancel() { return bridge_.cancel(); }
  void close() {
    server_.on_drained({});
    server_.close();
    bridge_.abandon();
    if (server_.requests() > 0) return;  // closed from inside a handler
    app_.release();
    bridge_.release();
  }
  std::uint64_t connections() const { return server_.connections(); }
  std::uint64_t requests() const { return server_.requests(); }
  std::uint64_t total_requests() const { return server_.host().total_requests; }

 private:
  py::object loop_object_;  // outlives the server on it
  PyLoop& loop_;
  py::list contexts_;  // TLS contexts in use
  Bridge bridge_;
  AsgiApp app_;
  RpcApp rpc_;
  Server server_;
};

std::unique_ptr<TlsContext> make_tls(std::string certfile, std::optional<std::string> keyfile,
                                     std::optional<std::string> password, std::optional<std::string> ca_certs,
                                     int verify_mode, std::string min_version, std::optional<std::string> ciphers,
                                     std::vector<std::string> alpn) {
  return unwrap(TlsContext::make({.certfile = std::move(certfile),
                                  .keyfile = keyfile.value_or(""),
                                  .keyfile_password = password.value_or(""),
                                  .ca_certs = ca_certs.value_or(""),
                                  .verify_mode = verify_mode,
                                  .min_version = std::move(min_version),
                                  .ciphers = ciphers.value_or(""),
                                  .alpn = std::move(alpn)}));
}

std::vector<std::string> versions() { return {http1_library(), http2_library(), tls_library(), loop_library()}; }

void define_loop(py::module_& module) {
  py::class_<PyLoop>(module, "Loop")
      .def(py::init<>())
      .def_property_readonly("backend_fd", &PyLoop::backend_fd)
      .def("watch", &PyLoop::watch, py::arg("fd"))
      .def("poll", &PyLoop::poll, py::arg("timeout"))
      .def_property_readonly("ready", &PyLoop::ready)
      .def("dispatch", &PyLoop::dispatch)
      .def("turn", &PyLoop::turn)
      .def_property("on_dirty", &PyLoop::on_dirty, &PyLoop::set_on_dirty)
      .def("close", &PyLoop::close);
}

void define_settings(py::module_& module) {
  py::class_<Options>(module, "Options").def(py::init(&make_options));
  py::class_<Hooks>(module, "Hooks")
      .def(py::init([](py::object access, py::object log, py::object forwarded, py::object drained) {
             return Hooks{std::move(access), std::move(log), std::move(forwarded), std::move(drained)};
           }),
           py::kw_only(), py::arg("access") = py::none(), py::arg("log"), py::arg("forwarded") = py::none(),
           py::arg("drained") = py::none());
  py::class_<TlsContext>(module, "TlsContext")
      .def(py::init(&make_tls), py::kw_only(), py::arg("certfile"), py::arg("keyfile") = py::none(),
           py::arg("keyfile_password") = py::none(), py::arg("ca_certs") = py::none(), py::arg("verify_mode") = 0,
           py::arg("min_version") = "TLSv1.2", py::arg("ciphers") = py::none(),
           py::arg("alpn") = std::vector<std::string>{"h2", "http/1.1"});
}

RpcRoute make_route(std::string path, py::object function, py::object context_type, py::dict context_template,
                    py::object failed, py::object settle, py::object error,
                    std::vector<std::tuple<std::string, py::object, py::object>> codecs,
                    std::vector<std::string> encodings, std::optional<std::uint64_t> read_max) {
  RpcRoute route{.path = std::move(path),
                 .function = std::move(function),
                 .context_type = std::move(context_type),
                 .context_template = std::move(context_template),
                 .failed = std::move(failed),
                 .settle = std::move(settle),
                 .error = std::move(error),
                 .codecs = {},
                 .codec_names = {},
                 .encodings = std::move(encodings),
                 .read_max = read_max};
  for (auto& [name, decode, encode] : codecs) route.codecs.push_back({name, decode, encode});
  return route;
}

void define_server(py::module_& module) {
  py::class_<RpcRoute>(module, "RpcRoute")
      .def(py::init(&make_route), py::kw_only(), py::arg("path"), py::arg("function"), py::arg("context_type"),
           py::arg("context_template"), py::arg("failed"), py::arg("settle"), py::arg("error"), py::arg("codecs"),
           py::arg("encodings"), py::arg("read_max"))
      .def_readonly("path", &RpcRoute::path);
  py::class_<PyServer>(module, "Server")
      .def(py::init<py::object, py::object, py::object, const Options&, const Hooks&, py::dict>(), py::arg("loop"),
           py::arg("event_loop"), py::arg("app"), py::kw_only(), py::arg("options"), py::arg("hooks"), py::arg("state"))
      .def("listen", &PyServer::listen, py::arg("fd"), py::kw_only(),
           py::arg("protocols") = std::vector<std::string>{"h1", "h2"}, py::arg("tls") = py::none())
      .def("add_routes", &PyServer::add_routes, py::arg("routes"))
      .def("stop_listening", &PyServer::stop_listening)
      .def("drain", &PyServer::drain)
      .def("disconnect", &PyServer::disconnect)
      .def("cancel", &PyServer::cancel)
      .def("close", &PyServer::close)
      .def_property_readonly("connections", &PyServer::connections)
      .def_property_readonly("requests", &PyServer::requests)
      .def_property_readonly("total_requests", &PyServer::total_requests);
}

}  // namespace
}  // namespace tricorn

PYBIND11_MODULE(_core, module) {
  new tricorn::Border{module};  // as long as the interpreter
  tricorn::define_loop(module);
  tricorn::define_settings(module);
  tricorn::define_server(module);
  module.def("versions", &tricorn::versions);
}
