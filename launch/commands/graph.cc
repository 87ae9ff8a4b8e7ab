// `npumesh graph`: what a model file holds, as text and as a picture.
#include <cstdio>

#include "graph/io/model_file.h"
#include "graph/ops/op_library.h"
#include "launch/commands/command.h"
#include "launch/run/model_choice.h"
#include "launch/view/collective_sizes.h"
#include "launch/view/graph_facts.h"
#include "launch/view/graph_picture.h"
#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

struct GraphOptions {
  std::string file;
  std::string dot;  // empty: not written
  std::string svg;  // empty: not written
  std::vector<std::string> op_libraries;
};

Status ShowGraph(const GraphOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(options.op_libraries));
  NPUMESH_ASSIGN_OR_RETURN(const Model model, LoadModel(options.file));
  NPUMESH_ASSIGN_OR_RETURN(const GroupTable table, ReadGroupTable(FolderOf(options.file)));
  const std::string text = ToText(Examine(
      model, *registry, CollectiveInputs(model, *registry, table, RanksOfExport(options.file))));
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (options.dot.empty() && options.svg.empty()) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const Drawing drawing, LayOut(model.graph, *registry));
  if (!options.dot.empty()) {
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(options.dot, ToDot(drawing, model.graph.name()), FileKind::kData));
  }
  if (options.svg.empty()) return Status();
  return WriteFile(options.svg, ToSvg(drawing, model.graph.name()), FileKind::kData);
}

}  // namespace

void AddGraph(CLI::App& app, Action& action) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* graph = app.add_subcommand("graph", "Show what a model file holds");
  graph->footer("Example:\n  npumesh graph mp/mp_rank0.air --svg graph.svg");
  graph->add_option("file", options->file, "An .air, .pbtxt or ge_proto*.txt file")->required();
  AddOpLibraryOption(*graph, options->op_libraries);
  graph->add_option("--dot", options->dot, "Write Graphviz text");
  graph->add_option("--svg", options->svg, "Write a picture for the browser");
  graph->callback([options, &action] {
    action = [options] {
      const Status status = ShowGraph(*options);
      return status.ok() ? 0 : Fail("graph", status);
    };
  });
}

}  // namespace npumesh
