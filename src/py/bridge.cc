#include "py/bridge.h"

#include <pythread.h>
#include <unistd.h>

namespace tricorn {

bool PyCall::may_step(bool running) {
  if (stepping_) PyErr_SetString(PyExc_ValueError, "coroutine already executing");
  else if (!running && !std::exchange(closed_, false))
    PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
  return running && !stepping_;
}

Bridge::Bridge(py::object loop, Hooks given, Graveyard& dead, const TaskStarter& starter, std::function<void()> touch)
    : event_loop(std::move(loop)),
      hooks([](Hooks some) {
        for (py::object* hook : {&some.access, &some.log, &some.forwarded, &some.drained})
          if (hook->is_none()) *hook = {};
        return some;
      }(std::move(given))),
      graveyard(dead),
      tasks(starter),
      touched(std::move(touch)),
      thread_(PyThread_get_thread_ident()),
      pid_(::getpid()) {}

void Bridge::release() {
  hooks = {};
  event_loop = {};
}

void Bridge::leave_forked_child(PyObject* exception) const {
  if (::getpid() == pid_ || !PyErr_GivenExceptionMatches(exception, PyExc_SystemExit)) return;
  const py::object code = steal(PyObject_GetAttrString(exception, "code"));
  if (!code) PyErr_Clear();
  const bool number = code && PyLong_Check(code.ptr());
  ::_exit(number ? static_cast<int>(PyLong_AsLong(code.ptr())) : !code.is_none());
}

bool Bridge::on_its_thread() const { return PyThread_get_thread_ident() == thread_; }

void Bridge::log(Level level, const std::string& text, const py::object& exception) const {
  if (!hooks.log) return;
  const py::object message = steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  const py::object number = steal(PyLong_FromLong(static_cast<int>(level)));
  PyObject* arguments[] = {number.ptr(), message.ptr(), exception.ptr()};
  if (!steal(PyObject_Vectorcall(hooks.log.ptr(), arguments, 3, nullptr))) PyErr_WriteUnraisable(hooks.log.ptr());
}

void Bridge::access(PyObject* scope, int status) const {
  const py::object number = steal(PyLong_FromLong(status));
  PyObject* arguments[] = {scope, number.ptr()};
  if (!steal(PyObject_Vectorcall(hooks.access.ptr(), arguments, 2, nullptr))) PyErr_WriteUnraisable(hooks.access.ptr());
}

std::size_t Bridge::cancel() {
  std::size_t n = 0;
  running.each([&](PyCall& call) { n += call.cancel(); });
  return n;
}

void Bridge::disconnect() {
  running.each([](PyCall& call) { call.end_input(); });
}

void Bridge::abandon() {
  while (PyCall* call = running.front()) call->close();
}

namespace {

// What types.coroutine makes of a generator function: its generators can be awaited as they are.
bool is_coroutine_generator(const py::object& object) {
  if (!PyGen_CheckExact(object.ptr())) return false;
  const py::object code = steal(PyObject_GetAttrString(object.ptr(), "gi_code"));
  const py::object flags = code ? steal(PyObject_GetAttrString(code.ptr(), "co_flags")) : py::object{};
  if (!flags) PyErr_Clear();
  return flags && (PyLong_AsLong(flags.ptr()) & CO_ITERABLE_COROUTINE) != 0;
}

}  // namespace

py::object awaitable_iterator(const py::object& awaitable) {
  if (PyCoro_CheckExact(awaitable.ptr()) || is_coroutine_generator(awaitable)) return awaitable;
  const PyAsyncMethods* async = Py_TYPE(awaitable.ptr())->tp_as_async;
  if (async && async->am_await) return steal(async->am_await(awaitable.ptr()));
  PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression", Py_TYPE(awaitable.ptr())->tp_name);
  return {};
}

}  // namespace tricorn
