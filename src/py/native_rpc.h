// Unary calls of a connectrpc application, answered here: Python is entered for the codec and the handler alone.
// What a call cannot be (a stream, GET, an encoding that is not ours, a request that is wrong before its body) goes to
// the application's own ASGI path, which decides it as connectrpc does.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "py/asgi.h"
#include "py/bridge.h"
#include "rpc/compress.h"
#include "rpc/protocol.h"

namespace tricorn {

PyTypeObject* make_rpc_call_type();

// How messages of one codec become Python objects and back.
struct RpcCodec {
  std::string name;
  py::object decode;  // (bytes) -> message
  py::object encode;  // (message) -> bytes
};

// One unary method. Made by tricorn.connect, which knows connectrpc.
struct RpcRoute {
  std::string path;
  py::object function;        // (message, context) -> awaitable of a message
  py::object context_type;    // connectrpc's RequestContext, lazily filled
  py::dict context_template;  // the instance dictionary that every context starts with
  py::object failed;          // (kind, codec, encoding, error, context) -> (status, headers, body, trailers)
  py::object settle;          // (exception, expired, left, entered) -> (error for the client, for the log or None)
  py::object error;           // (code, message) -> ConnectError
  std::vector<RpcCodec> codecs;
  std::vector<std::string> codec_names;
  std::vector<std::string> encodings;  // that connectrpc supports, in its order
  std::optional<std::uint64_t> read_max;
};

class RpcApp final : public App {
 public:
  RpcApp(Bridge& bridge, AsgiApp& otherwise) : bridge_(bridge), otherwise_(otherwise) {}
  void add(RpcRoute route);
  void dispatch(Exchange& exchange) override;

 private:
  friend class RpcCall;
  bool takes(const Exchange& exchange, const RpcRoute& route, rpc::Terms& terms) const;

  Bridge& bridge_;
  AsgiApp& otherwise_;
  std::unordered_map<std::string, RpcRoute> routes_;
  rpc::Compressor compressor_;
};

// One call: gathers the request, then is the coroutine that the call's Task drives.
class RpcCall final : public PyCall {
 public:
  RpcCall(RpcApp& app, const RpcRoute& route, const rpc::Terms& terms, Exchange& exchange);
  ~RpcCall();

  void wake(Events events) override;
  bool cancel() override;
  void end_input() override;
  void close() override;

  // --- for the coroutine object ---
  PySendResult step(PyObject* value, PyObject** result);
  PyObject* throw_in(PyObject* const* args, Py_ssize_t count);
  PyObject* headers() const;         // [(name, value), ...]; null with an exception set
  PyObject* client_address() const;  // "host:port", or None
  PyObject* scheme() const;
  void expire();  // the deadline has passed
  int traverse(visitproc visit, void* arg);
  void clear();

 private:
  void gather();
  bool gathered_too_much();
  bool make_self();
  void start();
  void peer_left();
  bool begin();
  std::string_view body();
  rpc::Outcome<std::optional<std::string_view>> next_message(std::string_view& in, std::string& room);
  py::object decode(std::string_view message) const;
  py::object request_message();
  bool make_context();
  void arm_deadline();

  void succeed(PyObject* message);
  bool answer(std::string_view message, PyObject* owner);
  bool add_context_fields(Headers& headers, const Name& which, std::string_view prefix) const;
  void respond(ResponseHead head, std::string_view body, Headers trailers, Ref<Block> owner = {});
  void raised();
  void fail(const rpc::RpcError& error);
  void fail(const py::object& error);
  void broken();
  void end();

  RpcApp* app_;
  const RpcRoute* route_;
  Ref<Exchange> exchange_;  // null once the call has ended
  rpc::Terms terms_;
  rpc::Encoding answer_encoding_;
  const RpcCodec* codec_;
  Buffer body_;
  PyObject* self_ = nullptr;  // the coroutine object, once there is one; it owns this
  PyObject* inner_ = nullptr;
  PyObject* task_ = nullptr;
  PyObject* context_ = nullptr;
  PyObject* timer_ = nullptr;
  std::chrono::steady_clock::time_point deadline_{};
  bool started_ = false;  // the request is complete, or its error is known
  bool entered_ = false;  // the request is decoded: what is raised now is the handler's
  bool expired_ = false;  // the deadline has cancelled the task
  bool left_ = false;     // the peer's leaving has
};

}  // namespace tricorn
