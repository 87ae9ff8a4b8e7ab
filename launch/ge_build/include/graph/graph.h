// ge::Graph as far as a parser fills it: graphs are not built from operators here.
#ifndef NPUMESH_GRAPH_GRAPH_H_
#define NPUMESH_GRAPH_GRAPH_H_

#include <memory>
#include <string>

#include "graph/ascend_string.h"
#include "graph/error_codes.h"

namespace ge {

class GraphImpl;

// Copies are the same graph.
class Graph {
 public:
  Graph() = default;
  explicit Graph(const char* name);
  ~Graph() = default;

  graphStatus GetName(AscendString& name) const;
  // Whether a parser has filled it.
  bool IsValid() const;

 private:
  friend class GraphImpl;
  std::shared_ptr<GraphImpl> impl_;
};

}  // namespace ge

#endif  // NPUMESH_GRAPH_GRAPH_H_
