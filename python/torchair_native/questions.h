// What TorchAir asks of operators, answered by npumesh's registry.
#ifndef NPUMESH_PYTHON_TORCHAIR_NATIVE_QUESTIONS_H_
#define NPUMESH_PYTHON_TORCHAIR_NATIVE_QUESTIONS_H_

#include "python/torchair_native/object.h"

namespace npumesh::torchair {

// get_registered_ir_def(type): ("SUCCESS" or "ERROR", inputs, outputs, attributes), each list of
// pairs (name, kind). Error set.
PyObject* RegisteredIrDef(PyObject* module, PyObject* args);

// check_cann_compat(type, optional inputs, optional attributes): "" when all are known, else which
// are not. Error set.
PyObject* CheckCannCompat(PyObject* module, PyObject* args);

// declare_operator(type, inputs, outputs, attributes), with lists of pairs as above: from now on
// the two functions know an operator that npumesh does not have, so that graphs with it can be
// built and exported; where they run, a stand-in gives zeros (npumesh.missing_operators of
// docs/c_api.md). Beside the vendor's functions. Error set, also for an operator of npumesh.
PyObject* DeclareOperator(PyObject* module, PyObject* args);

// Whether it was called.
bool HasDeclaredOperators();

}  // namespace npumesh::torchair

#endif  // NPUMESH_PYTHON_TORCHAIR_NATIVE_QUESTIONS_H_
