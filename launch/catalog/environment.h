// The environment variables of all floors together, in the order of the manual.
#ifndef NPUMESH_LAUNCH_CATALOG_ENVIRONMENT_H_
#define NPUMESH_LAUNCH_CATALOG_ENVIRONMENT_H_

#include <vector>

#include "runtime/base/env/env.h"

namespace npumesh {

// All rows but those of HcclEnvTable.
std::vector<EnvVariable> AllVariables();

// The Env of this process. Errors as Env::FromProcess, also for variables of upper floors, so that
// a command refuses them before ranks meet.
Result<Env> ReadEnvironment();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_CATALOG_ENVIRONMENT_H_
