// What tests of the session share: one or several ranks, each with a small device.
#ifndef NPUMESH_TESTS_UNIT_SESSION_SESSION_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_SESSION_SESSION_FIXTURE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "runtime/world/world.h"
#include "tests/unit/engine/tiny_ops.h"

namespace npumesh {

inline Env SmallEnv() {
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  env.connect_timeout = std::chrono::seconds(300);
  env.exec_timeout = std::chrono::seconds(300);
  return env;
}

// One status for each rank that ran `body` with a separate world and device.
inline std::vector<Status> OnRanks(int ranks,
                                   const std::function<Status(World&, DeviceMemory&)>& body) {
  return RunRanks(ranks, SmallEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    return body(world, *memory);
  });
}

// `body` with a session of the graph, on one rank.
inline void RunInSession(GraphBuilder& graph, const SessionOptions& options,
                         const std::function<void(Session&)>& body) {
  Result<Model> model = graph.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<Status> statuses =
      OnRanks(1, [&](World& world, DeviceMemory& memory) -> Status {
        NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                                 Session::Create(world, memory, *model, options));
        body(*session);
        return Status();
      });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0].ToString();
}

inline SessionOptions TinySession() {
  static const OpRegistry registry = TinyOps();
  SessionOptions options;
  options.registry = &registry;
  return options;
}

// The same with all operators that are no tiny ones: NonZero, If, While and calls ...
inline SessionOptions LateSession() {
  static const OpRegistry registry = [] {
    OpRegistry made = TinyOps();
    for (const std::string_view type : BuiltinOps().Types()) {
      if (made.Find(type) == nullptr) made.Add(*BuiltinOps().Find(type));
    }
    return made;
  }();
  SessionOptions options;
  options.registry = &registry;
  return options;
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_SESSION_SESSION_FIXTURE_H_
