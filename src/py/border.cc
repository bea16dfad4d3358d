#include "py/border.h"

#include "py/asgi.h"
#include "py/awaitable.h"
#include "py/native_rpc.h"
#include "py/task.h"
#include "py/waiter.h"

namespace tricorn {
namespace {
Border* the_border = nullptr;  // the module's own state: types and interned names exist once per interpreter
}

Border& border() { return *the_border; }

Border::Border(py::module_& module) {
  the_border = this;
  awaitable_type = make_awaitable_type();
  waiter_type = make_waiter_type();
  cycle_type = make_cycle_type();
  call_soon_type = make_call_soon_type();
  rpc_call_type = make_rpc_call_type();
  const py::module_ asyncio = py::module_::import("asyncio");
  task_type = asyncio.attr("Task");
  cancelled_error = asyncio.attr("CancelledError");
  invalid_state_error = asyncio.attr("InvalidStateError");
  client_disconnected = steal(PyErr_NewExceptionWithDoc(
      "tricorn.ClientDisconnected", "The peer is gone: nothing more can be sent (ASGI spec_version 2.4).",
      PyExc_OSError, nullptr));
  module.attr("ClientDisconnected") = client_disconnected;
  // asyncio.create_task() takes what collections.abc calls a coroutine.
  const py::object coroutine = py::module_::import("collections.abc").attr("Coroutine");
  coroutine.attr("register")(py::handle(reinterpret_cast<PyObject*>(awaitable_type)));
  coroutine.attr("register")(py::handle(reinterpret_cast<PyObject*>(cycle_type)));
  coroutine.attr("register")(py::handle(reinterpret_cast<PyObject*>(rpc_call_type)));
}

std::string describe(PyObject* object) {
  const py::object text = steal(PyObject_Str(object));
  const py::object encoded =
      text ? steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace")) : py::object{};
  if (encoded) return std::string{view_of(encoded.ptr())};
  PyErr_Clear();
  return "?";
}

void Graveyard::clear() {
  for (PyObject* object : std::exchange(dead_, {})) Py_DECREF(object);
}

py::object take_exception() {
#if PY_VERSION_HEX >= 0x030C0000
  return steal(PyErr_GetRaisedException());
#else
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return steal(value);
#endif
}

}  // namespace tricorn
