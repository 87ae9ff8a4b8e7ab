// Checks of model_relation_config.json and numa_config.json: their fields, each other, and the
// graphs they speak of.
#ifndef NPUMESH_LAUNCH_VALIDATE_CONFIG_CHECK_H_
#define NPUMESH_LAUNCH_VALIDATE_CONFIG_CHECK_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/validate/package_files.h"
#include "runtime/base/text/json.h"

namespace npumesh {

// A JSON object of the package; an error, with its line, is a finding.
std::optional<nlohmann::json> ReadJsonObject(const PackageFiles& files, const std::string& name,
                                             Findings* findings);

// Checks both files where they are. A package with `uses_groups` and several ranks should have
// them.
void CheckConfigs(const PackageFiles& files, bool uses_groups, Findings* findings);

// Groups of comm_group against those of the graphs: `used` maps a group to its world ranks as the
// graphs spell them out, or to nothing where only the file can say it.
void CheckGroups(const PackageFiles& files, const std::map<std::string, std::vector<int>>& used,
                 const std::map<std::string, std::vector<int>>& listed, Findings* findings);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VALIDATE_CONFIG_CHECK_H_
