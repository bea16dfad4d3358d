// What a suspended receive() or send() waits on: the smallest object that asyncio.Task accepts as a future.
// Unlike asyncio.Future it wakes its task at once when dispatch resolves it, not one loop iteration later.
#pragma once

#include "py/border.h"

namespace tricorn {

PyTypeObject* make_waiter_type();

// A pending waiter (new reference), already marked as being yielded to a Task. Null with an exception set.
PyObject* new_waiter(PyObject* event_loop);
bool is_pending(PyObject* waiter);
// Wakes the task now. Only where no task is running: in dispatch. A cancelled waiter is left alone.
void resolve_now(PyObject* waiter);
// Wakes the task in the next iteration of the event loop; from anywhere on the loop thread.
void resolve_soon(PyObject* waiter);

}  // namespace tricorn
