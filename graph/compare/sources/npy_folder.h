// NpyFolder: a folder of .npy files as a source of tensors: what `npumesh dump convert` wrote, or a
// golden folder of other origin.
//
// The names that msaccucmp accepts, `i` counting the tensors of one side from 0:
//   {op type}.{op name}.{task}[.{stream}].{timestamp}.{input|output}.{i}.npy   converted dumps
//   {op name}.{i}.{timestamp}.npy                                             goldens: outputs
//   {op name}.{input|output}.{i}.npy, {op name}.{i}.npy                        the same, by hand
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_NPY_FOLDER_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_NPY_FOLDER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "graph/compare/sources/tensor_source.h"

namespace npumesh {

struct NpyName {
  std::string type;  // empty: the name does not say
  std::string key;
  Side side = Side::kOutput;
  int index = 0;
  uint64_t timestamp = 0;  // 0: the name does not say
  uint64_t task = 0;

  bool operator==(const NpyName&) const = default;
};

// nullopt for a name of no known form.
std::optional<NpyName> ParseNpyName(std::string_view file_name);

// Takes the names in `folder`; files of other names are ignored. Of several files for one tensor
// the one with the latest timestamp counts. Errors: kNotFound when the folder cannot be read or
// holds no .npy file of these names.
Result<std::unique_ptr<TensorSource>> OpenNpyFolder(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_NPY_FOLDER_H_
