// `npumesh graph`: what a model file holds, and how it would run, as text and as pictures.
#include "launch/commands/graph_show.h"

namespace npumesh {
namespace {

Result<Answer> ShowAsked(const GraphOptions& options) {
  if (options.plan) return ShowPlan(options);
  if (!options.diff.empty()) return ShowDiff(options);
  if (!options.node.empty()) return ShowNode(options);
  return ShowGraph(options);
}

}  // namespace

void AddGraph(CLI::App& app, Action& action) {
  auto options = std::make_shared<GraphOptions>();
  CLI::App* graph = app.add_subcommand("graph", "Show what a model file holds");
  AddFooter(*graph, "--diff finds a difference",
            {"npumesh graph mp/mp_rank0.air --html graph.html",
             "npumesh graph mp/mp_rank0.air --node MatMul_3",
             "npumesh graph mp/mp_rank0.air --diff mp/mp_rank1.air",
             "npumesh graph dynamic.air --plan --dim x=4 --svg plan.svg"});
  graph->add_option("file", options->file, "An .air, .pbtxt, ge_proto*.txt or .onnx file")
      ->type_name("FILE")
      ->required();
  AddOpLibraryOption(*graph, options->op_libraries, options->library_trust);
  AddAllowOutsideOption(*graph, options->allow_outside);
  CLI::Option* dot =
      graph->add_option("--dot", options->dot, "Write Graphviz text")->type_name("FILE");
  graph->add_option("--svg", options->svg, "Write a picture for the browser")->type_name("FILE");
  CLI::Option* html =
      graph
          ->add_option("--html", options->html,
                       "Write a page: picture, search, and all that a node says at a click")
          ->type_name("FILE");
  CLI::Option* whole = graph->add_flag("--whole", options->whole,
                                       "Pictures show every layer; otherwise those that repeat "
                                       "are one box");
  CLI::Option* onnx = graph
                          ->add_option("--onnx", options->onnx,
                                       "Write it as an ONNX model, where every operator has a "
                                       "counterpart")
                          ->type_name("FILE");
  CLI::Option* node =
      graph
          ->add_option("--node", options->node,
                       "Show one node: attributes, inputs, outputs and their readers, weight file")
          ->type_name("NAME");
  CLI::Option* diff = graph
                          ->add_option("--diff", options->diff,
                                       "Compare with another graph: operators, attributes, "
                                       "inputs, weights")
                          ->type_name("FILE")
                          ->excludes(node);
  graph->add_flag("--types", options->types,
                  "List what is known of the type of every value, and fail if `run` would refuse "
                  "the graph; a graph with open dimensions lists them anyway");
  CLI::Option* plan =
      graph
          ->add_flag("--plan", options->plan,
                     "Show how it would run: order, streams, lives of tensors, peak memory")
          ->excludes(dot)
          ->excludes(html)
          ->excludes(whole)
          ->excludes(node)
          ->excludes(diff)
          ->excludes(onnx);
  AddJsonFlag(*graph, options->json);
  CLI::Option* inputs = graph
                            ->add_option("--inputs", options->inputs,
                                         "Folder with [rank_R/]<data index>.npy that the plan is "
                                         "for; needed where values decide shapes")
                            ->type_name("FOLDER")
                            ->needs(plan);
  graph->add_option("--dim", options->dims, "Open dimensions of inputs, as in `run`")
      ->type_name("NAME=V")
      ->allow_extra_args(false)
      ->needs(plan)
      ->excludes(inputs);
  graph->add_option("--threads", options->threads, "Threads of one rank's kernels")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(plan);
  AddConfigOptions(*graph, options->config);
  for (const char* name : {"--config", "-o"}) graph->get_option(name)->needs(plan);
  graph->callback([options, &action] {
    action = [options] { return Tell("graph", options->json, ShowAsked(*options)); };
  });
}

}  // namespace npumesh
