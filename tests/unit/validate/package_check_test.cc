// What validate finds in packages of ours, in foreign ones, and in spoilt ones.
#include "launch/validate/package_check.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/io/model_file.h"
#include "launch/report/command_report.h"
#include "tests/unit/export/export_models.h"

namespace npumesh {
namespace {

using namespace npumesh::testing;  // NOLINT: the models of these tests
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// The package of TorchAir's documented example for two cards in `path`.
void ExportSeed(const std::string& path, uint64_t limit = 0) {
  ExportOptions options;
  options.export_path = path;
  options.export_name = "mp_rank";
  options.auto_atc_config_generated = true;
  options.weight_limit = limit;
  for (const Status& status : ExportOn(
           2, [](int) { return SeedAllReduce("tag=;rank_list=0,1"); }, options)) {
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

std::string Check(const std::string& folder) {
  const Result<PackageReport> report = CheckPackage(folder);
  return report.ok() ? ReportText(*report) : std::string(report.status().message());
}

TEST(PackageCheck, FindsNothingInOurOwn) {
  for (const uint64_t limit : {uint64_t{0}, kWeightLimit}) {
    const ExportFolder folder;
    ExportSeed(folder / "mp", limit);
    EXPECT_EQ(Check(folder / "mp/"),
              "2 ranks, 20 nodes, 4 constants of 64 bytes, 2 collectives: valid\n");
  }
  const ExportFolder folder;
  ExportOptions options;
  options.export_path = folder / "one2";
  options.export_name = "net2";
  ASSERT_TRUE(ExportAlone(SeedAdd(), options, SeedAddWeights()).ok());
  EXPECT_EQ(Check(folder / "one2"),
            "1 rank, 8 nodes, 2 constants of 64 bytes, 0 collectives: valid\n");
}

TEST(PackageCheck, JsonHasEveryFinding) {
  const ExportFolder folder;
  ExportSeed(folder / "mp");
  const CommandReport valid = ToReport(*CheckPackage(folder / "mp"));
  EXPECT_EQ(valid.verdict, "valid");
  EXPECT_EQ(valid.details.at("ranks"), 2);
  EXPECT_EQ(valid.details.at("collectives_compared"), true);
  EXPECT_EQ(valid.findings.size(), 0u);
  fs::resize_file(folder / "mp/rank_1/p2", 15);
  const PackageReport spoilt = *CheckPackage(folder / "mp");
  const CommandReport invalid = ToReport(spoilt);
  EXPECT_EQ(invalid.verdict, "invalid");
  ASSERT_EQ(invalid.findings.size(), spoilt.findings.all().size());
  EXPECT_EQ(invalid.findings[0].at("severity"), "error");
  EXPECT_EQ(invalid.findings[0].at("file"), spoilt.findings.all()[0].subject);
  EXPECT_EQ(invalid.findings[0].at("text"), spoilt.findings.all()[0].text);
}

void Replace(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = Slurp(file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << file << ": " << from;
  Spill(file, text.replace(at, from.size(), to));
}

struct Spoil {
  std::string name;
  std::function<void(const std::string& package)> spoil;
  std::string words;  // of the report
};

class PackageCheckFinds : public ::testing::TestWithParam<Spoil> {};

TEST_P(PackageCheckFinds, AndNamesTheFile) {
  const ExportFolder folder;
  const std::string package = folder / "mp";
  ExportSeed(package);
  GetParam().spoil(package);
  EXPECT_THAT(Check(package), HasSubstr(GetParam().words));
}

constexpr const char* kRelation = "/model_relation_config.json";
constexpr const char* kNuma = "/numa_config.json";

INSTANTIATE_TEST_SUITE_P(
    All, PackageCheckFinds,
    ::testing::Values(
        Spoil{"short_weight", [](const auto& p) { fs::resize_file(p + "/rank_1/p2", 15); },
              "rank_1/p2: offset 0 and length 16; 16 bytes are needed and the file has 15"},
        Spoil{"no_weight", [](const auto& p) { fs::remove(p + "/rank_0/p1"); },
              "error: mp_rank0.air: the package lacks 1 weight of rank 0; it is: node \"p1\" "},
        Spoil{"flipped_bit",
              [](const auto& p) {
                std::string bytes = Slurp(p + "/rank_1/p2");
                bytes[7] = static_cast<char>(bytes[7] ^ 1);
                Spill(p + "/rank_1/p2", bytes);
              },
              "error: rank_1/p2: its content is not what checksums.sha256 says"},
        Spoil{"broken_checksums",
              [](const auto& p) { Spill(p + "/checksums.sha256", "abc  p1\n"); },
              "error: checksums.sha256: line 1 is not a SHA-256 of 64 digits"},
        Spoil{"long_weight", [](const auto& p) { fs::resize_file(p + "/rank_1/p2", 100); },
              "warning: rank_1/p2: has 100 bytes, node \"p2\" (FileConstant) of mp_rank1.air needs "
              "16; the first are taken"},
        Spoil{"swapped_graphs",
              [](const auto& p) {
                fs::rename(p + "/mp_rank0.air", p + "/other");
                fs::rename(p + "/mp_rank1.air", p + "/mp_rank0.air");
                fs::rename(p + "/other", p + "/mp_rank1.air");
              },
              "are the graphs of two ranks swapped?"},
        Spoil{"linked_weight",
              [](const auto& p) {
                fs::rename(p + "/rank_0/p1", p + "/../p1");
                fs::create_symlink("../../p1", p + "/rank_0/p1");
              },
              "error: mp_rank0.air: node \"p1\" (FileConstant): weight file "},
        Spoil{"extra_weight", [](const auto& p) { Spill(p + "/rank_0/p9", "x"); },
              "warning: rank_0/p9: no graph uses this file"},
        Spoil{"no_text", [](const auto& p) { fs::remove(p + "/rank_0/dynamo.pbtxt"); },
              "warning: rank_0/dynamo.pbtxt: missing"},
        Spoil{"other_text",
              [](const auto& p) {
                Replace(p + "/rank_0/dynamo.pbtxt", "op: \"Cast\"", "op: \"Casd\"");
              },
              "warning: rank_0/dynamo.pbtxt: node \"Cast\" is Casd here and Cast in mp_rank0.air"},
        Spoil{"no_graph", [](const auto& p) { fs::remove(p + "/mp_rank0.air"); },
              "error: mp_rank0.air: missing: the package has mp_rank1.air, so it is for 2 ranks"},
        Spoil{"empty_graph", [](const auto& p) { Spill(p + "/mp_rank1.air", ""); },
              "error: mp_rank1.air: not a model: the file is empty"},
        Spoil{"killed_export",
              [](const auto& p) {
                fs::create_directories(p + "/../.npumesh-export.mp.beside.1/new");
              },
              "warning: ../.npumesh-export.mp.beside.1: left behind by an export that was killed; "
              "the package is whole"},
        Spoil{"interrupted_export",
              [](const auto& p) { Spill(p + "/.npumesh-export.mp.in.1/journal", "a\n"); },
              "error: .npumesh-export.mp.in.1: an export was killed while it replaced files"},
        Spoil{"no_numa", [](const auto& p) { fs::remove(p + kNuma); },
              "error: numa_config.json: missing beside its companion model_relation_config.json"},
        Spoil{"no_json", [](const auto& p) { Spill(p + kNuma, "{"); },
              "error: numa_config.json: is not JSON: line 1, column 2: "},
        Spoil{"unknown_key",
              [](const auto& p) { Replace(p + kRelation, "comm_group", "comm_groupx"); },
              "warning: model_relation_config.json: unknown key \"comm_groupx\"; known: "
              "deploy_config, model_name_to_instance_id, comm_group, rank_table"},
        Spoil{"unknown_inner_key",
              [](const auto& p) { Replace(p + kRelation, "\"rank_id\"", "\"rank_ids\""); },
              "warning: model_relation_config.json: rank_table[0]: unknown key \"rank_ids\""},
        Spoil{"no_item",
              [](const auto& p) { Replace(p + kNuma, "\"item_id\": 1", "\"item_id\": 7"); },
              "mp_rank1.air is deployed to 0:0:1, which numa_config.json does not have"},
        Spoil{"item_twice",
              [](const auto& p) { Replace(p + kNuma, "\"item_id\": 1", "\"item_id\": 0"); },
              "cluster[0].cluster_nodes[0].item_list[1].item_id: 0 comes twice on node 0"},
        Spoil{"text_for_number", [](const auto& p) { Replace(p + kNuma, "29500", "\"29500\""); },
              "cluster[0].cluster_nodes[0].port: expected an integer from 0 on"},
        Spoil{
            "device_twice", [](const auto& p) { Replace(p + kRelation, "0:0:1", "0:0:0"); },
            "deploy_config[1].deploy_device_id_list: 0:0:0 is the device of mp_rank0.air as well"},
        Spoil{"no_device", [](const auto& p) { Replace(p + kRelation, "0:0:1", "0:1"); },
              "deploy_config[1].deploy_device_id_list: \"0:1\"; expected cluster:node:item"},
        Spoil{"no_such_graph",
              [](const auto& p) { Replace(p + kRelation, "mp_rank1.air", "mp_rank7.air"); },
              "deploy_config[1].submodel_name: \"mp_rank7.air\" is no file of the package"},
        Spoil{"rank_twice",
              [](const auto& p) { Replace(p + kRelation, "\"rank_id\": 1", "\"rank_id\": 0"); },
              "rank_table[1].rank_id: 0; expected 0 to 1, each once"},
        Spoil{"other_members", [](const auto& p) { Replace(p + kRelation, "[0, 1]", "[1, 0]"); },
              "comm_group \"tag=;rank_list=0,1\" has the ranks 1,0, the graphs say 0,1"},
        Spoil{"bad_members", [](const auto& p) { Replace(p + kRelation, "[0, 1]", "[0, 0]"); },
              "rank 0 is listed twice"}),
    [](const auto& info) {
      std::string name = info.param.name;
      return name;
    });

size_t CountOf(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

TEST(PackageCheck, BrokenJsonIsOneErrorWithItsLine) {
  const ExportFolder folder;
  ExportSeed(folder / "mp");
  Replace(folder / "mp" + kRelation, "\"comm_group\":", "\"comm_group\"");
  const std::string text = Check(folder / "mp");
  EXPECT_EQ(CountOf(text, "error: model_relation_config.json: "), 1u) << text;
  EXPECT_THAT(text, ::testing::ContainsRegex("is not JSON: line [0-9]+, column [0-9]+: "));
}

// The paths of the weights lead to a whole package, which is not the one that was named.
TEST(PackageCheck, LooksOnlyIntoThePackageThatWasNamed) {
  const ExportFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  ExportSeed("good");
  fs::copy("good", "bad", fs::copy_options::recursive);
  EXPECT_THAT(Check("good"), ::testing::EndsWith("2 collectives: valid\n"));
  EXPECT_EQ(CountOf(Check("bad"), "is relative and not below"), 1u) << Check("bad");
  fs::remove("bad/rank_1/p2");
  const std::string text = Check("bad");
  fs::current_path(before);
  EXPECT_THAT(text, HasSubstr("error: mp_rank1.air: the package lacks 1 weight of rank 1; it is: "
                              "node \"p2\" (FileConstant), \"good/rank_1/p2\", looked for as "));
  EXPECT_THAT(text, HasSubstr("good/rank_1/p2 is outside of the package: copy it there"));
}

// Eighty errors said that twenty weights of four ranks were not where the paths lead.
TEST(PackageCheck, WeightsThatAllRanksLackAreOneError) {
  const ExportFolder folder;
  ExportSeed(folder / "mp");
  fs::remove_all(folder / "mp/rank_0");
  fs::remove_all(folder / "mp/rank_1");
  const std::string text = Check(folder / "mp");
  EXPECT_EQ(CountOf(text, "error: "), 1u) << text;
  EXPECT_THAT(text, HasSubstr("error: mp_rank0.air: the package lacks 4 weights of ranks 0-1; the "
                              "first: node \"p1\" "));
}

TEST(PackageCheck, AMovedPackageIsWholeAndLinksAreFollowedWhenAskedFor) {
  const ExportFolder folder;
  ExportSeed(folder / "good");  // an absolute export_path is stored as it is
  fs::copy(folder / "good", folder / "bad", fs::copy_options::recursive);
  const std::string text = Check(folder / "bad");
  EXPECT_EQ(CountOf(text, "is absolute and not in this package; export with a relative path"), 1u)
      << text;
  EXPECT_THAT(text, ::testing::EndsWith("2 collectives: valid, 1 warning\n"));
  EXPECT_THAT(Check(folder / "good"), Not(HasSubstr("is absolute")));
  fs::remove(folder / "bad/rank_0/p1");
  EXPECT_THAT(Check(folder / "bad"), HasSubstr("the package lacks 1 weight of rank 0"));
  const Result<PackageReport> outside = CheckPackage(folder / "bad", BuiltinOps(), true);
  EXPECT_EQ(outside->findings.errors(), 0u) << ReportText(*outside);
  EXPECT_THAT(ReportText(*outside), HasSubstr("good/rank_0/p1 is outside of the package "));
  fs::rename(folder / "good/rank_0/p1", folder / "p1");
  fs::create_symlink("../../p1", folder / "good/rank_0/p1");
  EXPECT_EQ(CheckPackage(folder / "good")->findings.errors(), 1u);
  EXPECT_EQ(CheckPackage(folder / "good", BuiltinOps(), true)->findings.errors(), 0u);
}

TEST(PackageCheck, ComparesTheCollectivesOfAllRanks) {
  const ExportFolder folder;
  ExportSeed(folder / "mp");
  const Status saved =
      SaveAir(SeedAllReduce("tag=;rank_list=0,1", "max"), folder / "mp/mp_rank1.air");
  ASSERT_TRUE(saved.ok());
  EXPECT_THAT(Check(folder / "mp"), HasSubstr("error: mp_rank1.air: node \"HcomAllReduce\" "
                                              "(HcomAllReduce): reduction is max"));
}

TEST(PackageCheck, WhatIsNoPackageIsAnError) {
  const ExportFolder folder;
  EXPECT_EQ(CheckPackage(folder / "absent").status().code(), Code::kNotFound);
  EXPECT_EQ(CheckPackage(folder.path()).status().code(), Code::kInvalidArgument);
}

TEST(PackageCheck, SaysThatARelativePathStaysWhereItIs) {
  const ExportFolder folder;
  ExportSeed(folder / "mp");
  for (const int rank : {0, 1}) {
    const std::string air = folder / fmt::format("mp/mp_rank{}.air", rank);
    Result<Model> model = LoadModel(air);
    ASSERT_TRUE(model.ok());
    for (const char* name : {"p1", "p2"}) {
      Node& node = model->graph.node(model->graph.Find(name));
      node.attrs.insert_or_assign(
          "file_path", AttrValue::String(fmt::format("./elsewhere/rank_{}/{}", rank, name)));
    }
    ASSERT_TRUE(SaveAir(*model, air).ok());
  }
  EXPECT_THAT(Check(folder / "mp"),
              HasSubstr("is relative and not below this working folder; run from the folder"));
}

// Packages of other programs.
TEST(PackageCheck, AcceptsForeignPackages) {
  const fs::path samples = fs::path(NPUMESH_SHARED_DIR) / "samples";
  if (!fs::exists(samples)) GTEST_SKIP() << samples << " is absent";
  for (const char* package :
       {"a_seed_add/const", "a_seed_add/fileconst", "b_allreduce_single_group/mp_dynamic",
        "b_allreduce_single_group/mp_static", "b_allreduce_single_group/mp_dynamic_fileconst",
        "c_llama_block/float32_tp2", "h_collectives_zoo/gloo_names",
        "h_collectives_zoo/hccl_names"}) {
    const Result<PackageReport> report = CheckPackage((samples / package).string());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->findings.errors(), 0u) << package << ":\n" << ReportText(*report);
    EXPECT_TRUE(report->matched) << package;
  }
}

}  // namespace
}  // namespace npumesh
