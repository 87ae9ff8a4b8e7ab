// One case of ONNX's own suite: a folder with model.onnx and test_data_set_N/{input,output}_I.pb.
#ifndef NPUMESH_TESTS_ONNX_ONNX_CASE_H_
#define NPUMESH_TESTS_ONNX_ONNX_CASE_H_

#include <string>

#include "runtime/base/status.h"

namespace npumesh {

// How far outputs may be from what is expected; the suite's own bounds.
struct CaseBounds {
  double rtol = 1e-3;
  double atol = 1e-7;
};

// Imports the model, runs it once for each data set on one rank, and compares what comes out. The
// error says where it went wrong: in the import, in the run, or in which element of which output.
Status RunOnnxCase(const std::string& folder, const CaseBounds& bounds);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_ONNX_ONNX_CASE_H_
