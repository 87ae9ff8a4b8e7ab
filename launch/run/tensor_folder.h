// TensorFolder: where the tensors of ranks and steps lie in a folder of .npy files.
//
//   DIR/rank_<R>/<i>.npy             one set
//   DIR/step_<K>/rank_<R>/<i>.npy    one set a step
//   DIR/<i>.npy                      the same for a run of one rank
//
// i is the data index of an input or the number of an output.
#ifndef NPUMESH_LAUNCH_RUN_TENSOR_FOLDER_H_
#define NPUMESH_LAUNCH_RUN_TENSOR_FOLDER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graph/ir/tensor.h"
#include "runtime/base/status.h"

namespace npumesh {

class TensorFolder {
 public:
  // For writing: always rank_<R>; step_<K> above it when there are several steps.
  // Makes `folder`. Errors: those of MakeFolders, which refuses a symbolic link.
  static Result<TensorFolder> ToWrite(std::string folder, int rank, uint64_t steps);
  // For reading: takes the layout that is there. Error: kNotFound names the folder.
  static Result<TensorFolder> ToRead(const std::string& folder, int rank, int size);

  // True when every step has separate tensors.
  bool has_steps() const { return has_steps_; }
  std::string File(uint64_t step, int64_t index) const;

  // The .npy files of this rank, of the first step, whose names are no number of `indexes`; in
  // order.
  std::vector<std::string> OtherFiles(const std::set<int64_t>& indexes) const;

  // Errors name the file (graph/io/npy.h).
  Result<Tensor> Read(uint64_t step, int64_t index) const;
  Status Write(uint64_t step, int64_t index, const Tensor& tensor) const;

 private:
  std::string folder_;
  std::string rank_folder_;  // "rank_2/", or empty
  bool has_steps_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_TENSOR_FOLDER_H_
