// A program outside of npumesh: builds a graph of one addition and says what it holds.
#include <cstdio>
#include <string>

#include "graph/ir/graph_builder.h"
#include "runtime/base/data_type.h"

int main() {
  using npumesh::DataType;
  npumesh::GraphBuilder g("consumer");
  const npumesh::Value x = g.Data("x", {DataType::kFloat16, {2, 4}});
  g.Output({g.Op("Add", {{"x1", x}, {"x2", x}})});
  const npumesh::Result<npumesh::Model> model = g.Build();
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", std::string(model.status().message()).c_str());
    return 1;
  }
  std::printf("npumesh consumer: a graph over %d-bit elements\n",
              npumesh::BitsOf(DataType::kFloat16));
  return 0;
}
