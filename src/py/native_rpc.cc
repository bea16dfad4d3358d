#include "py/native_rpc.h"

#include <algorithm>
#include <ranges>

#include "http/host.h"
#include "py/fields.h"
#include "py/guard.h"
#include "py/slots.h"
#include "rpc/envelope.h"
#include "rpc/grpc.h"

namespace tricorn {
namespace {

struct RpcCallObject {
  PyObject ob_base;
  RpcCall* call;
};

RpcCall& as_call(PyObject* self) { return *reinterpret_cast<RpcCallObject*>(self)->call; }

py::object text_of(std::string_view text) {
  return steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// Nothing with an exception set.
std::optional<std::string_view> utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* octets = PyUnicode_AsUTF8AndSize(text, &size);
  if (!octets) return std::nullopt;
  return std::string_view{octets, static_cast<std::size_t>(size)};
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// connectrpc decodes fields as UTF-8 and fails on what is not; so do we, by leaving such requests to it.
bool all_ascii(const Headers& headers) {
  return std::ranges::all_of(std::views::iota(std::size_t{0}, headers.size()),
                             [&](std::size_t i) { return is_ascii(headers[i].value); });
}

std::string_view kind_name(rpc::Kind kind) {
  switch (kind) {
    case rpc::Kind::connect_unary: return "connect";
    case rpc::Kind::connect_stream: return "connect";
    case rpc::Kind::grpc: return "grpc";
    case rpc::Kind::grpc_web: return "grpc-web";
  }
  return {};
}

constexpr std::string_view k_server_error = "Internal Server Error";

ResponseHead server_error() {
  ResponseHead head = plain_head(500, k_server_error);
  head.headers.add("connection", "close");
  return head;
}

}  // namespace

// --- which calls are ours ---

void RpcApp::add(RpcRoute route) {
  for (const RpcCodec& codec : route.codecs) route.codec_names.push_back(codec.name);
  std::string path = route.path;
  routes_.insert_or_assign(std::move(path), std::move(route));
}

void RpcApp::dispatch(Exchange& exchange) {
  const Events events = exchange.take_events();
  if (Call* call = exchange.call()) return static_cast<PyCall*>(call)->wake(events);
  if (exchange.gone()) return exchange.leave();  // reset before the application was entered
  const bool ok = guarded(false, [&] {
    const auto found = routes_.find(std::string{exchange.request().path()});
    rpc::Terms terms{};
    if (found == routes_.end() || !takes(exchange, found->second, terms)) return otherwise_.begin(exchange), true;
    (new RpcCall{*this, found->second, terms, exchange})->wake(events);  // deletes itself when the call has ended
    return true;
  });
  if (ok) return;
  PyErr_WriteUnraisable(nullptr);
  exchange.abandon(Fault::state);
}

bool RpcApp::takes(const Exchange& exchange, const RpcRoute& route, rpc::Terms& terms) const {
  const RequestHead& head = exchange.request();
  if (head.method != "POST" || !all_ascii(head.headers)) return false;
  if (bridge_.hooks.forwarded && (head.headers.has("x-forwarded-for") || head.headers.has("x-forwarded-proto")))
    return false;
  const auto read = rpc::read_terms(head, {.shape = rpc::Shape::unary, .codecs = route.codec_names});
  if (!read) return false;
  terms = *read;
  if (terms.kind == rpc::Kind::grpc && head.version != Version::http2) return false;
  if (!rpc::encoding_named(terms.encoding) || !std::ranges::count(route.encodings, terms.encoding)) return false;
  return rpc::encoding_named(rpc::negotiate_encoding(terms.accept, route.encodings)).has_value();
}

// --- gathering the request ---

RpcCall::RpcCall(RpcApp& app, const RpcRoute& route, const rpc::Terms& terms, Exchange& exchange)
    : app_(&app),
      route_(&route),
      exchange_(&exchange),
      terms_(terms),
      answer_encoding_(*rpc::encoding_named(rpc::negotiate_encoding(terms.accept, route.encodings))),
      codec_(&*std::ranges::find(route.codecs, terms.codec, &RpcCodec::name)) {
  exchange.enter(*this);
  app.bridge_.running.push(*this);
  if (terms_.timeout) {
    const auto now = std::chrono::steady_clock::now();
    deadline_ = now + std::min<std::chrono::nanoseconds>(*terms_.timeout, deadline_.max() - now);
  }
  exchange.want_body();
}

RpcCall::~RpcCall() { clear(); }

void RpcCall::wake(Events events) {
  if (!started_) return gather();
  if (has(events, Event::gone) || has(events, Event::input_ended)) peer_left();
}

// As connectrpc: whichever of a deadline and the peer's leaving comes first ends the handler, once.
void RpcCall::peer_left() {
  if (expired_ || left_) return;
  left_ = true;
  cancel();
}

// Bounded by read_max_bytes and the five octets of an envelope, whatever the peer sends.
void RpcCall::gather() {
  if (exchange_->gone()) return close();
  if (exchange_->body_ended() || exchange_->input_ended() || gathered_too_much()) return start();
  body_.append(exchange_->body());
  exchange_->take(exchange_->body().size());
  if (terms_.timeout && make_self()) arm_deadline();
}

// The head of an envelope is judged before its message is here.
bool RpcCall::gathered_too_much() {
  if (!route_->read_max) return false;
  const std::size_t size = body_.size() + exchange_->body().size();
  if (terms_.kind == rpc::Kind::connect_unary) return size > *route_->read_max;
  std::string head{body_.view().substr(0, sizeof(rpc::EnvelopeHead))};
  head += exchange_->body().substr(0, sizeof(rpc::EnvelopeHead) - head.size());
  std::string_view in = head;
  return size > *route_->read_max + sizeof(rpc::EnvelopeHead) || !rpc::EnvelopeReader{route_->read_max}.next(in);
}

bool RpcCall::make_self() {
  if (self_) return true;
  PyTypeObject* type = border().rpc_call_type;
  self_ = type->tp_alloc(type, 0);
  if (self_) reinterpret_cast<RpcCallObject*>(self_)->call = this;  // it owns us now; the call holds it
  else PyErr_Clear();
  return self_ != nullptr;
}

void RpcCall::start() {
  started_ = true;
  if (!make_self()) return close();
  const py::object alive = borrow(self_);
  const py::object task = app_->bridge_.tasks.start(self_);
  if (!task && exchange_) return broken();
  if (!task) return PyErr_Clear();
  if (!exchange_) return;  // it has ended at once
  task_ = Py_NewRef(task.ptr());
  if (exchange_->gone() || exchange_->input_ended()) peer_left();  // it came with the request
}

// --- the coroutine ---

// All of the body that has arrived, in one piece.
std::string_view RpcCall::body() {
  if (body_.empty()) return exchange_->body();
  body_.append(exchange_->body());
  exchange_->take(exchange_->body().size());
  return body_.view();
}

// The request's message, taken off the front of `in`. Nothing: there is none (left).
rpc::Outcome<std::optional<std::string_view>> RpcCall::next_message(std::string_view& in, std::string& room) {
  const rpc::Encoding encoding = *rpc::encoding_named(terms_.encoding);
  if (terms_.kind == rpc::Kind::connect_unary) {
    const std::string_view whole = std::exchange(in, {});
    if (route_->read_max && whole.size() > *route_->read_max) return rpc::fail_too_large(*route_->read_max);
    if (!exchange_->body_ended())
      return rpc::fail(rpc::Code::canceled, "Client disconnected before request completion");
    return whole.empty() ? whole : app_->compressor_.decompress(encoding, whole, route_->read_max, room);
  }
  rpc::EnvelopeReader reader{route_->read_max};
  const auto next = reader.next(in);
  if (!next) return std::unexpected{next.error()};
  if (!*next) {
    if (exchange_->input_ended() && !exchange_->body_ended())
      return rpc::fail(rpc::Code::canceled, "Client disconnected before request completion");
    if (auto whole = reader.end(); !whole && exchange_->body_ended()) return std::unexpected{whole.error()};
    return std::nullopt;
  }
  if (!(*next)->compressed()) return (*next)->message;
  if (encoding == rpc::Encoding::identity) return rpc::fail_compressed_without_encoding();
  return app_->compressor_.decompress(encoding, (*next)->message, route_->read_max, room);
}

py::object RpcCall::decode(std::string_view message) const {
  const py::object data = bytes_of(message);
  return data ? steal(PyObject_CallOneArg(codec_->decode.ptr(), data.ptr())) : py::object{};
}

// The one message, decoded. Null: the call has ended with an error.
py::object RpcCall::request_message() {
  std::string room;
  std::string_view in = body();
  const auto first = next_message(in, room);
  if (!first) return fail(first.error()), py::object{};
  if (!*first) return fail({rpc::Code::unimplemented, "unary request has zero messages"}), py::object{};
  py::object message = decode(**first);
  if (!message) return raised(), py::object{};
  if (in.empty()) return message;
  // connectrpc looks at a second one before it says that there are two.
  const auto second = next_message(in, room);
  if (!second) return fail(second.error()), py::object{};
  if (*second && !decode(**second)) return raised(), py::object{};
  return fail({rpc::Code::unimplemented, "unary request has multiple messages"}), py::object{};
}

// Decodes the request and calls the handler. False: the call has ended with an error.
bool RpcCall::begin() {
  if (!make_context()) return broken(), false;
  const py::object message = request_message();
  if (!message) return false;
  entered_ = true;
  if (body_.empty()) exchange_->take(exchange_->body().size());
  body_.clear();
  PyObject* arguments[] = {message.ptr(), context_};
  const py::object awaitable = steal(PyObject_Vectorcall(route_->function.ptr(), arguments, 2, nullptr));
  if (awaitable) inner_ = awaitable_iterator(awaitable).release().ptr();
  if (!inner_) return raised(), false;
  return true;
}

PySendResult RpcCall::step(PyObject* value, PyObject** result) {
  *result = nullptr;
  if (may_step(static_cast<bool>(exchange_))) {
    PyObject* outcome = nullptr;
    stepping_ = true;
    const bool begun = inner_ || begin();
    const PySendResult kind = begun ? PyIter_Send(inner_, value, &outcome) : PYGEN_ERROR;
    if (kind == PYGEN_RETURN) succeed(steal(outcome).ptr());
    else if (kind == PYGEN_ERROR && begun) raised();
    stepping_ = false;
    if (kind == PYGEN_NEXT) {
      arm_deadline();
      *result = outcome;
      return PYGEN_NEXT;
    }
  } else if (PyErr_Occurred()) {
    return PYGEN_ERROR;
  }
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

PyObject* RpcCall::throw_in(PyObject* const* args, Py_ssize_t count) {
  if (!may_step(static_cast<bool>(exchange_))) {
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
    return nullptr;
  }
  stepping_ = true;
  if (inner_) {
    const py::object method = steal(PyObject_GetAttr(inner_, border().names.throw_.ptr()));
    PyObject* yielded = nullptr;
    if (method) yielded = PyObject_Vectorcall(method.ptr(), args, static_cast<std::size_t>(count), nullptr);
    else PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(args[0])), args[0]);  // as await does
    if (yielded) {
      stepping_ = false;
      return yielded;
    }
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) succeed(stop_value().ptr());
    else raised();
  } else {  // cancelled before its first step
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(args[0])), args[0]);
    raised();
  }
  stepping_ = false;
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

bool RpcCall::cancel() {
  if (!task_) return false;
  const py::object asked = steal(PyObject_CallMethodNoArgs(task_, border().names.cancel.ptr()));
  if (!asked) PyErr_WriteUnraisable(task_);
  return static_cast<bool>(asked);
}

void RpcCall::end_input() {
  if (exchange_) exchange_->end_input();
}

void RpcCall::close() {
  if (stepping_) {
    if (exchange_) exchange_->abandon(Fault::state);
    return unlink();
  }
  closed_ = true;
  // One that ignores GeneratorExit is left to the garbage collector.
  if (inner_ && !steal(PyObject_CallMethodNoArgs(inner_, border().names.close.ptr()))) PyErr_Clear();
  if (!exchange_) return;
  exchange_->abandon(Fault::state);
  end();
}

// --- deadline and context ---

// As asyncio.timeout: it can only strike a handler that waits.
void RpcCall::arm_deadline() {
  if (!terms_.timeout || timer_) return;
  const std::chrono::duration<double> left = deadline_ - std::chrono::steady_clock::now();
  const py::object expire = steal(PyObject_GetAttr(self_, border().names.expire.ptr()));
  const py::object timer = steal(PyObject_CallMethod(app_->bridge_.event_loop.ptr(), "call_later", "dO",
                                                     std::max(0.0, left.count()), expire.ptr()));
  if (timer) timer_ = Py_NewRef(timer.ptr());
  else PyErr_WriteUnraisable(self_);
}

void RpcCall::expire() {
  if (!exchange_ || expired_ || left_) return;
  expired_ = true;
  if (started_) cancel();
  else fail(rpc::RpcError{rpc::Code::deadline_exceeded, "Request timed out"});
}

bool RpcCall::make_context() {
  const py::object dict = steal(PyDict_Copy(route_->context_template.ptr()));
  auto* type = reinterpret_cast<PyTypeObject*>(route_->context_type.ptr());
  const py::object none = steal(PyTuple_New(0));
  if (!dict || !none || PyDict_SetItemString(dict.ptr(), "_source", self_) < 0) return false;
  if (terms_.timeout) {
    // time.monotonic() and steady_clock are the same clock.
    const std::chrono::duration<double> at = deadline_.time_since_epoch();
    if (PyDict_SetItemString(dict.ptr(), "_end_time", py::float_(at.count()).ptr()) < 0) return false;
  }
  context_ = type->tp_new(type, none.ptr(), nullptr);
  return context_ && PyObject_GenericSetDict(context_, dict.ptr(), nullptr) == 0;
}

PyObject* RpcCall::headers() const {
  py::object list = steal(PyList_New(0));
  if (!exchange_ || !list) return list.release().ptr();
  for (Field field : exchange_->request().headers) {
    const py::object pair = steal(PyTuple_Pack(2, text_of(field.name).ptr(), text_of(field.value).ptr()));
    if (!pair || PyList_Append(list.ptr(), pair.ptr()) < 0) return nullptr;
  }
  return list.release().ptr();
}

PyObject* RpcCall::client_address() const {
  if (!exchange_ || exchange_->gone() || exchange_->peer().client_host.empty()) Py_RETURN_NONE;
  const Peer& peer = exchange_->peer();
  const std::string port = peer.client_port < 0 ? "None" : std::to_string(peer.client_port);  // a Unix socket's
  return text_of(peer.client_host + ":" + port).release().ptr();
}

PyObject* RpcCall::scheme() const {
  return PyUnicode_FromString(exchange_ && !exchange_->gone() && exchange_->peer().secure ? "https" : "http");
}

// --- the answer ---

void RpcCall::succeed(PyObject* message) {
  const py::object data = steal(PyObject_CallOneArg(codec_->encode.ptr(), message));
  if (!data) return raised();
  const Octets octets{data.ptr()};
  if (!octets) return raised();
  if (!answer(octets.view(), data.ptr())) return broken();
  end();
}

bool RpcCall::answer(std::string_view message, PyObject* owner) {
  const Names& names = border().names;
  const std::string_view encoding = rpc::name(answer_encoding_);
  std::string room;
  const std::string_view coded = app_->compressor_.compress(answer_encoding_, message, room);
  ResponseHead head;
  head.headers.add("content-type", rpc::content_type(terms_.kind, codec_->name));
  head.headers.add(rpc::encoding_header(terms_.kind), encoding);
  if (terms_.kind == rpc::Kind::connect_unary) {
    head.headers.add("vary", "Accept-Encoding");
    if (!add_context_fields(head.headers, names.response_headers_, {}) ||
        !add_context_fields(head.headers, names.response_trailers_, "trailer-"))
      return false;
    const bool lent =
        answer_encoding_ == rpc::Encoding::identity && message.size() >= Outbox::k_borrow && PyBytes_CheckExact(owner);
    respond(std::move(head), coded, {},
            lent ? Ref<Block>{new BytesBlock{app_->bridge_.graveyard, owner}} : Ref<Block>{});
    return true;
  }
  Headers given;
  if (!add_context_fields(head.headers, names.response_headers_, {}) ||
      !add_context_fields(given, names.response_trailers_, {}))
    return false;
  const std::uint8_t flags = answer_encoding_ == rpc::Encoding::identity ? 0 : rpc::k_compressed;
  std::string body;
  body.reserve(coded.size() + 64);
  rpc::append_envelope(body, flags, coded);
  Headers trailers = rpc::ok_trailers(given);
  if (terms_.kind == rpc::Kind::grpc_web) {
    const auto block = rpc::trailer_block(std::exchange(trailers, {}));
    if (!block) return PyErr_SetString(PyExc_RuntimeError, block.error().what.c_str()), false;
    rpc::append_envelope(body, flags | rpc::k_trailers, app_->compressor_.compress(answer_encoding_, *block, room));
  }
  respond(std::move(head), body, std::move(trailers));
  return true;
}

// What the handler put into the context's response_headers or response_trailers, if it touched them at all.
bool RpcCall::add_context_fields(Headers& headers, const Name& which, std::string_view prefix) const {
  const py::object given = steal(PyObject_GetAttr(context_, which.ptr()));
  if (!given) return false;
  if (given.is_none()) return true;
  const py::object items = steal(PyObject_CallMethod(given.ptr(), "allitems", nullptr));
  const py::object list = items ? steal(PySequence_Fast(items.ptr(), "not items")) : py::object{};
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.ptr()); ++i) {
    const py::object pair = steal(PySequence_Fast(PySequence_Fast_GET_ITEM(list.ptr(), i), "not a pair"));
    if (!pair || PySequence_Fast_GET_SIZE(pair.ptr()) != 2) return false;
    const std::optional name = utf8(PySequence_Fast_GET_ITEM(pair.ptr(), 0));
    const std::optional value = name ? utf8(PySequence_Fast_GET_ITEM(pair.ptr(), 1)) : std::nullopt;
    if (!value || !add_field(headers, std::string{prefix}.append(*name), *value)) return false;
  }
  return true;
}

// What cannot be sent, such as a body that is not as long as the handler's content-length says, is a fault of the
// application. That the wire is gone nobody needs to know.
void RpcCall::respond(ResponseHead head, std::string_view body, Headers trailers, Ref<Block> owner) {
  if (exchange_->gone()) return;
  if (app_->bridge_.hooks.access) {
    const py::object scope = app_->otherwise_.scope(*exchange_);
    if (scope) app_->bridge_.access(scope.ptr(), head.status);
    else PyErr_Clear();
  }
  auto sent = exchange_->respond(std::move(head));
  if (sent && !body.empty()) sent = exchange_->write(body, std::move(owner));
  if (sent) sent = exchange_->finish(std::move(trailers));
  if (!sent) {
    app_->bridge_.log(Level::error, "Cannot send the response: " + sent.error().what);
    if (exchange_->send_state() == Send::idle) return respond(server_error(), k_server_error, {});
    exchange_->abandon(Fault::state);
  }
  app_->bridge_.touched();
}

// --- errors ---

// An exception is set: the codec's, the handler's, or a cancellation.
void RpcCall::raised() {
  const py::object exception = take_exception();
  PyObject* arguments[] = {exception.ptr(), expired_ ? Py_True : Py_False, left_ ? Py_True : Py_False,
                           entered_ ? Py_True : Py_False};
  const py::object settled = steal(PyObject_Vectorcall(route_->settle.ptr(), arguments, 4, nullptr));
  if (!settled) return broken();
  const py::object error = settled[py::int_(0)];
  const py::object logged = settled[py::int_(1)];
  if (!logged.is_none()) app_->bridge_.log(Level::error, "Exception in ASGI application\n", logged);
  fail(error);
}

void RpcCall::fail(const rpc::RpcError& error) {
  const py::object code = text_of(rpc::name(error.code));
  const py::object message = text_of(error.message);
  PyObject* arguments[] = {code.ptr(), message.ptr()};
  const py::object made = steal(PyObject_Vectorcall(route_->error.ptr(), arguments, 2, nullptr));
  if (!made) return broken();
  fail(made);
}

void RpcCall::fail(const py::object& error) {
  if (exchange_->gone()) return end();
  const py::object kind = text_of(kind_name(terms_.kind));
  const py::object codec = text_of(codec_->name);
  const py::object encoding = text_of(rpc::name(answer_encoding_));
  PyObject* context = context_ ? context_ : Py_None;
  PyObject* arguments[] = {kind.ptr(), codec.ptr(), encoding.ptr(), error.ptr(), context};
  const py::object answer = steal(PyObject_Vectorcall(route_->failed.ptr(), arguments, 5, nullptr));
  int status = 0;
  PyObject *fields = nullptr, *body = nullptr, *trailers = nullptr;
  if (!answer || !PyArg_ParseTuple(answer.ptr(), "iOSO", &status, &fields, &body, &trailers)) return broken();
  ResponseHead head{.status = status, .headers = {}};
  Headers after;
  if (!add_fields(head.headers, fields) || !add_fields(after, trailers)) return broken();
  respond(std::move(head), view_of(body), std::move(after));
  end();
}

// The answer itself could not be made: what a plain ASGI server does when the application raises.
void RpcCall::broken() {
  const py::object exception = take_exception();
  app_->bridge_.log(Level::error, "Exception in ASGI application\n", exception ? exception : py::object(py::none()));
  respond(server_error(), k_server_error, {});
  end();
}

void RpcCall::end() {
  if (timer_ && !steal(PyObject_CallMethodNoArgs(timer_, border().names.cancel.ptr()))) PyErr_Clear();
  if (context_ && Py_REFCNT(context_) > 1) {  // somebody keeps it: it must not need us any more
    const py::object kept = steal(PyObject_CallMethod(context_, "keep", nullptr));
    if (!kept) PyErr_WriteUnraisable(context_);
  }
  exchange_->leave();
  exchange_.reset();
  unlink();
  PyObject* self = self_;
  clear();
  if (self) Py_DECREF(self);  // the reference that the running call held; may delete this
  else delete this;
}

int RpcCall::traverse(visitproc visit, void* arg) {
  Py_VISIT(inner_);
  Py_VISIT(task_);
  Py_VISIT(context_);
  Py_VISIT(timer_);
  return 0;
}

void RpcCall::clear() {
  Py_CLEAR(inner_);
  Py_CLEAR(task_);
  Py_CLEAR(context_);
  Py_CLEAR(timer_);
}

// --- the coroutine's type ---

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return as_call(self).traverse(visit, arg);
}

int clear_slot(PyObject* self) {
  as_call(self).clear();
  return 0;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete &as_call(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PySendResult send_slot(PyObject* self, PyObject* value, PyObject** result) {
  const py::object alive = borrow(self);
  return guarded(PYGEN_ERROR, [&] { return as_call(self).step(value, result); });
}

PyObject* coroutine_throw(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const py::object alive = borrow(self);
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "throw() takes an exception");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] { return as_call(self).throw_in(args, count); });
}

PyObject* coroutine_close(PyObject* self, PyObject*) {
  const py::object alive = borrow(self);
  if (as_call(self).stepping()) {
    PyErr_SetString(PyExc_ValueError, "coroutine already executing");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] {
    as_call(self).close();
    return Py_NewRef(Py_None);
  });
}

PyObject* expire(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    as_call(self).expire();
    return Py_NewRef(Py_None);
  });
}

PyObject* headers(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] { return as_call(self).headers(); });
}
PyObject* client_address(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] { return as_call(self).client_address(); });
}
PyObject* scheme(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] { return as_call(self).scheme(); });
}
PyObject* name(PyObject*, void*) { return PyUnicode_FromString("rpc"); }

PyMethodDef methods[] = {
    {"send", send_method<send_slot>, METH_O, nullptr}, {"throw", as_method(coroutine_throw), METH_FASTCALL, nullptr},
    {"close", coroutine_close, METH_NOARGS, nullptr},  {"expire", expire, METH_NOARGS, nullptr},
    {"headers", headers, METH_NOARGS, nullptr},        {"client_address", client_address, METH_NOARGS, nullptr},
    {"scheme", scheme, METH_NOARGS, nullptr},          {},
};

PyGetSetDef getters[] = {
    {"__name__", name, nullptr, nullptr, nullptr},
    {"__qualname__", name, nullptr, nullptr, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_slot)},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(iternext_slot<send_slot>)},
    {Py_am_await, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_am_send, reinterpret_cast<void*>(send_slot)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {},
};

PyType_Spec spec{
    .name = "tricorn._core.RpcCall",
    .basicsize = sizeof(RpcCallObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

}  // namespace

PyTypeObject* make_rpc_call_type() { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); }

}  // namespace tricorn
