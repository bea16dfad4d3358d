#include "py/awaitable.h"

#include "py/asgi.h"
#include "py/guard.h"
#include "py/slots.h"
#include "py/waiter.h"

namespace tricorn {
namespace {

enum class Stage : std::uint8_t { fresh, waiting, finished };

struct Awaitable {
  PyObject ob_base;
  CycleObject* cycle;
  PyObject* message;  // null: receive()
  PyObject* waiter;   // while waiting
  Stage stage;
};

Awaitable& as_awaitable(PyObject* self) { return *reinterpret_cast<Awaitable*>(self); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Awaitable& awaitable = as_awaitable(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(awaitable.cycle);
  Py_VISIT(awaitable.message);
  Py_VISIT(awaitable.waiter);
  return 0;
}

int clear(PyObject* self) {
  Awaitable& awaitable = as_awaitable(self);
  Py_CLEAR(awaitable.cycle);
  Py_CLEAR(awaitable.message);
  Py_CLEAR(awaitable.waiter);
  return 0;
}

void finish(Awaitable& awaitable) {
  awaitable.stage = Stage::finished;
  if (awaitable.waiter) {
    awaitable.cycle->cycle.forget(awaitable.waiter);
    Py_CLEAR(awaitable.waiter);
  }
}

// Suspends: a fresh waiter is known to the cycle and yielded to the task.
PySendResult suspend(Awaitable& awaitable, PyObject** result) {
  PyObject* waiter = awaitable.cycle->cycle.wait(awaitable.message ? Side::send : Side::receive);
  if (!waiter) {
    awaitable.stage = Stage::finished;
    return PYGEN_ERROR;
  }
  awaitable.stage = Stage::waiting;
  Py_XSETREF(awaitable.waiter, Py_NewRef(waiter));
  *result = waiter;
  return PYGEN_NEXT;
}

PySendResult step(PyObject* self, PyObject** result) {
  Awaitable& awaitable = as_awaitable(self);
  *result = nullptr;
  if (awaitable.stage == Stage::finished) {
    PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
    return PYGEN_ERROR;
  }
  Cycle& cycle = awaitable.cycle->cycle;
  if (!cycle.on_its_thread()) {
    PyErr_SetString(PyExc_RuntimeError, "receive() and send() belong to the event loop's thread");
    return PYGEN_ERROR;
  }
  const bool resumed = awaitable.stage == Stage::waiting;
  if (resumed && is_pending(awaitable.waiter)) {
    PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    return PYGEN_ERROR;
  }
  if (resumed) Py_CLEAR(awaitable.waiter);
  const Cycle::Busy busy{cycle};
  Outcome outcome;
  if (!awaitable.message) outcome = cycle.receive(result);
  else if (resumed) outcome = cycle.resume_send();
  else outcome = cycle.send(awaitable.message);
  if (outcome == Outcome::wait) return suspend(awaitable, result);
  awaitable.stage = Stage::finished;
  if (outcome == Outcome::error) return PYGEN_ERROR;
  if (!*result) *result = Py_NewRef(Py_None);
  return PYGEN_RETURN;
}

PySendResult send_slot(PyObject* self, PyObject*, PyObject** result) {
  return guarded(PYGEN_ERROR, [&] { return step(self, result); });
}

PyObject* throw_method(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  finish(as_awaitable(self));
  if (count < 1 || count > 3) {
    PyErr_SetString(PyExc_TypeError, "throw() takes 1 to 3 arguments");
    return nullptr;
  }
  raise_thrown(args, count);
  return nullptr;
}

PyObject* close_method(PyObject* self, PyObject*) {
  finish(as_awaitable(self));
  Py_RETURN_NONE;
}

PyObject* name(PyObject* self, void*) { return PyUnicode_FromString(as_awaitable(self).message ? "send" : "receive"); }

PyMethodDef methods[] = {
    {"send", send_method<send_slot>, METH_O, nullptr},
    {"throw", as_method(throw_method), METH_FASTCALL, nullptr},
    {"close", close_method, METH_NOARGS, nullptr},
    {},
};

PyGetSetDef getters[] = {
    {"__name__", name, nullptr, nullptr, nullptr},
    {"__qualname__", name, nullptr, nullptr, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_slot)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_tp_iternext, reinterpret_cast<void*>(iternext_slot<send_slot>)},
    {Py_am_await, reinterpret_cast<void*>(PyObject_SelfIter)},
    {Py_am_send, reinterpret_cast<void*>(send_slot)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {},
};

PyType_Spec spec{
    .name = "tricorn._core.Awaitable",
    .basicsize = sizeof(Awaitable),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

}  // namespace

PyTypeObject* make_awaitable_type() { return make_type(spec); }

PyObject* new_awaitable(CycleObject* cycle, PyObject* message) {
  PyTypeObject* type = border().awaitable_type;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  Awaitable& awaitable = as_awaitable(self);
  awaitable.cycle = cycle;
  Py_INCREF(reinterpret_cast<PyObject*>(cycle));
  awaitable.message = Py_XNewRef(message);
  awaitable.stage = Stage::fresh;
  return self;
}

}  // namespace tricorn
