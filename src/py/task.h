// Starts a coroutine in an asyncio.Task of its own and runs the first step at once, in a context of its own.
// On Python 3.12 and newer that is eager_start. On 3.11 the Task's own loop.call_soon(step) is caught and served here,
// which saves a round of the event loop; in every other respect the Task is an ordinary one.
#pragma once

#include "py/border.h"

namespace tricorn {

PyTypeObject* make_call_soon_type();

// One per event loop. On 3.11 the loop's call_soon is ours while this lives: it passes on what it does not catch.
class TaskStarter {
 public:
  explicit TaskStarter(py::object event_loop);
  ~TaskStarter();
  TaskStarter(const TaskStarter&) = delete;
  TaskStarter& operator=(const TaskStarter&) = delete;

  // Only where no task is running. The Task (done, perhaps), or null with an exception set.
  py::object start(PyObject* coroutine) const;

 private:
  py::object event_loop_;
  py::object keywords_;   // names of the Task's keyword arguments
  py::object last_;       // value of the second one
  py::object call_soon_;  // 3.11: stands in for the loop's; null if the loop takes none
};

}  // namespace tricorn
