// The Python border: what every file of src/py shares. Names are interned once, types are made once, and objects that
// C++ held while the GIL was released are given back here.
// One Border per module; it is created at import and lives as long as the interpreter.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/outbox.h"

namespace tricorn {

namespace py = pybind11;

inline py::object steal(PyObject* object) { return py::reinterpret_steal<py::object>(object); }
inline py::object borrow(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }
inline std::string_view view_of(PyObject* bytes) {
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}
// str(object) in UTF-8, whatever it holds and whatever its __str__ does. Leaves no exception set.
std::string describe(PyObject* object);
inline py::object bytes_of(std::string_view text) {
  return steal(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

// Python objects that flush has finished with. Flush runs on the loop thread without the GIL and may not touch
// reference counts; dispatch, on the same thread, empties this.
class Graveyard {
 public:
  void bury(PyObject* object) { dead_.push_back(object); }
  bool empty() const { return dead_.empty(); }
  void clear();  // with the GIL

 private:
  std::vector<PyObject*> dead_;
};

// Keeps a `bytes` object alive while the outbox borrows its memory.
class BytesBlock final : public Block {
 public:
  BytesBlock(Graveyard& graveyard, PyObject* bytes) : graveyard_(graveyard), bytes_(Py_NewRef(bytes)) {}
  ~BytesBlock() override { graveyard_.bury(bytes_); }

 private:
  Graveyard& graveyard_;
  PyObject* bytes_;
};

// An interned string, so that dictionary look-ups compare pointers.
class Name {
 public:
  Name(const char* text) : object_(steal(PyUnicode_InternFromString(text))) {}
  PyObject* ptr() const { return object_.ptr(); }

 private:
  py::object object_;
};

struct Names {
  // keys of scopes and messages
  Name type{"type"}, asgi{"asgi"}, version{"version"}, spec_version{"spec_version"}, http_version{"http_version"};
  Name server{"server"}, client{"client"}, scheme{"scheme"}, method{"method"}, root_path{"root_path"}, path{"path"};
  Name raw_path{"raw_path"}, query_string{"query_string"}, headers{"headers"}, state{"state"};
  Name extensions{"extensions"}, tls{"tls"}, body{"body"}, more_body{"more_body"}, status{"status"};
  Name trailers{"trailers"}, more_trailers{"more_trailers"}, links{"links"}, file{"file"}, offset{"offset"};
  Name count{"count"};
  // values
  Name http{"http"}, https{"https"};
  Name http_request{"http.request"}, http_disconnect{"http.disconnect"};
  Name response_start{"http.response.start"}, response_body{"http.response.body"};
  Name response_trailers{"http.response.trailers"}, early_hint{"http.response.early_hint"};
  Name pathsend{"http.response.pathsend"}, zerocopysend{"http.response.zerocopysend"};
  // names of methods and keyword arguments
  Name call_soon{"call_soon"}, context{"context"}, loop{"loop"}, name{"name"}, eager_start{"eager_start"},
      throw_{"throw"};
  Name close{"close"}, cancel{"cancel"}, expire{"expire"};
  // of connectrpc's RequestContext; None until the handler asks for them
  Name response_headers_{"_response_headers"}, response_trailers_{"_response_trailers"};
};

struct Border {
  Names names;
  PyTypeObject* awaitable_type;
  PyTypeObject* waiter_type;
  PyTypeObject* cycle_type;
  PyTypeObject* call_soon_type;
  PyTypeObject* rpc_call_type;
  py::object task_type;            // asyncio.Task
  py::object cancelled_error;      // asyncio.CancelledError
  py::object invalid_state_error;  // asyncio.InvalidStateError
  py::object client_disconnected;  // tricorn.ClientDisconnected, an OSError

  explicit Border(py::module_& module);
};

// The one Border of this interpreter; set by the module's initialisation.
Border& border();

// The exception being raised now, normalised and with its traceback; clears it.
py::object take_exception();

}  // namespace tricorn
