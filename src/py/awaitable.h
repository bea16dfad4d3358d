// What receive() and send(message) return: an awaitable that does its work at the first step and, most of the time,
// ends there without suspending. It counts as a coroutine, so that asyncio.create_task(receive()) works.
#pragma once

#include "py/border.h"

namespace tricorn {

struct CycleObject;

PyTypeObject* make_awaitable_type();
// `message` is null for receive(). New reference, or null with an exception set.
PyObject* new_awaitable(CycleObject* cycle, PyObject* message);

}  // namespace tricorn
