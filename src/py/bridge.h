// What the Apps of one server share on the Python side: the event loop, the hooks, and the calls that are running.
// All of it belongs to the event loop's thread, with the GIL.
#pragma once

#include <functional>
#include <string>

#include "http/exchange.h"
#include "py/border.h"
#include "py/task.h"

namespace tricorn {

struct Running;

// One call into the application while it runs; the Cycle of ASGI, the RpcCall of native RPC.
class PyCall : public Call, public Hook<Running> {
 public:
  virtual void wake(Events events) = 0;
  virtual bool cancel() = 0;     // asks the task to end
  virtual void end_input() = 0;  // tells whoever waits that nothing more will come
  virtual void close() = 0;      // ends the call without its task

  bool stepping() const { return stepping_; }

 protected:
  ~PyCall() = default;
  // Whether the coroutine can go on; if not, an exception is set, or none: then it has been closed.
  bool may_step(bool running);

  bool stepping_ = false;  // the coroutine is executing: it ends by itself, close() only cuts the answer
  bool closed_ = false;    // ended by close(); its task may come once more
};

// Log levels of Python's logging module.
enum class Level : int { info = 20, warning = 30, error = 40 };

// What the core calls in Python outside the application; each may be null.
struct Hooks {
  py::object access, log, forwarded, drained;
};

class Bridge {
 public:
  Bridge(py::object event_loop, Hooks hooks, Graveyard& graveyard, const TaskStarter& tasks,
         std::function<void()> touched);

  bool on_its_thread() const;
  void log(Level level, const std::string& text, const py::object& exception = py::none()) const;
  void access(PyObject* scope, int status) const;

  std::size_t cancel();  // every running task; returns how many
  void disconnect();     // every running call: the input has ended
  void abandon();        // ends what is still running: the event loop is gone
  void release();        // lets go of Python's objects: the server is closed and no call is running
  // A process that the application forked and that ends inside a handler must end there: it shares our sockets.
  void leave_forked_child(PyObject* exception) const;

  py::object event_loop;
  Hooks hooks;
  Graveyard& graveyard;
  const TaskStarter& tasks;
  const std::function<void()> touched;  // output may have appeared outside of dispatch
  List<PyCall, Running> running;

 private:
  unsigned long thread_;
  int pid_;
};

// The iterator inside whatever a function of the application returned: a coroutine is its own. Null with an exception.
py::object awaitable_iterator(const py::object& awaitable);

}  // namespace tricorn
