// Runs many ONNX models in one process, for generators that ask another program what is right.
//
// A request is a number of parts: how to answer, a model, and a TensorProto for each input of it
// (of those without an initialiser, in order). An answer is a number of parts: "ok" and what was
// asked for, or "error" and one text. Numbers are uint32 of this machine; a part is its number of
// bytes, and they.
#ifndef NPUMESH_TESTS_ONNX_ONNX_SERVER_H_
#define NPUMESH_TESTS_ONNX_ONNX_SERVER_H_

#include <cstdio>

#include "runtime/base/status.h"

namespace npumesh {

// Answers until `in` ends. How to answer: "run": the outputs as TensorProtos; "back": the model as
// it is written back as ONNX; "import": nothing.
Status ServeOnnx(std::FILE* in, std::FILE* out);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_ONNX_ONNX_SERVER_H_
