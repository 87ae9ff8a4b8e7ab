#include "launch/samples/samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "graph/export/dynamo_export.h"
#include "graph/io/model_file.h"
#include "graph/io/npy.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/nearest_name.h"
#include "runtime/world/world.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackage = "package/";
constexpr std::string_view kInPlainLoops =
    "by plain loops in double precision, which know nothing of the engine, and rounded to float32";

constexpr SampleProgram kOfflinePrograms[] = {{"execute_om.c", ExecuteOmInC},
                                              {"execute_om.py", ExecuteOmInPython}};

const Sample kSamples[] = {
    {.name = "one_card",
     .model = kPackage,
     .summary = "relu(x w + b) on one card",
     .story = "The smallest package: a product, a sum and a ReLU.",
     .computed = kInPlainLoops,
     .more = "npumesh graph package/export.air\n"
             "npumesh validate package/\n",
     .make = MakeOneCard},
    {.name = "dynamic",
     .steps = 3,
     .model = kPackage,
     .summary = "open dimensions: 3, 1 and 8 rows in one session",
     .story =
         "Four layers rms_norm(x + x w) that take any number of rows. The steps have 3, 1 and 8.",
     .computed = kInPlainLoops,
     .more = "npumesh run package/ --dim x=5\n",
     .make = MakeDynamic},
    {.name = "decoder",
     .model = kPackage,
     .summary = "a Llama-style decoder, whole",
     .story = "Two layers with RMSNorm, rotary embedding, attention of 4 heads and a SwiGLU MLP. "
              "decoder_2 and\n"
              "decoder_4 are this model on 2 and 4 ranks.",
     .computed = kInPlainLoops,
     .more = "npumesh graph package/export.air --html graph.html\n"
             "npumesh export package/export.air --tp 4 --path split --name rank\n"
             "npumesh launch -n 4 -- run split/ --golden package/\n",
     .make = [] { return MakeDecoder(1); }},
    {.name = "decoder_2",
     .ranks = 2,
     .model = kPackage,
     .summary = "a Llama-style decoder, tensor parallel on 2 ranks",
     .story = "Two layers with RMSNorm, rotary embedding, attention of 4 heads and a SwiGLU MLP. "
              "Each rank has\n"
              "half of the heads and of the MLP; HcomAllReduce adds their parts.",
     .computed = kInPlainLoops,
     .more = "npumesh validate package/\n",
     .make = [] { return MakeDecoder(2); }},
    {.name = "decoder_4",
     .ranks = 4,
     .model = kPackage,
     .summary = "the same decoder on 4 ranks",
     .story = "The decoder of decoder_2 with one head for each rank. Its goldens are the same.",
     .computed = kInPlainLoops,
     .more =
         "npumesh samples decoder --write whole/\n"
         "npumesh launch -n 4 -- run package/ --inputs inputs/ --golden whole/decoder/package/\n"
         "npumesh launch -n 4 -- run package/ --inputs inputs/ --golden float64\n"
         "npumesh launch -n 4 -- run package/ --inputs inputs/ --profile prof/\n",
     .make = [] { return MakeDecoder(4); }},
    {.name = "experts",
     .ranks = 2,
     .model = kPackage,
     .summary = "a mixture of 4 experts on 2 ranks, tokens sent by all-to-all",
     .story = "Each rank has its own tokens (6 and 3) and 2 of 4 experts. The graph chooses two "
              "experts for each\n"
              "token, sends it there by HcomAllToAllV with counts that it computes, and adds what "
              "comes back.\n"
              "Output 1 is how many tokens each expert of the rank got.",
     .computed = kInPlainLoops,
     .more = "npumesh graph package/mp_rank0.air\n",
     .make = MakeExperts},
    {.name = "training",
     .ranks = 2,
     .steps = 3,
     .model = kPackage,
     .summary = "a training step in place, data parallel on 2 ranks",
     .story = "Forward, backward, gradients summed over the ranks, and gradient descent on weights "
              "that the graph\n"
              "keeps (RefData): the inputs have them at step 0 only. Outputs: the loss and the new "
              "weights.",
     .computed = kInPlainLoops,
     .more = "npumesh graph package/mp_rank0.air\n",
     .make = MakeTraining},
    {.name = "onnx",
     .model = "model.onnx",
     .summary = "an ONNX model to run, to import, and to split over ranks",
     .story = "Two residual blocks x + relu(x w1 + b1) w2 + b2 for any number of rows.",
     .computed = kInPlainLoops,
     .more = "npumesh import model.onnx -o model.air\n"
             "npumesh import model.onnx --tp 2 -o split/ --dim x=8\n"
             "npumesh launch -n 2 -- run split/ --dim x=8 --golden model.onnx\n",
     .make = MakeOnnx},
    {.name = "offline",
     .model = kPackage,
     .summary = "the graph of one_card as an offline model that C and Python programs load",
     .story = "From the exported graph to a program over aclmdl*: atc compiles the graph into "
              "model.om, and\n"
              "execute_om.c and execute_om.py load it, feed it with 0, 1, 2, ... and print what "
              "comes out. After\n"
              "`. set_env.sh` of an installation the program in C is built by\n"
              "`gcc execute_om.c -o execute_om -I$ASCEND_HOME_PATH/include "
              "-L$ASCEND_HOME_PATH/lib64 -lascendcl`.",
     .computed = kInPlainLoops,
     .programs = kOfflinePrograms,
     .more = "npumesh atc --framework=1 --model=package/export.air --output=model\n"
             "npumesh run model.om --inputs inputs/ --check golden/\n"
             "npumesh python execute_om.py model.om\n",
     .make = MakeOneCard},
    {.name = "own_operator",
     .model = "model.air",
     .summary = "an operator of your own, from a library that you build; written when it is named",
     .story = "y = 1 + 2 x + 3 x^2 by one node Polynomial, which npumesh does not have. Build\n"
              "examples/polynomial_operator.cc as docs/custom_operators.md says, and copy the "
              "library here.",
     .library = "libpolynomial_operator.so",
     .computed = kInPlainLoops,
     .more = "npumesh ops Polynomial --op-library ./libpolynomial_operator.so\n"
             "npumesh graph model.air --op-library ./libpolynomial_operator.so --node polynomial\n",
     .make = MakeOwnOperator},
};

std::string Readme(const Sample& sample) {
  return fmt::format(
      "# {}: {}\n\n{}\n\nType in this folder:\n\n```sh\n{}\n{}```\n\n"
      "The goldens were computed {}.\n",
      sample.name, sample.summary, sample.story, RunCommand(sample, ""), sample.more,
      sample.computed);
}

Status WriteTensors(const std::string& folder, const std::string& step,
                    const std::vector<SampleTensors>& of_ranks) {
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const std::string place = fmt::format("{}/{}rank_{}", folder, step, rank);
    NPUMESH_RETURN_IF_ERROR(MakeFolders(place, FileKind::kData));
    for (const auto& [index, tensor] : of_ranks[rank]) {
      NPUMESH_RETURN_IF_ERROR(WriteNpy(fmt::format("{}/{}.npy", place, index), tensor));
    }
  }
  return Status();
}

// All ranks from this process, a thread for each.
Status WritePackageTo(const std::string& folder, const Env& env, std::vector<Model> models) {
  ExportOptions options;
  options.export_path = folder;
  options.export_name = models.size() == 1 ? "export" : "mp_rank";
  options.keeps_open = true;
  options.auto_atc_config_generated = models.size() > 1;
  options.template_configs = true;  // nothing of this machine
  const std::vector<Status> statuses =
      RunRanks(static_cast<int>(models.size()), env, [&](World& world) {
        Model& own = models[static_cast<size_t>(world.rank())];
        return DynamoExport(world, std::move(own), options).status();
      });
  for (const Status& status : statuses) NPUMESH_RETURN_IF_ERROR(status);
  return Status();
}

Status WriteModel(const Sample& sample, const Env& env, SampleContent& content,
                  const std::string& folder) {
  const std::string place = fmt::format("{}/{}", folder, sample.model);
  if (!content.onnx.empty()) return WriteFile(place, content.onnx, FileKind::kData);
  if (!sample.library.empty()) return SaveAir(content.models.front(), place);
  return WritePackageTo(place, env, std::move(content.models));
}

}  // namespace

std::span<const Sample> AllSamples() {
  return kSamples;
}

Result<std::vector<const Sample*>> SamplesNamed(const std::vector<std::string>& names) {
  std::vector<const Sample*> chosen;
  std::vector<std::string_view> known;
  for (const Sample& sample : kSamples) {
    known.push_back(sample.name);
    if (names.empty() && sample.library.empty()) chosen.push_back(&sample);
  }
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      return Error(Code::kNotFound, "there is no sample \"{}\" (similar: {}); there are {}", name,
                   fmt::join(NearestNames(name, known, 1), ", "), fmt::join(known, ", "));
    }
    chosen.push_back(&kSamples[found - known.begin()]);
  }
  return chosen;
}

std::string RunCommand(const Sample& sample, const std::string& folder) {
  std::string command = "npumesh ";
  if (sample.ranks > 1) command += fmt::format("launch -n {} -- ", sample.ranks);
  const std::string library =
      sample.library.empty() ? "" : fmt::format(" --op-library ./{}", sample.library);
  command += fmt::format("run {0}{1}{2} --inputs {0}inputs/ --check {0}golden/", folder,
                         sample.model, library);
  if (sample.steps > 1) command += fmt::format(" --steps {}", sample.steps);
  return command;
}

std::string SamplesAsText(const std::vector<const Sample*>& samples) {
  std::string text;
  for (const Sample* sample : samples) {
    text += fmt::format("{:<12} {} rank{}  {}\n", sample->name, sample->ranks,
                        sample->ranks == 1 ? " " : "s", sample->summary);
  }
  return text;
}

Status WriteSample(const Sample& sample, const Env& env, const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    return Error(Code::kInvalidArgument,
                 "{} exists; remove it, or write the sample to another folder", folder);
  }
  NPUMESH_ASSIGN_OR_RETURN(SampleContent content, sample.make());
  NPUMESH_RETURN_IF_ERROR(MakeFolders(folder, FileKind::kData));
  for (size_t number = 0; number < content.steps.size(); ++number) {
    const SampleStep& files = content.steps[number];
    const std::string step = content.steps.size() == 1 ? "" : fmt::format("step_{}/", number);
    NPUMESH_RETURN_IF_ERROR(WriteTensors(folder + "/inputs", step, files.inputs));
    NPUMESH_RETURN_IF_ERROR(WriteTensors(folder + "/golden", step, files.goldens));
  }
  NPUMESH_RETURN_IF_ERROR(WriteModel(sample, env, content, folder));
  for (const SampleProgram& program : sample.programs) {
    NPUMESH_RETURN_IF_ERROR(
        WriteFile(fmt::format("{}/{}", folder, program.name), program.text(), FileKind::kData));
  }
  return WriteFile(folder + "/README.md", Readme(sample), FileKind::kData);
}

}  // namespace npumesh
