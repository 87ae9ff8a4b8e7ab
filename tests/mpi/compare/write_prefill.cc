// write_prefill FOLDER RANKS DTYPE: a Llama-like prefill as TorchAir writes it, in DTYPE (float32
// or float16), split over RANKS ranks, as FOLDER/mp/mp_rank<N>.air, and whole as FOLDER/whole.air.
#include <cstdio>
#include <string>
#include <string_view>

#include "graph/io/model_file.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"
#include "tests/models/llama_prefill.h"

namespace npumesh::models {
namespace {

Status WriteAll(const std::string& folder, int ranks, DataType dtype) {
  PrefillConfig config;
  config.dtype = dtype;
  const Parameters weights = PrefillWeights(config, 31);
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder + "/mp", FileKind::kData));
  for (int rank = 0; rank < ranks; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(const Model model, BuildPrefill(config, weights, rank, ranks));
    NPUMESH_RETURN_IF_ERROR(SaveAir(model, fmt::format("{}/mp/mp_rank{}.air", folder, rank)));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Model whole, BuildPrefill(config, weights, 0, 1));
  return SaveAir(whole, folder + "/whole.air");
}

}  // namespace
}  // namespace npumesh::models

int main(int argc, char** argv) {
  using npumesh::DataType;
  if (argc != 4) return 2;
  const npumesh::Result<int64_t> ranks = npumesh::ParseInt(argv[2], 1, 64, "RANKS");
  if (!ranks.ok()) return 2;
  const bool half = std::string_view(argv[3]) == "float16";
  const npumesh::Status status = npumesh::models::WriteAll(
      argv[1], static_cast<int>(*ranks), half ? DataType::kFloat16 : DataType::kFloat);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
