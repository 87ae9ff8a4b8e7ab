// A model as a package on disk, with the inputs of several steps and what a session made of them:
// what `npumesh validate` and `npumesh run --inputs --check` take.
#ifndef NPUMESH_TESTS_MODELS_MODEL_PACKAGE_H_
#define NPUMESH_TESTS_MODELS_MODEL_PACKAGE_H_

#include <string>

#include "tests/models/model_run.h"

namespace npumesh::models {

struct PackagedModel {
  int ranks = 1;
  bool dynamic = false;  // has open dimensions
  BuildRank build;
  // Feeds by rank and step; what a model updates is fed at step 0 only.
  std::function<Feeds(int rank, int step)> feeds;
};

inline constexpr int kPackagedSteps = 3;

// Exports to `folder`/package, by all ranks together, and writes `folder`/inputs and
// `folder`/golden, step_<K>/rank_<R>/<i>.npy each. The golden outputs are a session's own: the
// tests of the model hold them against its reference, this says that a package gives the same bits.
void WritePackage(const PackagedModel& model, const std::string& folder);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_MODEL_PACKAGE_H_
