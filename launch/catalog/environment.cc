#include "launch/catalog/environment.h"

#include "graph/dump/options/dump_env.h"
#include "graph/static_kernel/store/kernel_store.h"
#include "launch/screen/screen.h"
#include "runtime/card/card.h"

namespace npumesh {

std::vector<EnvVariable> AllVariables() {
  std::vector<EnvVariable> all;
  for (const auto& table :
       {EnvTable(), CardEnvTable(), KernelStoreEnvTable(), DumpEnvTable(), LauncherEnvTable()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  const std::vector<EnvVariable> screen = ScreenVariables();
  all.insert(all.end(), screen.begin(), screen.end());
  return all;
}

Result<Env> ReadEnvironment() {
  NPUMESH_ASSIGN_OR_RETURN(Env env, Env::FromProcess());
  NPUMESH_RETURN_IF_ERROR(DumpEnv::FromProcess().status());
  NPUMESH_RETURN_IF_ERROR(Card::FromProcess().status());
  return env;
}

}  // namespace npumesh
