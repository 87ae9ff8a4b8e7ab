#include "python/torchair_native/questions.h"

#include <algorithm>

namespace npumesh::torchair {
namespace {

// The vendor's words, which its own tests compare.
constexpr char kUpgrade[] = "maybe you need upgrade cann version.";
constexpr char kUpgradeAnd[] = "please upgrade cann version.";

// Operators that a program has declared; guarded by the GIL.
using Fields = std::vector<std::pair<std::string, std::string>>;  // name, kind

struct Declared {
  Fields inputs, outputs, attrs;
};

std::map<std::string, Declared>& DeclaredOperators() {
  static std::map<std::string, Declared> operators;
  return operators;
}

const Declared* FindDeclared(const char* type) {
  const auto found = DeclaredOperators().find(type);
  return found == DeclaredOperators().end() ? nullptr : &found->second;
}

Ref FieldsOf(const Fields& fields) {
  Ref list(PyList_New(0));
  for (const auto& [name, kind] : fields) {
    const Ref pair(Py_BuildValue("(ss)", name.c_str(), kind.c_str()));
    if (!list || !pair || PyList_Append(list.get(), pair.get()) != 0) return Ref();
  }
  return list;
}

// "a, b": those of `names` that are no field.
std::string UnknownOf(const Fields& fields, const std::vector<std::string>& names) {
  std::string unknown;
  for (const std::string& name : names) {
    const bool found = std::any_of(fields.begin(), fields.end(),
                                   [&](const auto& field) { return field.first == name; });
    if (!found) unknown += (unknown.empty() ? "" : ", ") + name;
  }
  return unknown;
}

bool ReadFields(PyObject* object, const char* what, Fields& fields) {
  const Ref list(PySequence_List(object));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
    std::vector<std::string> pair;
    if (!ReadTextList(PyList_GetItem(list.get(), i), what, pair)) return false;
    if (pair.size() != 2) {
      PyErr_Format(PyExc_TypeError, "%s: expected pairs of a name and a kind", what);
      return false;
    }
    fields.emplace_back(pair[0], pair[1]);
  }
  return true;
}

Ref FieldsOf(const char* type, npumesh_op_part part, size_t count) {
  Ref fields(PyList_New(0));
  for (size_t i = 0; fields && i < count; ++i) {
    npumesh_op_field field{};
    if (npumesh_get_op_field(type, part, i, &field) != NPUMESH_OK) {
      FailOf(type);
      return Ref();
    }
    const Ref pair(Py_BuildValue("(ss)", field.name, field.kind));
    if (!pair || PyList_Append(fields.get(), pair.get()) != 0) return Ref();
  }
  return fields;
}

// Those of `names` that are no field of this part, as "a, b".
std::string UnknownOf(const char* type, npumesh_op_part part, size_t count,
                      const std::vector<std::string>& names) {
  std::string unknown;
  for (const std::string& name : names) {
    bool found = false;
    for (size_t i = 0; i < count && !found; ++i) {
      npumesh_op_field field{};
      found = npumesh_get_op_field(type, part, i, &field) == NPUMESH_OK && name == field.name;
    }
    if (!found) unknown += (unknown.empty() ? "" : ", ") + name;
  }
  return unknown;
}

}  // namespace

PyObject* RegisteredIrDef(PyObject*, PyObject* args) {
  const char* type = nullptr;
  if (PyArg_ParseTuple(args, "s", &type) == 0) return nullptr;
  if (const Declared* const declared = FindDeclared(type)) {
    Ref inputs = FieldsOf(declared->inputs), outputs = FieldsOf(declared->outputs),
        attrs = FieldsOf(declared->attrs);
    if (!inputs || !outputs || !attrs) return nullptr;
    return Py_BuildValue("(sNNN)", "SUCCESS", inputs.release(), outputs.release(), attrs.release());
  }
  npumesh_op op{};
  const bool known = npumesh_get_op(type, &op) == NPUMESH_OK;
  Ref inputs = FieldsOf(type, NPUMESH_OP_INPUT, op.inputs);
  Ref outputs = FieldsOf(type, NPUMESH_OP_OUTPUT, op.outputs);
  Ref attrs = FieldsOf(type, NPUMESH_OP_ATTR, op.attrs);
  if (!inputs || !outputs || !attrs) return nullptr;
  return Py_BuildValue("(sNNN)", known ? "SUCCESS" : "ERROR", inputs.release(), outputs.release(),
                       attrs.release());
}

PyObject* CheckCannCompat(PyObject*, PyObject* args) {
  const char* type = nullptr;
  PyObject *inputs = nullptr, *attrs = nullptr;
  if (PyArg_ParseTuple(args, "sOO", &type, &inputs, &attrs) == 0) return nullptr;
  std::vector<std::string> input_names, attr_names;
  if (!ReadTextList(inputs, "optional inputs", input_names) ||
      !ReadTextList(attrs, "optional attributes", attr_names)) {
    return nullptr;
  }
  const Declared* const declared = FindDeclared(type);
  npumesh_op op{};
  if (declared == nullptr && npumesh_get_op(type, &op) != NPUMESH_OK) {
    return TextObject(std::string("OperatorFactory find optype ") + type + " failed, " + kUpgrade)
        .release();
  }
  const std::string no_inputs = declared != nullptr
                                    ? UnknownOf(declared->inputs, input_names)
                                    : UnknownOf(type, NPUMESH_OP_INPUT, op.inputs, input_names);
  const std::string no_attrs = declared != nullptr
                                   ? UnknownOf(declared->attrs, attr_names)
                                   : UnknownOf(type, NPUMESH_OP_ATTR, op.attrs, attr_names);
  if (no_inputs.empty() && no_attrs.empty()) return TextObject("").release();
  return TextObject(std::string("optype ") + type + " unsupported optional input [" + no_inputs +
                    "], optional attr [" + no_attrs + "], " + kUpgradeAnd)
      .release();
}

bool HasDeclaredOperators() {
  return !DeclaredOperators().empty();
}

PyObject* DeclareOperator(PyObject*, PyObject* args) {
  const char* type = nullptr;
  PyObject *inputs = nullptr, *outputs = nullptr, *attrs = nullptr;
  Declared declared;
  if (PyArg_ParseTuple(args, "sOOO", &type, &inputs, &outputs, &attrs) == 0 ||
      !ReadFields(inputs, "inputs", declared.inputs) ||
      !ReadFields(outputs, "outputs", declared.outputs) ||
      !ReadFields(attrs, "attrs", declared.attrs)) {
    return nullptr;
  }
  npumesh_op op{};
  if (npumesh_get_op(type, &op) == NPUMESH_OK) {
    return Fail(std::string("declare_operator: npumesh has the operator ") + type);
  }
  DeclaredOperators()[type] = std::move(declared);
  Py_RETURN_NONE;
}

}  // namespace npumesh::torchair
