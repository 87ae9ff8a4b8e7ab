// The decoder of launch/samples/decoder_model.h as ONNX models, with one layer and float32.
#ifndef NPUMESH_TESTS_BENCH_DECODER_ONNX_BLOCK_H_
#define NPUMESH_TESTS_BENCH_DECODER_ONNX_BLOCK_H_

#include "launch/samples/decoder_model.h"
#include "tests/bench/decoder/onnx_writer.h"

namespace npumesh {

// In the operators of ONNX's operator set 17 alone. `model` is what BuildDecoder makes of `config`
// for one rank; all constants come from it. Error: kNotFound, a constant is missing.
Result<OnnxModel> PlainOnnxBlock(const DecoderConfig& config, const Model& model);
// The same in ONNX Runtime's own operators, where each does the work of several.
Result<OnnxModel> FusedOnnxBlock(const DecoderConfig& config, const Model& model);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_DECODER_ONNX_BLOCK_H_
