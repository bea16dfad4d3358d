// The ASGI HTTP cycle: one application call on one exchange (ASGI HTTP specification 2.5).
// A Cycle is the coroutine that the request's asyncio.Task drives: it calls the application, forwards every step, and
// answers for the application when it fails. receive() and send() are bound to it.
#pragma once

#include <string>
#include <vector>

#include "http/exchange.h"
#include "py/bridge.h"

namespace tricorn {

class AsgiApp;
struct CycleObject;

PyTypeObject* make_cycle_type();

// What one step of receive() or send() came to.
enum class Outcome : std::uint8_t { done, wait, error };  // error: a Python exception is set
enum class Side : std::uint8_t { receive, send };

class Cycle final : public PyCall {
 public:
  Cycle(PyObject* self, AsgiApp& app, Exchange& exchange) : self_(self), app_(&app), exchange_(&exchange) {}

  // --- for dispatch ---
  void wake(Events events) override;
  bool cancel() override;
  void end_input() override;
  void close() override;
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

  int traverse(visitproc visit, void* arg);
  void clear();

  // Held while Python code runs on this cycle's behalf: close() then only cuts the answer, and the call ends by itself.
  class Busy {
   public:
    explicit Busy(Cycle& cycle) : cycle_(cycle) { ++cycle_.busy_; }
    ~Busy() { --cycle_.busy_; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Cycle& cycle_;
  };
  bool busy() const { return busy_ > 0; }
  bool running() const { return static_cast<bool>(exchange_); }

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

  PyObject* self_;             // the object this is part of
  AsgiApp* app_;               // null once the call has ended
  Ref<Exchange> exchange_;     // null once the call has ended
  PyObject* scope_ = nullptr;  // until the response starts: the access log reads it
  PyObject* inner_ = nullptr;  // the application's coroutine
  PyObject* task_ = nullptr;
  std::vector<PyObject*> receivers_;  // waiters
  std::vector<PyObject*> senders_;
  int busy_ = 0;               // see Busy
  bool body_given_ = false;    // the last http.request went out
  bool trailers_due_ = false;  // http.response.start said trailers=True
  bool body_complete_ = false;
  Headers trailers_;
};

struct CycleObject {
  PyObject ob_base;
  Cycle cycle;
};

// RFC 9110 6.5.1: trailers only to a peer that says "TE: trailers".
bool takes_trailers(const RequestHead& head);

class AsgiApp final : public App {
 public:
  // `state`: the lifespan's; every request gets a shallow copy.
  AsgiApp(Bridge& bridge, py::object app, py::dict state, std::string root_path);
  void release();  // with Bridge::release
  void dispatch(Exchange& exchange) override;
  // Starts the application on an exchange that has not entered one.
  void begin(Exchange& exchange);
  // The exchange's scope, whole. Null with an exception set.
  py::object scope(const Exchange& exchange) const;

 private:
  friend class Cycle;
  bool start_task(PyObject* cycle);
  bool set_extensions(PyObject* scope, const Exchange& exchange) const;

  Bridge& bridge_;
  py::object app_;
  py::dict state_;
  std::string root_path_;
  py::dict scope_template_, extensions_, extensions_with_trailers_;
};

}  // namespace tricorn
