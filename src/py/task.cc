#include "py/task.h"

#include <structmember.h>

#include <cstring>

#include "py/slots.h"

namespace tricorn {
namespace {

struct CallSoon {
  PyObject ob_base;
  vectorcallfunc call;
  PyObject* original;  // the loop's own, bound
  PyObject* step;      // what was caught
  PyObject* context;
  bool armed;
};

CallSoon& as_call_soon(PyObject* self) { return *reinterpret_cast<CallSoon*>(self); }

// A finaliser may run while the Task is made, and call the loop too: only the Task's step is caught.
bool is_task_step(PyObject* callback) { return std::strcmp(Py_TYPE(callback)->tp_name, "TaskStepMethWrapper") == 0; }

PyObject* call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  CallSoon& soon = as_call_soon(self);
  const bool context_given = names && PyTuple_GET_SIZE(names) == 1;
  if (!soon.armed || PyVectorcall_NARGS(count) != 1 || !context_given || !is_task_step(args[0]))
    return PyObject_Vectorcall(soon.original, args, count, names);
  soon.armed = false;
  soon.step = Py_NewRef(args[0]);
  soon.context = Py_NewRef(args[1]);
  Py_RETURN_NONE;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as_call_soon(self).original);
  Py_VISIT(as_call_soon(self).step);
  Py_VISIT(as_call_soon(self).context);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_call_soon(self).original);
  Py_CLEAR(as_call_soon(self).step);
  Py_CLEAR(as_call_soon(self).context);
  return 0;
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallSoon, call), READONLY, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_slot)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, members},
    {},
};

PyType_Spec spec{
    .name = "tricorn._core.CallSoon",
    .basicsize = sizeof(CallSoon),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

py::object make_call_soon(const py::object& event_loop) {
  py::object original = steal(PyObject_GetAttr(event_loop.ptr(), border().names.call_soon.ptr()));
  py::object self = steal(border().call_soon_type->tp_alloc(border().call_soon_type, 0));
  if (!original || !self) throw py::error_already_set();
  as_call_soon(self.ptr()).call = call;
  as_call_soon(self.ptr()).original = original.release().ptr();
  return self;
}

constexpr bool k_eager = PY_VERSION_HEX >= 0x030C0000;

}  // namespace

PyTypeObject* make_call_soon_type() { return make_type(spec); }

TaskStarter::TaskStarter(py::object event_loop) : event_loop_(std::move(event_loop)) {
  const Names& names = border().names;
  keywords_ = steal(PyTuple_Pack(2, names.loop.ptr(), (k_eager ? names.eager_start : names.name).ptr()));
  last_ = k_eager ? py::object(py::bool_(true)) : py::object(py::str("request"));  // 3.11 makes up a name at once
  if (k_eager) return;
  call_soon_ = make_call_soon(event_loop_);
  if (PyObject_SetAttr(event_loop_.ptr(), border().names.call_soon.ptr(), call_soon_.ptr()) == 0) return;
  PyErr_Clear();  // a loop without a dictionary: its Tasks start one round later
  call_soon_ = {};
}

TaskStarter::~TaskStarter() {
  if (!call_soon_) return;
  const py::object now = steal(PyObject_GetAttr(event_loop_.ptr(), border().names.call_soon.ptr()));
  const bool ours = now.is(call_soon_);
  if (ours && PyObject_SetAttr(event_loop_.ptr(), border().names.call_soon.ptr(), nullptr) == 0) return;
  PyErr_Clear();  // somebody has put another on top: ours keeps passing on
}

py::object TaskStarter::start(PyObject* coroutine) const {
  PyObject* arguments[] = {coroutine, event_loop_.ptr(), last_.ptr()};
  if (call_soon_) as_call_soon(call_soon_.ptr()).armed = true;
  py::object task = steal(PyObject_Vectorcall(border().task_type.ptr(), arguments, 1, keywords_.ptr()));
  if (!call_soon_) return task;
  CallSoon& soon = as_call_soon(call_soon_.ptr());
  soon.armed = false;
  const py::object step = steal(std::exchange(soon.step, nullptr));
  const py::object context = steal(std::exchange(soon.context, nullptr));
  if (!task || !step) return task;
  if (PyContext_Enter(context.ptr()) < 0) return {};
  const py::object done = steal(PyObject_CallNoArgs(step.ptr()));
  if (!done) PyErr_WriteUnraisable(coroutine);
  PyContext_Exit(context.ptr());
  return task;
}

}  // namespace tricorn
