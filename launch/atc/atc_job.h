// The work of `npumesh atc`: a graph of a file, or those of a package, becomes offline models.
#ifndef NPUMESH_LAUNCH_ATC_ATC_JOB_H_
#define NPUMESH_LAUNCH_ATC_ATC_JOB_H_

#include <string>
#include <vector>

#include "graph/offline/offline_facts.h"
#include "graph/ops/core/op_registry.h"
#include "launch/atc/atc_options.h"

namespace npumesh {

struct AtcResult {
  std::vector<std::string> written;  // by rank
  std::vector<OfflineFacts> facts;   // of each
  std::vector<std::string> notes;    // for the user, one line each
};

// Compiles what `options` names. Of a package all ranks are compiled before anything is written,
// and `output` is the folder of their files, with the two JSON files if the package has them. After
// an error nothing of it is there. Errors: kInvalidArgument with the vendor's code for a flag;
// those of LoadAnyModel, CompileOffline and SaveOffline, with the file.
Result<AtcResult> RunAtc(const AtcOptions& options, const OpRegistry& registry);

// The offline models that `--model` names, "a.om;b.om"; empty: it names something else.
std::vector<std::string> BundledModels(const AtcOptions& options);
// Puts them into one bundle, `output`.om. Errors as SaveBundle.
Result<AtcResult> BundleModels(const AtcOptions& options);

// Writes the model of `options.om` as JSON: the vendor's messages, with its names of fields, but
// for bytes of weights. Errors as LoadModel; kIo.
Status WriteModelJson(const AtcOptions& options);

// What --display_model_info shows.
std::string InfoText(const OfflineFacts& facts);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_ATC_ATC_JOB_H_
