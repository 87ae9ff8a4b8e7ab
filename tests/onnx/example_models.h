// Small ONNX models, as bytes of files, which together use every kind of field that the reader
// knows.
#ifndef NPUMESH_TESTS_ONNX_EXAMPLE_MODELS_H_
#define NPUMESH_TESTS_ONNX_EXAMPLE_MODELS_H_

#include <string>
#include <vector>

namespace npumesh::testing {

// Every one can be read and imported: a convolution, sizes that values decide, and one with an If,
// a function and numbers in each of the typed fields.
std::vector<std::string> ExampleOnnxModels();

// One that can be read only: sequences, optionals, strings, attributes of all kinds.
std::string OnnxModelOfAllFields();

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_ONNX_EXAMPLE_MODELS_H_
