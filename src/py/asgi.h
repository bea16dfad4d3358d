// The ASGI HTTP cycle: one application call on one exchange (ASGI HTTP specification 2.5).
// A Cycle is the coroutine that the request's asyncio.Task drives: it calls the application, forwards every step, and
// answers for the application when it fails. receive() and send() are bound to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "py/border.h"
#include "py/task.h"

namespace tricorn {

class AsgiApp;
struct CycleObject;

PyTypeObject* make_cycle_type();

// What one step of receive() or send() came to.
enum class Outcome : std::uint8_t { done, wait, error };  // error: a Python exception is set
enum class Side : std::uint8_t { receive, send };

struct Running;
class Cycle final : public Call, public Hook<Running> {
 public:
  Cycle(PyObject* self, AsgiApp& app, Exchange& exchange) : self_(self), app_(&app), exchange_(&exchange) {}

  // --- for dispatch ---
  void wake(Events events);
  bool cancel();  // asks the task to end
  void end_input();  // http.disconnect for whoever waits
  // --- for the awaitables; each may set a Python exception ---
  bool on_its_thread() const;
  Outcome receive(PyObject** message);
  Outcome send(PyObject* message);
  Outcome resume_send();
  PyObject* wait(Side side);
  void forget(PyObject* waiter);
  // --- for the coroutine that the task drives ---
  PySendResult step(PyObject* self, PyObject* value, PyObject** result);
  PyObject* throw_in(PyObject* const* args, Py_ssize_t count);
  void close();

  int traverse(visitproc visit, void* arg);
  void clear();

  void set_task(PyObject* task) { Py_XSETREF(task_, Py_XNewRef(task)); }
  void set_scope(PyObject* scope) { scope_ = Py_NewRef(scope); }

 private:
  bool start(PyObject* self);
  void returned(PyObject* value);
  void raised();
  void end();
  void answer_500();
  bool disconnected() const;
  // asgi_send.cc: one function a message type
  Outcome before_start(PyObject* type, PyObject* message);
  Outcome before_end(PyObject* type, PyObject* message);
  Outcome response_start(PyObject* message);
  Outcome early_hint(PyObject* message);
  Outcome response_body(PyObject* message);
  Outcome pathsend(PyObject* message);
  Outcome zerocopysend(PyObject* message);
  Outcome response_trailers(PyObject* message);
  Outcome written(Result<void> result, bool more);
  Outcome finish();

  PyObject* self_;               // the object this is part of
  AsgiApp* app_;                 // null once the call has ended
  Ref<Exchange> exchange_;       // null once the call has ended
  PyObject* scope_ = nullptr;    // until the response starts: the access log reads it
  PyObject* inner_ = nullptr;    // the application's coroutine
  PyObject* task_ = nullptr;
  std::vector<PyObject*> receivers_;  // waiters
  std::vector<PyObject*> senders_;
  bool body_given_ = false;       // the last http.request went out
  bool trailers_due_ = false;     // http.response.start said trailers=True
  bool body_complete_ = false;
  Headers trailers_;
};

struct CycleObject {
  PyObject ob_base;
  Cycle cycle;
};

// Log levels of Python's logging module.
enum class Level : int { info = 20, warning = 30, error = 40 };

// What the core calls in Python outside the application; any may be None.
struct Hooks {
  py::object access, log, forwarded, drained;
};

// RFC 9110 6.5.1: trailers only to a peer that says "TE: trailers".
bool takes_trailers(const RequestHead& head);

class AsgiApp final : public App {
 public:
  AsgiApp(py::object app, py::object event_loop, py::dict state, Hooks hooks, std::string root_path,
          Graveyard& graveyard, const TaskStarter& tasks, std::function<void()> touched);
  void dispatch(Exchange& exchange) override;

  std::size_t cancel();   // every running task; returns how many
  void disconnect();      // every running call: http.disconnect
  void abandon();         // drops what is still running: the event loop is gone

  void log(Level level, const std::string& text, const py::object& exception = py::none()) const;

 private:
  friend class Cycle;
  void begin(Exchange& exchange);
  bool start_task(PyObject* cycle);
  py::object scope(Exchange& exchange);
  bool set_extensions(PyObject* scope, const Exchange& exchange) const;

  py::object app_, event_loop_;
  py::dict state_;
  Hooks hooks_;
  std::string root_path_;
  Graveyard& graveyard_;
  const TaskStarter& tasks_;
  py::dict scope_template_, extensions_, extensions_with_trailers_;
  std::function<void()> touched_;  // output may have appeared outside of dispatch
  unsigned long thread_;
  List<Cycle, Running> running_;
};

}  // namespace tricorn
