#include "py/asgi.h"

#include <pythread.h>

#include "http/host.h"
#include "py/awaitable.h"
#include "py/scope.h"
#include "py/waiter.h"

namespace tricorn {
namespace {

CycleObject& as_cycle(PyObject* self) { return *reinterpret_cast<CycleObject*>(self); }

// --- receive and send, as the application gets them: functions bound to the cycle ---

PyObject* call_receive(PyObject* self, PyObject*) { return new_awaitable(&as_cycle(self), nullptr); }
PyObject* call_send(PyObject* self, PyObject* message) { return new_awaitable(&as_cycle(self), message); }

PyMethodDef receive_method{"receive", call_receive, METH_NOARGS, "ASGI receive()."};
PyMethodDef send_method{"send", call_send, METH_O, "ASGI send(message)."};

// The iterator inside whatever the application returned: a coroutine is its own.
py::object awaitable_iterator(const py::object& awaitable) {
  if (PyCoro_CheckExact(awaitable.ptr())) return awaitable;
  const PyAsyncMethods* async = Py_TYPE(awaitable.ptr())->tp_as_async;
  if (async && async->am_await) return steal(async->am_await(awaitable.ptr()));
  PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression", Py_TYPE(awaitable.ptr())->tp_name);
  return {};
}

}  // namespace

// --- waking ---

bool Cycle::on_its_thread() const { return !app_ || PyThread_get_thread_ident() == app_->thread_; }

PyObject* Cycle::wait(Side side) {
  PyObject* waiter = new_waiter(app_->event_loop_.ptr());
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
  const py::object receive = steal(PyCFunction_New(&receive_method, self));
  const py::object send = steal(PyCFunction_New(&send_method, self));
  if (!receive || !send) return false;
  PyObject* arguments[] = {scope_, receive.ptr(), send.ptr()};
  const py::object awaitable = steal(PyObject_Vectorcall(app_->app_.ptr(), arguments, 3, nullptr));
  if (!app_->hooks_.access) Py_CLEAR(scope_);
  if (!awaitable) return false;
  inner_ = awaitable_iterator(awaitable).release().ptr();
  return inner_ != nullptr;
}

PySendResult Cycle::step(PyObject* self, PyObject* value, PyObject** result) {
  if (!exchange_) {
    PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
    return PYGEN_ERROR;
  }
  PyObject* outcome = nullptr;
  const bool started = inner_ || start(self);
  switch (started ? PyIter_Send(inner_, value, &outcome) : PYGEN_ERROR) {
    case PYGEN_NEXT: *result = outcome; return PYGEN_NEXT;
    case PYGEN_RETURN: returned(steal(outcome).ptr()); break;
    case PYGEN_ERROR: raised(); break;
  }
  *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

PyObject* Cycle::throw_in(PyObject* const* args, Py_ssize_t count) {
  if (!exchange_) {
    PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
    return nullptr;
  }
  if (inner_) {
    const py::object method = steal(PyObject_GetAttr(inner_, border().names.throw_.ptr()));
    PyObject* yielded =
        method ? PyObject_Vectorcall(method.ptr(), args, static_cast<std::size_t>(count), nullptr) : nullptr;
    if (yielded) return yielded;
    if (PyErr_ExceptionMatches(PyExc_StopIteration)) returned(take_exception().attr("value").ptr());
    else raised();
  } else {  // cancelled before its first step
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(args[0])), args[0]);
    raised();
  }
  PyErr_SetNone(PyExc_StopIteration);
  return nullptr;
}

void Cycle::close() {
  if (inner_ && !steal(PyObject_CallMethodNoArgs(inner_, border().names.close.ptr()))) PyErr_WriteUnraisable(inner_);
  if (exchange_) {
    exchange_->abandon(Fault::state);
    end();
  }
}

// --- the end of the call ---

void Cycle::returned(PyObject* value) {
  if (!disconnected() && value != Py_None) {
    const py::object text = steal(PyObject_Str(value));
    if (!text) PyErr_Clear();
    app_->log(Level::error, "ASGI callable should return None, but returned '" +
                                (text ? text.cast<std::string>() : std::string{"?"}) + "'.");
    exchange_->abandon(Fault::state);
  } else if (!disconnected() && exchange_->send_state() == Send::idle) {
    app_->log(Level::error, "ASGI callable returned without starting response.");
    answer_500();
  } else if (!disconnected() && exchange_->send_state() != Send::done) {
    app_->log(Level::error, "ASGI callable returned without completing response.");
    exchange_->abandon(Fault::state);
  }
  end();
}

void Cycle::raised() {
  const py::object exception = take_exception();
  const bool left = disconnected() && PyErr_GivenExceptionMatches(exception.ptr(), border().client_disconnected.ptr());
  if (!left) app_->log(Level::error, "Exception in ASGI application\n", exception);
  if (!disconnected()) {
    if (exchange_->send_state() == Send::idle) answer_500();
    else if (exchange_->send_state() != Send::done) exchange_->abandon(Fault::state);
  }
  end();
}

void Cycle::answer_500() {
  ResponseHead head = plain_head(500, "Internal Server Error");
  head.headers.add("connection", "close");
  if (app_->hooks_.access && scope_) (void)app_->hooks_.access(borrow(scope_), 500);
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
  return as_cycle(self).cycle.step(self, value, result);
}

PyObject* coroutine_send(PyObject* self, PyObject* value) {
  PyObject* result = nullptr;
  const PySendResult outcome = send_slot(self, value, &result);
  if (outcome == PYGEN_NEXT) return result;
  if (outcome == PYGEN_RETURN) {
    Py_DECREF(result);
    PyErr_SetNone(PyExc_StopIteration);
  }
  return nullptr;
}

PyObject* iternext(PyObject* self) { return coroutine_send(self, Py_None); }

PyObject* coroutine_throw(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const py::object alive = borrow(self);
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "throw() takes an exception");
    return nullptr;
  }
  return as_cycle(self).cycle.throw_in(args, count);
}

PyObject* coroutine_close(PyObject* self, PyObject*) {
  const py::object alive = borrow(self);
  as_cycle(self).cycle.close();
  Py_RETURN_NONE;
}

PyObject* name(PyObject*, void*) { return PyUnicode_FromString("request"); }

template <class Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"send", coroutine_send, METH_O, nullptr},
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
    {Py_tp_iternext, reinterpret_cast<void*>(iternext)},
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

PyTypeObject* make_cycle_type() { return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec)); }

// --- the application ---

AsgiApp::AsgiApp(py::object app, py::object event_loop, py::dict state, Hooks hooks, std::string root_path,
                 Graveyard& graveyard, const TaskStarter& tasks, std::function<void()> touched)
    : app_(std::move(app)),
      event_loop_(std::move(event_loop)),
      state_(std::move(state)),
      hooks_(std::move(hooks)),
      root_path_(std::move(root_path)),
      graveyard_(graveyard),
      tasks_(tasks),
      scope_template_(make_scope_template(root_path_)),
      touched_(std::move(touched)),
      thread_(PyThread_get_thread_ident()) {
  for (const Name* name : {&border().names.early_hint, &border().names.pathsend, &border().names.zerocopysend})
    extensions_[name->ptr()] = py::dict{};
  extensions_with_trailers_ = extensions_.attr("copy")();
  extensions_with_trailers_[border().names.response_trailers.ptr()] = py::dict{};
  for (py::object* hook : {&hooks_.access, &hooks_.log, &hooks_.forwarded, &hooks_.drained})
    if (hook->is_none()) *hook = {};
}

void AsgiApp::dispatch(Exchange& exchange) {
  const Events events = exchange.take_events();
  if (Call* call = exchange.call()) return static_cast<Cycle*>(call)->wake(events);
  if (exchange.gone()) return exchange.leave();  // reset before the application was entered
  begin(exchange);
}

void AsgiApp::begin(Exchange& exchange) {
  PyTypeObject* type = border().cycle_type;
  const py::object self = steal(type->tp_alloc(type, 0));
  if (self) {
    Cycle& cycle = *new (&as_cycle(self.ptr()).cycle) Cycle{self.ptr(), *this, exchange};
    exchange.enter(cycle);
    running_.push(cycle);
    Py_INCREF(self.ptr());  // given back by Cycle::end
    if (const py::object request_scope = scope(exchange)) {
      cycle.set_scope(request_scope.ptr());
      if (start_task(self.ptr())) return;
    }
    const py::object exception = take_exception();
    log(Level::error, "Cannot start the request", exception);
    exchange.abandon(Fault::state);
    if (exchange.call()) cycle.close();
    return;
  }
  PyErr_Clear();
  exchange.abandon(Fault::state);
  exchange.leave();
}

bool AsgiApp::start_task(PyObject* self) {
  const py::object task = tasks_.start(self);
  if (!task) return false;
  Cycle& cycle = as_cycle(self).cycle;
  if (cycle.linked()) cycle.set_task(task.ptr());  // it may be done already
  return true;
}

py::object AsgiApp::scope(Exchange& exchange) {
  py::object result = make_scope(scope_template_.ptr(), exchange, root_path_, state_.ptr());
  if (!result) return {};
  if (!set_extensions(result.ptr(), exchange)) return {};
  const Headers& headers = exchange.request().headers;
  if (hooks_.forwarded && (headers.has("x-forwarded-for") || headers.has("x-forwarded-proto"))) {
    const py::object done = steal(PyObject_CallOneArg(hooks_.forwarded.ptr(), result.ptr()));
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
  if (exchange.peer().tls && PyDict_SetItem(extensions.ptr(), border().names.tls.ptr(),
                                            make_tls_extension(*exchange.peer().tls).ptr()) < 0)
    return false;
  return PyDict_SetItem(scope, border().names.extensions.ptr(), extensions.ptr()) == 0;
}

void AsgiApp::log(Level level, const std::string& text, const py::object& exception) const {
  if (!hooks_.log) return;
  const py::object message = steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  const py::object number = steal(PyLong_FromLong(static_cast<int>(level)));
  PyObject* arguments[] = {number.ptr(), message.ptr(), exception.ptr()};
  if (!steal(PyObject_Vectorcall(hooks_.log.ptr(), arguments, 3, nullptr))) PyErr_WriteUnraisable(hooks_.log.ptr());
}

void AsgiApp::disconnect() {
  running_.each([](Cycle& cycle) { cycle.end_input(); });
}

void AsgiApp::abandon() {
  while (Cycle* cycle = running_.front()) cycle->close();
}

std::size_t AsgiApp::cancel() {
  std::size_t n = 0;
  running_.each([&](Cycle& cycle) { n += cycle.cancel(); });
  return n;
}

}  // namespace tricorn
