#include "py/asgi.h"

#include "http/host.h"
#include "py/awaitable.h"
#include "py/guard.h"
#include "py/scope.h"
#include "py/slots.h"
#include "py/waiter.h"

namespace tricorn {
namespace {

CycleObject& as_cycle(PyObject* self) { return *reinterpret_cast<CycleObject*>(self); }

// --- receive and send, as the application gets them: functions bound to the cycle ---

PyObject* call_receive(PyObject* self, PyObject*) { return new_awaitable(&as_cycle(self), nullptr); }
PyObject* call_send(PyObject* self, PyObject* message) { return new_awaitable(&as_cycle(self), message); }

PyMethodDef receive_function{"receive", call_receive, METH_NOARGS, "ASGI receive()."};
PyMethodDef send_function{"send", call_send, METH_O, "ASGI send(message)."};

}  // namespace

// --- waking ---

bool Cycle::on_its_thread() const { return !app_ || app_->bridge_.on_its_thread(); }

PyObject* Cycle::wait(Side side) {
  PyObject* waiter = new_waiter(app_->bridge_.event_loop.ptr());
  if (waiter) (side == Side::receive ? receivers_ : senders_).push_back(Py_NewRef(waiter));
  return waiter;
}

void Cycle::forget(PyObject* waiter) {
  for (auto* side : {&receivers_, &senders_})
    if (std::erase(*side, waiter) > 0) Py_DECREF(waiter);
}

void Cycle::wake(Events events) {
  const py::object alive = borrow(self_);
  const auto resolve = [](std::vector<PyObject*>& side) {
    for (PyObject* waiter : std::exchange(side, {})) {
      resolve_now(waiter);
      Py_DECREF(waiter);
    }
  };
  if (has(events, Event::body) || has(events, Event::input_ended) || has(events, Event::gone)) resolve(receivers_);
  if (has(events, Event::writable) || has(events, Event::gone)) resolve(senders_);
}

bool Cycle::cancel() {
  if (!task_) return false;
  const py::object done = steal(PyObject_CallMethodNoArgs(task_, border().names.cancel.ptr()));
  if (!done) PyErr_WriteUnraisable(task_);
  return static_cast<bool>(done);
}

void Cycle::end_input() {
  if (exchange_) exchange_->end_input();
}

// --- receive ---

// The peer left before the response was complete. (After it, the wire lets go of the exchange without a loss.)
bool Cycle::disconnected() const { return exchange_->gone() && exchange_->send_state() != Send::done; }

Outcome Cycle::receive(PyObject** message) {
  const Names& names = border().names;
  const bool ended = !exchange_ || disconnected() || exchange_->send_state() == Send::done ||
                     (exchange_->input_ended() && (body_given_ || !exchange_->body_ended()));
  if (!ended && (body_given_ || (exchange_->body().empty() && !exchange_->body_ended()))) {
    if (!body_given_) exchange_->want_body();
    return Outcome::wait;
  }
  const py::object result = steal(PyDict_New());
  if (!result) return Outcome::error;
  PyObject* dict = result.ptr();
  if (ended) {
    if (PyDict_SetItem(dict, names.type.ptr(), names.http_disconnect.ptr()) < 0) return Outcome::error;
  } else {
    const py::object body = bytes_of(exchange_->body());
    exchange_->take(exchange_->body().size());
    body_given_ = exchange_->body_ended();
    if (!body || PyDict_SetItem(dict, names.type.ptr(), names.http_request.ptr()) < 0 ||
        PyDict_SetItem(dict, names.body.ptr(), body.ptr()) < 0 ||
        PyDict_SetItem(dict, names.more_body.ptr(), body_given_ ? Py_False : Py_True) < 0)
      return Outcome::error;
  }
  *message = Py_NewRef(dict);
  return Outcome::done;
}

// --- the coroutine ---

bool Cycle::start(PyObject* self) {
  const py::object receive = steal(PyCFunction_New(&receive_function, self));
  const py::object send = steal(PyCFunction_New(&send_function, self));
  if (!receive || !send) return false;
  PyObject* arguments[] = {scope_, receive.ptr(), send.ptr()};
  const py::object awaitable = steal(PyObject_Vectorcall(app_->app_.ptr(), arguments, 3, nullptr));
  if (!app_->bridge_.hooks.access) Py_CLEAR(scope_);
  if (!awaitable) return false;
  inner_ = awaitable_iterator(awaitable).release().ptr();
  return inner_ != nullptr;
}

PySendResult Cycle::step(PyObject* self, PyObject* value, PyObject** result) {
  *result = nullptr;
  if (may_step(running())) {
    const Busy busy{*this};
    PyObject* outcome = nullptr;
    stepping_ = true;
    const bool started = inner_ || start(self);
    const PySendResult kind = started ? PyIter_Send(inner_, value, &outcome) : PYGEN_ERROR;
    stepping_ = false;
    if (kind == PYGEN_NEXT) {
      *result = outcome;
      return PYGEN_NEXT;
    }
    if (kind == PYGEN_RETURN) returned(steal(outcome).ptr());
    else raised();
  } else if (PyErr_Occurred()) {
    return PYGEN_ERROR;
  }
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

PyObject* Cycle::throw_in(PyObject* const* args, Py_ssize_t count) {
  if (!may_step(running())) {
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
    return nullptr;
  }
  const Busy busy{*this};
  if (inner_) {
    stepping_ = true;
    const py::object method = steal(PyObject_GetAttr(inner_, border().names.throw_.ptr()));
    PyObject* yielded =
        method ? PyObject_Vectorcall(method.ptr(), args, static_cast<std::size_t>(count), nullptr) : nullptr;
    stepping_ = false;
    if (yielded) return yielded;
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) returned(stop_value().ptr());
    else raised();
  } else {  // cancelled before its first step
    raise_thrown(args, count);
    raised();
  }
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

void Cycle::close() {
  if (busy_ > 0) {  // it ends when it comes back
    if (exchange_) exchange_->abandon(Fault::state);
    return unlink();
  }
  closed_ = true;
  // One that ignores GeneratorExit is left to the garbage collector.
  if (inner_ && !steal(PyObject_CallMethodNoArgs(inner_, border().names.close.ptr()))) PyErr_Clear();
  if (exchange_) {
    exchange_->abandon(Fault::state);
    end();
  }
}

// --- the end of the call ---

void Cycle::returned(PyObject* value) {
  if (!disconnected() && value != Py_None) {
    app_->bridge_.log(Level::error, "ASGI callable should return None, but returned '" + describe(value) + "'.");
    exchange_->abandon(Fault::state);
  } else if (!disconnected() && exchange_->send_state() == Send::idle) {
    app_->bridge_.log(Level::error, "ASGI callable returned without starting response.");
    answer_500();
  } else if (!disconnected() && exchange_->send_state() != Send::done) {
    app_->bridge_.log(Level::error, "ASGI callable returned without completing response.");
    exchange_->abandon(Fault::state);
  }
  end();
}

void Cycle::raised() {
  const py::object exception = take_exception();
  app_->bridge_.leave_forked_child(exception.ptr());
  const bool left = disconnected() && PyErr_GivenExceptionMatches(exception.ptr(), border().client_disconnected.ptr());
  if (!left) app_->bridge_.log(Level::error, "Exception in ASGI application\n", exception);
  if (!disconnected()) {
    if (exchange_->send_state() == Send::idle) answer_500();
    else if (exchange_->send_state() != Send::done) exchange_->abandon(Fault::state);
  }
  end();
}

void Cycle::answer_500() {
  ResponseHead head = plain_head(500, "Internal Server Error");
  head.headers.add("connection", "close");
  if (app_->bridge_.hooks.access && scope_) app_->bridge_.access(scope_, 500);
  (void)exchange_->respond(std::move(head));
  (void)exchange_->write("Internal Server Error");
  (void)exchange_->finish();
}

void Cycle::end() {
  exchange_->leave();
  exchange_.reset();
  app_ = nullptr;
  unlink();
  Py_CLEAR(scope_);
  Py_CLEAR(inner_);
  Py_CLEAR(task_);
  for (auto* side : {&receivers_, &senders_})
    for (PyObject* waiter : std::exchange(*side, {})) {  // other tasks of the application still wait: they see the end
      resolve_soon(waiter);
      Py_DECREF(waiter);
    }
  Py_DECREF(self_);  // the reference that the running call held
}

int Cycle::traverse(visitproc visit, void* arg) {
  Py_VISIT(scope_);
  Py_VISIT(inner_);
  Py_VISIT(task_);
  for (PyObject* waiter : receivers_) Py_VISIT(waiter);
  for (PyObject* waiter : senders_) Py_VISIT(waiter);
  return 0;
}

void Cycle::clear() {
  Py_CLEAR(scope_);
  Py_CLEAR(inner_);
  Py_CLEAR(task_);
  for (auto* side : {&receivers_, &senders_})
    for (PyObject* waiter : std::exchange(*side, {})) Py_DECREF(waiter);
}

// --- the type ---

namespace {

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return as_cycle(self).cycle.traverse(visit, arg);
}

int clear_slot(PyObject* self) {
  as_cycle(self).cycle.clear();
  return 0;
}

void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  as_cycle(self).cycle.clear();
  as_cycle(self).cycle.~Cycle();
  type->tp_free(self);
  Py_DECREF(type);
}

PySendResult send_slot(PyObject* self, PyObject* value, PyObject** result) {
  const py::object alive = borrow(self);
  return guarded(PYGEN_ERROR, [&] { return as_cycle(self).cycle.step(self, value, result); });
}

PyObject* coroutine_throw(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const py::object alive = borrow(self);
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "throw() takes an exception");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] { return as_cycle(self).cycle.throw_in(args, count); });
}

PyObject* coroutine_close(PyObject* self, PyObject*) {
  const py::object alive = borrow(self);
  if (as_cycle(self).cycle.busy()) {
    PyErr_SetString(PyExc_ValueError, "coroutine already executing");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] {
    as_cycle(self).cycle.close();
    return Py_NewRef(Py_None);
  });
}

PyObject* name(PyObject*, void*) { return PyUnicode_FromString("request"); }

PyMethodDef methods[] = {
    {"send", send_method<send_slot>, METH_O, nullptr},
    {"throw", as_method(coroutine_throw), METH_FASTCALL, nullptr},
    {"close", coroutine_close, METH_NOARGS, nullptr},
    {},
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
    .name = "tricorn._core.Cycle",
    .basicsize = sizeof(CycleObject),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

}  // namespace

PyTypeObject* make_cycle_type() { return make_type(spec); }

// --- the application ---

AsgiApp::AsgiApp(Bridge& bridge, py::object app, py::dict state, std::string root_path)
    : bridge_(bridge),
      app_(std::move(app)),
      state_(std::move(state)),
      root_path_(std::move(root_path)),
      scope_template_(make_scope_template(root_path_)) {
  for (const Name* name : {&border().names.early_hint, &border().names.pathsend, &border().names.zerocopysend})
    extensions_[name->ptr()] = py::dict{};
  extensions_with_trailers_ = extensions_.attr("copy")();
  extensions_with_trailers_[border().names.response_trailers.ptr()] = py::dict{};
}

void AsgiApp::release() {
  app_ = {};
  state_ = {};
}

void AsgiApp::dispatch(Exchange& exchange) {
  const Events events = exchange.take_events();
  if (Call* call = exchange.call()) return static_cast<PyCall*>(call)->wake(events);
  if (exchange.gone()) return exchange.leave();  // reset before the application was entered
  begin(exchange);
}

void AsgiApp::begin(Exchange& exchange) {
  PyTypeObject* type = border().cycle_type;
  const py::object self = steal(type->tp_alloc(type, 0));
  if (self) {
    Cycle& cycle = *new (&as_cycle(self.ptr()).cycle) Cycle{self.ptr(), *this, exchange};
    exchange.enter(cycle);
    bridge_.running.push(cycle);
    Py_INCREF(self.ptr());  // given back by Cycle::end
    if (const py::object request_scope = guarded(py::object{}, [&] { return scope(exchange); })) {
      cycle.set_scope(request_scope.ptr());
      if (start_task(self.ptr())) return;
    }
    const py::object exception = take_exception();
    bridge_.log(Level::error, "Cannot start the request", exception);
    exchange.abandon(Fault::state);
    if (exchange.call()) cycle.close();
    return;
  }
  PyErr_Clear();
  exchange.abandon(Fault::state);
  exchange.leave();
}

bool AsgiApp::start_task(PyObject* self) {
  const py::object task = bridge_.tasks.start(self);
  if (!task) return false;
  Cycle& cycle = as_cycle(self).cycle;
  if (cycle.running()) cycle.set_task(task.ptr());  // it may be done already
  return true;
}

py::object AsgiApp::scope(const Exchange& exchange) const {
  py::object result = make_scope(scope_template_.ptr(), exchange, root_path_, state_.ptr());
  if (!result) return {};
  if (!set_extensions(result.ptr(), exchange)) return {};
  const Headers& headers = exchange.request().headers;
  if (bridge_.hooks.forwarded && (headers.has("x-forwarded-for") || headers.has("x-forwarded-proto"))) {
    const py::object done = steal(PyObject_CallOneArg(bridge_.hooks.forwarded.ptr(), result.ptr()));
    if (!done) return {};
  }
  return result;
}

bool AsgiApp::set_extensions(PyObject* scope, const Exchange& exchange) const {
  const RequestHead& head = exchange.request();
  const bool trailers = head.version == Version::http2 || takes_trailers(head);
  const py::dict& offered = trailers ? extensions_with_trailers_ : extensions_;
  const py::object extensions = steal(PyDict_Copy(offered.ptr()));
  if (!extensions) return false;
  if (exchange.peer().tls &&
      PyDict_SetItem(extensions.ptr(), border().names.tls.ptr(), make_tls_extension(*exchange.peer().tls).ptr()) < 0)
    return false;
  return PyDict_SetItem(scope, border().names.extensions.ptr(), extensions.ptr()) == 0;
}

}  // namespace tricorn
