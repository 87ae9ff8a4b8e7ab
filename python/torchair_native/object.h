// Objects of Python in C++, by the stable ABI of Python 3.9.
//
// A function that says "Error set" returns null or false after it has set Python's error. All need
// the GIL unless they say otherwise.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_OBJECT_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_OBJECT_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "npumesh/npumesh.h"

namespace npumesh::torchair {

// Owns one reference, or none.
class Ref {
 public:
  Ref() = default;
  // Takes the reference over.
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref Share(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Releases the GIL while it lives.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { PyEval_RestoreThread(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // Runs `body` with the GIL, on the same thread.
  template <typename Body>
  auto Locked(Body body) {
    PyEval_RestoreThread(state_);
    const auto result = body();
    state_ = PyEval_SaveThread();
    return result;
  }

 private:
  PyThreadState* state_;
};

using Texts = std::map<std::string, std::string>;
using Dims = std::vector<int64_t>;

// Sets RuntimeError, the class of all errors of this module, and returns null.
PyObject* Fail(const std::string& text);

// Sets RuntimeError with `context` and the text of npumesh's last failure on this thread; null.
PyObject* FailOf(const std::string& context);

// A str. Error set.
Ref TextObject(const std::string& text);

// What a str, bytes, an int, a dict of str or a sequence holds. `what` stands in messages. Error
// set: TypeError.
bool ReadText(PyObject* object, const char* what, std::string& text);
bool ReadInt(PyObject* object, const char* what, int64_t& number);
bool ReadTexts(PyObject* object, const char* what, Texts& texts);
bool ReadInts(PyObject* object, const char* what, std::vector<int64_t>& numbers);
bool ReadTextList(PyObject* object, const char* what, std::vector<std::string>& texts);
bool ReadShapes(PyObject* object, const char* what, std::vector<Dims>& shapes);

// The attribute `name` of the module `module`, which is imported. Error set.
Ref Import(const char* module, const char* name);

// sys.modules[name], borrowed; null without an error: it is not imported.
PyObject* ImportedModule(const char* name);

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_OBJECT_H_
