// What `npumesh graph` was asked to show, and the ways to show it.
#ifndef NPUMESH_LAUNCH_COMMANDS_GRAPH_SHOW_H_
#define NPUMESH_LAUNCH_COMMANDS_GRAPH_SHOW_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/config/config_reader.h"
#include "graph/ops/op_library.h"
#include "launch/commands/answer.h"
#include "launch/view/plan_on_paper.h"

namespace npumesh {

struct GraphOptions {
  std::string file;
  std::string dot;     // empty: not written
  std::string svg;     // empty: not written
  std::string html;    // empty: not written
  std::string onnx;    // empty: not written
  bool whole = false;  // pictures do not fold layers that repeat
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  bool allow_outside = false;  // weights may lie outside of the package
  bool types = false;          // also of a graph without open dimensions
  bool json = false;
  std::string node;  // empty: the whole graph
  std::string diff;  // another file; empty: compared with nothing
  // Show the plan instead; the rest is for it.
  bool plan = false;
  std::string inputs;  // folder; empty: only types, from `dims`
  std::vector<std::string> dims;
  ConfigSource config;
  int threads = 1;
};

// A model file with what its package says, and its rank there.
struct ShownGraph {
  std::shared_ptr<const OpRegistry> registry;
  Model model;
  GroupTable groups;
  PaperRank place;
};
// Tells what is to be said of the places of weights. Errors: kInvalidArgument for a folder; those
// of LoadAnyModel, CheckWeightPlaces and ReadGroupTable.
Result<ShownGraph> LoadShown(const GraphOptions& options, const std::string& file);

// What the file holds; writes pictures and files that were asked for. With `types` an error when
// `run` would refuse the graph.
Result<Answer> ShowGraph(const GraphOptions& options);
// One node. Error: kNotFound.
Result<Answer> ShowNode(const GraphOptions& options);
// What another file says differently; exit code 1 when anything is.
Result<Answer> ShowDiff(const GraphOptions& options);
// How it would run; without values for open dimensions the order and what is known of types.
Result<Answer> ShowPlan(const GraphOptions& options);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_GRAPH_SHOW_H_
