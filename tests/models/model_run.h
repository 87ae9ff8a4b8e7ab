// Runs the graphs of whole models: ranks as threads, each with a device and a session, inputs by
// name.
#ifndef NPUMESH_TESTS_MODELS_MODEL_RUN_H_
#define NPUMESH_TESTS_MODELS_MODEL_RUN_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/session/session.h"

namespace npumesh::models {

struct RunChoice {
  bool fuses = false;
  bool overlaps = false;
  NodeOrder order = NodeOrder::kStable;
  bool spares_memory = false;
};

// As written; and with all that the engine may do with a graph.
inline constexpr RunChoice kAsWritten{};
inline constexpr RunChoice kOptimised{.fuses = true, .overlaps = true};
// In other orders than that of the file, which in-place updates must not notice.
inline constexpr RunChoice kOrders[] = {{.order = NodeOrder::kBreadth},
                                        {.order = NodeOrder::kDepth},
                                        {.order = NodeOrder::kReverse},
                                        {.order = NodeOrder::kStableDepth},
                                        {.fuses = true, .spares_memory = true}};

using BuildRank = std::function<Result<Model>(int rank)>;
using Feeds = std::map<std::string, Tensor>;

// One session with names for its inputs.
class NamedSession {
 public:
  NamedSession(Session& session, int rank) : session_(session), rank_(rank) {}

  int rank() const { return rank_; }
  Session& session() { return session_; }
  // Inputs that are not in `feeds` keep what they hold. Error: a name that no input has.
  Result<std::vector<Tensor>> Run(const Feeds& feeds);
  // The content of an input that the graph updates.
  Result<Tensor> Read(const std::string& name);

 private:
  Session& session_;
  int rank_;
};

// Collective over `ranks` threads: a session of build(rank) each, in which `body` runs. Every rank
// that fails is a failure of the test.
void OnEachRank(int ranks, const BuildRank& build, const RunChoice& choice,
                const std::function<Status(NamedSession&)>& body);

// The same on one rank, with what may fail checked by the body's own assertions.
void OnOneRank(Result<Model> model, const RunChoice& choice,
               const std::function<Status(NamedSession&)>& body);

// For ranks: an error with the text of the first element that is further than `relative` times the
// largest expected one from what is expected.
Status CheckClose(const std::vector<double>& seen, const std::vector<double>& expected,
                  double relative, const std::string& what);
Status CheckClose(const Tensor& seen, const std::vector<double>& expected, double relative,
                  const std::string& what);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_MODEL_RUN_H_
