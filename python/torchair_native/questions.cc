#include "python/torchair_native/questions.h"

#include <algorithm>

namespace npumesh::torchair {
namespace {

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
  npumesh_op op{};
  if (npumesh_get_op(type, &op) != NPUMESH_OK) {
    return TextObject(std::string("OperatorFactory find optype ") + type +
                      " failed: " + npumesh_last_error())
        .release();
  }
  const std::string no_inputs = UnknownOf(type, NPUMESH_OP_INPUT, op.inputs, input_names);
  const std::string no_attrs = UnknownOf(type, NPUMESH_OP_ATTR, op.attrs, attr_names);
  if (no_inputs.empty() && no_attrs.empty()) return TextObject("").release();
  return TextObject(std::string("optype ") + type + " unsupported optional input [" + no_inputs +
                    "], optional attr [" + no_attrs + "]")
      .release();
}

}  // namespace npumesh::torchair
