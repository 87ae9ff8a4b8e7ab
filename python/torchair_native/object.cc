#include "python/torchair_native/object.h"

namespace npumesh::torchair {
namespace {

// Calls `take` with each item of an iterable. Error set.
template <typename Take>
bool ForEach(PyObject* object, Take take) {
  const Ref iterator(PyObject_GetIter(object));
  if (!iterator) return false;
  while (const Ref item{PyIter_Next(iterator.get())}) {
    if (!take(item.get())) return false;
  }
  return PyErr_Occurred() == nullptr;
}

bool WrongType(const char* what, const char* expected, PyObject* seen) {
  const Ref type(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(seen)), "__name__"));
  if (type) PyErr_Format(PyExc_TypeError, "%s: expected %s, seen %S", what, expected, type.get());
  return false;
}

}  // namespace

PyObject* Fail(const std::string& text) {
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
  return nullptr;
}

PyObject* FailOf(const std::string& context) {
  return Fail(context + ": " + npumesh_last_error());
}

Ref TextObject(const std::string& text) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  return Ref(PyUnicode_DecodeUTF8(text.data(), size, "replace"));
}

bool ReadText(PyObject* object, const char* what, std::string& text) {
  if (!PyUnicode_Check(object)) return WrongType(what, "a str", object);
  const Ref bytes(PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"));
  if (!bytes) return false;
  text.assign(PyBytes_AsString(bytes.get()), static_cast<size_t>(PyBytes_Size(bytes.get())));
  return true;
}

bool ReadInt(PyObject* object, const char* what, int64_t& number) {
  if (!PyLong_Check(object)) return WrongType(what, "an int", object);
  number = PyLong_AsLongLong(object);
  return number != -1 || PyErr_Occurred() == nullptr;
}

bool ReadTexts(PyObject* object, const char* what, Texts& texts) {
  if (!PyDict_Check(object)) return WrongType(what, "a dict of str", object);
  Py_ssize_t at = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(object, &at, &key, &value) != 0) {
    std::string name;
    if (!ReadText(key, what, name) || !ReadText(value, what, texts[name])) return false;
  }
  return true;
}

bool ReadInts(PyObject* object, const char* what, std::vector<int64_t>& numbers) {
  return ForEach(object, [&](PyObject* item) {
    int64_t number = 0;
    if (!ReadInt(item, what, number)) return false;
    numbers.push_back(number);
    return true;
  });
}

bool ReadTextList(PyObject* object, const char* what, std::vector<std::string>& texts) {
  return ForEach(object, [&](PyObject* item) {
    std::string text;
    if (!ReadText(item, what, text)) return false;
    texts.push_back(std::move(text));
    return true;
  });
}

bool ReadShapes(PyObject* object, const char* what, std::vector<Dims>& shapes) {
  return ForEach(object, [&](PyObject* item) {
    Dims dims;
    if (!ReadInts(item, what, dims)) return false;
    shapes.push_back(std::move(dims));
    return true;
  });
}

Ref Import(const char* module, const char* name) {
  const Ref imported(PyImport_ImportModule(module));
  return imported ? Ref(PyObject_GetAttrString(imported.get(), name)) : Ref();
}

PyObject* ImportedModule(const char* name) {
  PyObject* const modules = PyImport_GetModuleDict();
  PyObject* const found = modules == nullptr ? nullptr : PyDict_GetItemString(modules, name);
  return found == Py_None ? nullptr : found;
}

}  // namespace npumesh::torchair
