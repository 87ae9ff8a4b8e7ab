// write_c_models FOLDER: add.air, y = x + w of float32[2,2]; allreduce.air, y = the sum over all
// ranks of x, int32[4].
#include <cstdio>

#include "collectives/communicator.h"
#include "graph/io/model_file.h"
#include "graph/ir/graph_builder.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

Status Save(GraphBuilder& g, const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const Model model, g.Build());
  return SaveAir(model, path);
}

Status WriteModels(const std::string& folder) {
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kData));
  GraphBuilder add("add");
  const TensorType floats{DataType::kFloat, {2, 2}};
  const Value x = add.Data("x", floats);
  const Value w = add.Data("w", floats);
  add.Output({add.Op("Add", {{"x1", x}, {"x2", w}})});
  NPUMESH_RETURN_IF_ERROR(Save(add, folder + "/add.air"));
  GraphBuilder sum("allreduce");
  const Value y = sum.Data("x", {DataType::kInt32, {4}});
  sum.Output({sum.Op("HcomAllReduce", {{"x", y}},
                     {{"reduction", AttrValue::String("sum")},
                      {"group", AttrValue::String(std::string(kWorldGroup))}})});
  return Save(sum, folder + "/allreduce.air");
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const npumesh::Status status = npumesh::WriteModels(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "write_c_models: %s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
