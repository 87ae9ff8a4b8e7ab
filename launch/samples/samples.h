// Samples: small packages with inputs and goldens to start from, which `npumesh samples` writes.
//
//   FOLDER/                      README.md: what it is and what to type in FOLDER
//   FOLDER/*.c, *.py             programs, if it has some
//   FOLDER/package/              as `npumesh export` writes it; or FOLDER/model.onnx
//   FOLDER/inputs/, golden/      [step_<K>/]rank_<R>/<i>.npy, as `npumesh run` reads them
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_LAUNCH_SAMPLES_SAMPLES_H_
#define NPUMESH_LAUNCH_SAMPLES_SAMPLES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/samples/sample_content.h"
#include "runtime/base/env/env.h"

namespace npumesh {

// A source file that a sample has with it.
struct SampleProgram {
  std::string_view name;
  std::string_view (*text)();
};

struct Sample {
  std::string_view name;
  int ranks = 1;
  int steps = 1;
  std::string_view model;  // below its folder: what `npumesh run` takes
  std::string_view summary;
  std::string_view story;  // of its README: what is in it
  // Of operators that its graph needs, in the working folder; empty: none. The user builds it, so
  // the sample is written only when it is named.
  std::string_view library;
  std::string_view computed;                     // of its README: how the goldens are computed
  std::span<const SampleProgram> programs = {};  // beside its README
  // Of its README: commands after the one that runs and checks it, a line each.
  std::string_view more;
  Result<SampleContent> (*make)();
};

// In the order in which a newcomer tries them.
std::span<const Sample> AllSamples();

// The samples of these names; without names all, but for those that need a library. Error:
// kNotFound with names that look alike.
Result<std::vector<const Sample*>> SamplesNamed(const std::vector<std::string>& names);

// "npumesh launch -n 4 -- run package/ --inputs inputs/ --check golden/", with paths below `folder`
// ("s/decoder_4/"), or empty.
std::string RunCommand(const Sample& sample, const std::string& folder);

// A line each.
std::string SamplesAsText(const std::vector<const Sample*>& samples);

// Writes `sample` to `folder`, which must not exist, and whose parents are created. Errors:
// kInvalidArgument when it exists; kIo; those of DynamoExport.
Status WriteSample(const Sample& sample, const Env& env, const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_SAMPLES_SAMPLES_H_
