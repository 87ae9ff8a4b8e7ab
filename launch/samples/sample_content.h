// What the writer of a sample makes: graphs, inputs, and goldens that a plain computation in double
// precision gives.
#ifndef NPUMESH_LAUNCH_SAMPLES_SAMPLE_CONTENT_H_
#define NPUMESH_LAUNCH_SAMPLES_SAMPLE_CONTENT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// The files of one rank and step: by data index of the input, or by number of the output.
using SampleTensors = std::map<int64_t, Tensor>;

struct SampleStep {
  std::vector<SampleTensors> inputs;   // by rank; an input that is missing keeps what it holds
  std::vector<SampleTensors> goldens;  // by rank
};

struct SampleContent {
  std::vector<Model> models;  // by rank
  std::string onnx;           // bytes of an ONNX model in place of `models`
  std::vector<SampleStep> steps;
};

// The writers, one file each. Every call makes the same bits.
Result<SampleContent> MakeOneCard();
Result<SampleContent> MakeDynamic();
Result<SampleContent> MakeDecoder(int ranks);
Result<SampleContent> MakeExperts();
Result<SampleContent> MakeTraining();
Result<SampleContent> MakeOnnx();
Result<SampleContent> MakeOwnOperator();

// The texts of examples/execute_om.c and .py.
std::string_view ExecuteOmInC();
std::string_view ExecuteOmInPython();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SAMPLES_SAMPLE_CONTENT_H_
