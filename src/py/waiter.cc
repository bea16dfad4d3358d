#include "py/waiter.h"

#include <structmember.h>

#include "py/slots.h"

namespace tricorn {
namespace {

enum class Stage : std::uint8_t { pending, resolved, cancelled };

struct Waiter {
  PyObject ob_base;
  PyObject* event_loop;
  PyObject* callback;  // the task's wake-up; a waiter belongs to one task
  PyObject* context;
  PyObject* cancel_message;
  char blocking;  // asyncio's protocol for "this future was yielded by await"
  Stage stage;
};

Waiter& as_waiter(PyObject* self) { return *reinterpret_cast<Waiter*>(self); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Waiter& waiter = as_waiter(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(waiter.event_loop);
  Py_VISIT(waiter.callback);
  Py_VISIT(waiter.context);
  Py_VISIT(waiter.cancel_message);
  return 0;
}

int clear(PyObject* self) {
  Waiter& waiter = as_waiter(self);
  Py_CLEAR(waiter.event_loop);
  Py_CLEAR(waiter.callback);
  Py_CLEAR(waiter.context);
  Py_CLEAR(waiter.cancel_message);
  return 0;
}

// loop.call_soon(callback, waiter, context=context)
bool schedule(PyObject* self, PyObject* callback, PyObject* context) {
  Names& names = border().names;
  const py::object call_soon = steal(PyObject_GetAttr(as_waiter(self).event_loop, names.call_soon.ptr()));
  if (!call_soon) return false;
  const py::object keywords = steal(PyTuple_Pack(1, names.context.ptr()));
  PyObject* arguments[] = {callback, self, context};
  const bool with_context = context && context != Py_None;
  return static_cast<bool>(
      steal(PyObject_Vectorcall(call_soon.ptr(), arguments, 2, with_context ? keywords.ptr() : nullptr)));
}

PyObject* add_done_callback(PyObject* self, PyObject* args, PyObject* kwargs) {
  Waiter& waiter = as_waiter(self);
  static const char* names[] = {"fn", "context", nullptr};
  PyObject* callback = nullptr;
  PyObject* context = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O", const_cast<char**>(names), &callback, &context))
    return nullptr;
  if (waiter.stage != Stage::pending) {
    if (!schedule(self, callback, context)) return nullptr;
    Py_RETURN_NONE;
  }
  if (waiter.callback) {
    PyErr_SetString(PyExc_RuntimeError, "only one task can wait here");
    return nullptr;
  }
  waiter.callback = Py_NewRef(callback);
  waiter.context = context && context != Py_None ? Py_NewRef(context) : nullptr;
  Py_RETURN_NONE;
}

PyObject* remove_done_callback(PyObject* self, PyObject* callback) {
  Waiter& waiter = as_waiter(self);
  const int same = waiter.callback ? PyObject_RichCompareBool(waiter.callback, callback, Py_EQ) : 0;
  if (same < 0) return nullptr;
  if (same) {
    Py_CLEAR(waiter.callback);
    Py_CLEAR(waiter.context);
  }
  return PyLong_FromLong(same);
}

bool settle_soon(PyObject* self, Stage stage) {
  Waiter& waiter = as_waiter(self);
  waiter.stage = stage;
  if (!waiter.callback) return true;
  const py::object callback = steal(std::exchange(waiter.callback, nullptr));
  const py::object context = steal(std::exchange(waiter.context, nullptr));
  return schedule(self, callback.ptr(), context.ptr());
}

PyObject* cancel(PyObject* self, PyObject* args, PyObject* kwargs) {
  Waiter& waiter = as_waiter(self);
  static const char* names[] = {"msg", nullptr};
  PyObject* message = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), &message)) return nullptr;
  if (waiter.stage != Stage::pending) Py_RETURN_FALSE;
  Py_XSETREF(waiter.cancel_message, Py_XNewRef(message));
  if (!settle_soon(self, Stage::cancelled)) return nullptr;
  Py_RETURN_TRUE;
}

PyObject* result(PyObject* self, PyObject*) {
  Waiter& waiter = as_waiter(self);
  if (waiter.stage == Stage::resolved) Py_RETURN_NONE;
  if (waiter.stage == Stage::pending) {
    PyErr_SetString(border().invalid_state_error.ptr(), "Result is not ready.");
    return nullptr;
  }
  PyObject* message = waiter.cancel_message;
  if (message && message != Py_None) PyErr_SetObject(border().cancelled_error.ptr(), message);
  else PyErr_SetNone(border().cancelled_error.ptr());
  return nullptr;
}

PyObject* done(PyObject* self, PyObject*) { return PyBool_FromLong(as_waiter(self).stage != Stage::pending); }
PyObject* cancelled(PyObject* self, PyObject*) { return PyBool_FromLong(as_waiter(self).stage == Stage::cancelled); }
PyObject* get_loop(PyObject* self, PyObject*) { return Py_NewRef(as_waiter(self).event_loop); }

PyMethodDef methods[] = {
    {"add_done_callback", as_method(add_done_callback), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"remove_done_callback", remove_done_callback, METH_O, nullptr},
    {"cancel", as_method(cancel), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"result", result, METH_NOARGS, nullptr},
    {"exception", result, METH_NOARGS, nullptr},  // none was set: None, or raises CancelledError
    {"done", done, METH_NOARGS, nullptr},
    {"cancelled", cancelled, METH_NOARGS, nullptr},
    {"get_loop", get_loop, METH_NOARGS, nullptr},
    {},
};

PyMemberDef members[] = {
    {"_asyncio_future_blocking", T_BOOL, offsetof(Waiter, blocking), 0, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_slot)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {},
};

PyType_Spec spec{
    .name = "tricorn._core.Waiter",
    .basicsize = sizeof(Waiter),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

// Calls the task's wake-up inside the context that the task gave for it.
py::object call_in_context(PyObject* callback, PyObject* context, PyObject* argument) {
  if (!context) return steal(PyObject_CallOneArg(callback, argument));
  if (PyContext_Enter(context) < 0) return {};
  py::object value = steal(PyObject_CallOneArg(callback, argument));
  if (PyContext_Exit(context) < 0) return {};
  return value;
}

}  // namespace

PyTypeObject* make_waiter_type() { return make_type(spec); }

PyObject* new_waiter(PyObject* event_loop) {
  PyTypeObject* type = border().waiter_type;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  Waiter& waiter = as_waiter(self);
  waiter.event_loop = Py_NewRef(event_loop);
  waiter.blocking = 1;
  waiter.stage = Stage::pending;
  return self;
}

bool is_pending(PyObject* self) { return as_waiter(self).stage == Stage::pending; }

void resolve_now(PyObject* self) {
  Waiter& waiter = as_waiter(self);
  if (waiter.stage != Stage::pending) return;
  waiter.stage = Stage::resolved;
  if (!waiter.callback) return;
  const py::object alive = borrow(self);
  const py::object callback = steal(std::exchange(waiter.callback, nullptr));
  const py::object context = steal(std::exchange(waiter.context, nullptr));
  // Only SystemExit and KeyboardInterrupt come out of a task's step; they end that task, not the server.
  if (!call_in_context(callback.ptr(), context.ptr(), self)) PyErr_WriteUnraisable(callback.ptr());
}

void resolve_soon(PyObject* self) {
  if (as_waiter(self).stage != Stage::pending) return;
  if (!settle_soon(self, Stage::resolved)) PyErr_WriteUnraisable(self);
}

}  // namespace tricorn
