// send(message): one function for each type of ASGI message, in the order in which they may come.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/text.h"
#include "py/asgi.h"
#include "py/fields.h"

namespace tricorn {
namespace {

Outcome raise(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  return Outcome::error;
}

// message[key]; null without an exception when there is none.
py::object get(PyObject* message, const Name& key) {
  if (PyDict_Check(message)) return borrow(PyDict_GetItemWithError(message, key.ptr()));
  py::object value = steal(PyObject_GetItem(message, key.ptr()));
  if (!value && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return value;
}

py::object get_required(PyObject* message, const Name& key) {
  py::object value = get(message, key);
  if (!value && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key.ptr());
  return value;
}

// -1 with an exception set, else 0 or 1.
int get_flag(PyObject* message, const Name& key) {
  const py::object value = get(message, key);
  if (!value) return PyErr_Occurred() ? -1 : 0;
  return PyObject_IsTrue(value.ptr());
}

bool is(PyObject* type, const Name& name) {
  return type == name.ptr() || (PyUnicode_Check(type) && PyUnicode_Compare(type, name.ptr()) == 0);
}

Outcome unexpected(const char* expected, PyObject* type) {
  return raise(PyExc_RuntimeError,
               std::string{"Expected ASGI message '"} + expected + "', but got '" + describe(type) + "'.");
}

Outcome fault(const Error& error) {
  switch (error.fault) {
    case Fault::gone: PyErr_SetString(border().client_disconnected.ptr(), error.what.c_str()); break;
    case Fault::os: PyErr_SetString(PyExc_OSError, error.what.c_str()); break;
    default: PyErr_SetString(PyExc_RuntimeError, error.what.c_str());
  }
  return Outcome::error;
}

// message["headers"]: an iterable of pairs of bytes; missing means none.
bool get_headers(PyObject* message, Headers& headers) {
  const py::object given = get(message, border().names.headers);
  if (!given) return !PyErr_Occurred();
  return add_fields(headers, given.ptr());
}

bool get_size(PyObject* message, const Name& key, std::optional<std::uint64_t>& size) {
  const py::object value = get(message, key);
  if (!value) return !PyErr_Occurred();
  if (value.is_none()) return true;
  const unsigned long long number = PyLong_AsUnsignedLongLong(value.ptr());
  if (number == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return false;
  size = number;
  return true;
}

// A file that can be sent by offset, owned, or null with an OSError set.
Ref<File> own_file(int fd) {
  struct stat status{};
  if (fd >= 0 && ::fstat(fd, &status) == 0) {
    if (S_ISREG(status.st_mode)) return make_ref<File>(fd, static_cast<std::uint64_t>(status.st_size));
    errno = S_ISDIR(status.st_mode) ? EISDIR : ESPIPE;
  }
  PyErr_SetFromErrno(PyExc_OSError);
  if (fd >= 0) ::close(fd);
  return {};
}

}  // namespace

bool takes_trailers(const RequestHead& head) {
  for (Field field : head.headers)
    if (field.name == "te" && list_has(field.value, "trailers")) return true;
  return false;
}

Outcome Cycle::send(PyObject* message) {
  const py::object type = get_required(message, border().names.type);
  if (!type) return Outcome::error;
  if (!exchange_ || exchange_->send_state() == Send::done)  // then the wire may well be gone, without a loss
    return raise(PyExc_RuntimeError,
                 "Unexpected ASGI message '" + describe(type.ptr()) + "' sent, after response already completed.");
  if (exchange_->gone()) return fault({Fault::gone, "the peer is gone"});
  const Outcome outcome =
      exchange_->send_state() == Send::idle ? before_start(type.ptr(), message) : before_end(type.ptr(), message);
  app_->bridge_.touched();
  return outcome;
}

Outcome Cycle::resume_send() {
  if (!exchange_ || !exchange_->gone()) return Outcome::done;
  return fault({Fault::gone, "the peer is gone"});
}

Outcome Cycle::before_start(PyObject* type, PyObject* message) {
  const Names& names = border().names;
  if (is(type, names.response_start)) return response_start(message);
  if (is(type, names.early_hint)) return early_hint(message);
  return unexpected("http.response.start", type);
}

Outcome Cycle::before_end(PyObject* type, PyObject* message) {
  const Names& names = border().names;
  if (body_complete_)
    return is(type, names.response_trailers) ? response_trailers(message) : unexpected("http.response.trailers", type);
  if (is(type, names.response_body)) return response_body(message);
  if (is(type, names.pathsend)) return pathsend(message);
  if (is(type, names.zerocopysend)) return zerocopysend(message);
  return unexpected("http.response.body", type);
}

Outcome Cycle::response_start(PyObject* message) {
  const Names& names = border().names;
  const py::object status = get_required(message, names.status);
  if (!status) return Outcome::error;
  const long code = PyLong_AsLong(status.ptr());
  if (code == -1 && PyErr_Occurred()) return Outcome::error;
  if (code < 200 || code > 599) return raise(PyExc_ValueError, "Invalid HTTP status code: " + std::to_string(code));
  ResponseHead head{.status = static_cast<int>(code), .headers = {}};
  if (!get_headers(message, head.headers)) return Outcome::error;
  const int trailers = get_flag(message, names.trailers);
  if (trailers < 0) return Outcome::error;
  trailers_due_ = trailers == 1;
  if (auto ok = exchange_->respond(std::move(head)); !ok) return fault(ok.error());
  if (app_->bridge_.hooks.access && scope_)
    app_->bridge_.access(steal(std::exchange(scope_, nullptr)).ptr(), static_cast<int>(code));
  return Outcome::done;
}

// ASGI Early Hint: {"links": [bytes, ...]} becomes 103 with one link field each (RFC 8297).
Outcome Cycle::early_hint(PyObject* message) {
  const py::object links = get_required(message, border().names.links);
  if (!links) return Outcome::error;
  const py::object list = steal(PySequence_Fast(links.ptr(), "links must be an iterable of bytes"));
  if (!list) return Outcome::error;
  const py::object name = bytes_of("link");
  Headers headers;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.ptr()); ++i)
    if (!add_field(headers, name.ptr(), PySequence_Fast_GET_ITEM(list.ptr(), i))) return Outcome::error;
  if (auto ok = exchange_->inform(103, std::move(headers)); !ok) return fault(ok.error());
  return Outcome::done;
}

Outcome Cycle::response_body(PyObject* message) {
  const Names& names = border().names;
  const py::object body = get(message, names.body);
  if (!body && PyErr_Occurred()) return Outcome::error;
  const int more = get_flag(message, names.more_body);
  if (more < 0) return Outcome::error;
  if (!body) return written({}, more == 1);
  if (PyBytes_CheckExact(body.ptr())) {  // immutable: large ones are borrowed
    const std::string_view octets = view_of(body.ptr());
    if (octets.size() < Outbox::k_borrow) return written(exchange_->write(octets), more == 1);
    return written(exchange_->write(octets, Ref<Block>{new BytesBlock{app_->bridge_.graveyard, body.ptr()}}),
                   more == 1);
  }
  const Octets octets{body.ptr()};
  if (!octets) return Outcome::error;
  return written(exchange_->write(octets.view()), more == 1);
}

// ASGI Path Send: the whole file is the body.
Outcome Cycle::pathsend(PyObject* message) {
  const py::object path = get_required(message, border().names.path);
  PyObject* encoded = nullptr;
  if (!path || !PyUnicode_FSConverter(path.ptr(), &encoded)) return Outcome::error;
  const py::object owned = steal(encoded);
  const int fd = ::open(PyBytes_AS_STRING(encoded), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO would wait
  if (fd < 0) {
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.ptr());
    return Outcome::error;
  }
  const Ref<File> file = own_file(fd);
  if (!file) return Outcome::error;
  return written(exchange_->write_file(file, 0, file->size()), false);
}

// ASGI Zero Copy Send: a range of an open file; without an offset from where the file stands, which then moves on.
Outcome Cycle::zerocopysend(PyObject* message) {
  const Names& names = border().names;
  const py::object file = get_required(message, names.file);
  if (!file) return Outcome::error;
  const int given = PyObject_AsFileDescriptor(file.ptr());
  if (given < 0) return Outcome::error;
  std::optional<std::uint64_t> offset, count;
  const int more = get_flag(message, names.more_body);
  if (more < 0 || !get_size(message, names.offset, offset) || !get_size(message, names.count, count))
    return Outcome::error;
  if ((::fcntl(given, F_GETFL) & O_ACCMODE) == O_WRONLY) return raise(PyExc_ValueError, "file is not open for reading");
  if (offset && *offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    return raise(PyExc_ValueError, "offset is out of range");
  const Ref<File> owned = own_file(::fcntl(given, F_DUPFD_CLOEXEC, 0));
  if (!owned) return Outcome::error;
  const std::uint64_t start = offset ? *offset : static_cast<std::uint64_t>(::lseek(given, 0, SEEK_CUR));
  const std::uint64_t there = owned->size() > start ? owned->size() - start : 0;
  const std::uint64_t size = std::min(count.value_or(there), there);
  if (!offset) ::lseek(given, static_cast<off_t>(start + size), SEEK_SET);
  return written(exchange_->write_file(owned, start, size), more == 1);
}

Outcome Cycle::written(Result<void> result, bool more) {
  if (!result) return fault(result.error());
  if (!more) {
    body_complete_ = true;
    if (!trailers_due_) return finish();
  }
  return exchange_->writable() ? Outcome::done : Outcome::wait;
}

Outcome Cycle::response_trailers(PyObject* message) {
  if (!get_headers(message, trailers_)) return Outcome::error;
  const int more = get_flag(message, border().names.more_trailers);
  if (more < 0) return Outcome::error;
  if (more) return Outcome::done;
  if (!takes_trailers(exchange_->request())) trailers_.clear();
  return finish();
}

Outcome Cycle::finish() {
  if (auto ok = exchange_->finish(std::move(trailers_)); !ok) return fault(ok.error());
  if (!receivers_.empty()) exchange_->signal(Event::body);  // they get http.disconnect: the response is complete
  return Outcome::done;
}

}  // namespace tricorn
