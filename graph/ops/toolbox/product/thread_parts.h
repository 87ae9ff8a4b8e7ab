// Parts of one product on the threads that oneDNN uses, which are OpenMP's.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_THREAD_PARTS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_THREAD_PARTS_H_

namespace npumesh {

// Calls work(context, 0) to work(context, parts - 1), each on a thread of its own; returns when all
// are done. `work` does not throw. One part runs on the calling thread.
void RunParts(int parts, void (*work)(const void* context, int part), const void* context);

// The same with a function object `void(int part)`. Allocates nothing.
template <typename Work>
void RunParts(int parts, const Work& work) {
  const auto call = [](const void* context, int part) {
    (*static_cast<const Work*>(context))(part);
  };
  RunParts(parts, call, &work);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_THREAD_PARTS_H_
