// write_decoder FOLDER RANKS: a small decoder, split over RANKS ranks, as FOLDER/mp/mp_rank<N>.air,
// and whole as FOLDER/whole.air.
#include <cstdio>
#include <string>

#include "graph/io/model_file.h"
#include "launch/samples/decoder_model.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

Status WriteAll(const std::string& folder, int ranks) {
  const DecoderConfig config = {.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .sequence = 8};
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder + "/mp", FileKind::kData));
  for (int rank = 0; rank < ranks; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(const Model model, BuildDecoder(config, rank, ranks));
    NPUMESH_RETURN_IF_ERROR(SaveAir(model, fmt::format("{}/mp/mp_rank{}.air", folder, rank)));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Model whole, BuildDecoder(config, 0, 1));
  return SaveAir(whole, folder + "/whole.air");
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const npumesh::Result<int64_t> ranks = npumesh::ParseInt(argv[2], 1, 64, "RANKS");
  if (!ranks.ok()) return 2;
  const npumesh::Status status = npumesh::WriteAll(argv[1], static_cast<int>(*ranks));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
