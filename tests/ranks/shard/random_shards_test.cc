// Random decoders, split over 2 and 4 ranks: the ranks compute what one card does, and one card
// what plain arithmetic does.
//
//   random_shards [--first=SEED] [--seeds=N]
#include <gmock/gmock.h>

#include <charconv>
#include <iostream>

#include "graph/export/graph_match.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "graph/shard/shard_model.h"
#include "graph/shard/shard_proof.h"
#include "tests/ranks/run_ranks.h"
#include "tests/ranks/shard/random_decoder.h"

namespace npumesh {
namespace {

uint64_t first_seed = 0;
uint64_t seed_count = 60;

using testing::HasSubstr;

// Of the largest value; the deepest graphs have 3 layers in float32.
constexpr double kTolerance = 1e-4;

Result<std::vector<Tensor>> RunWhole(const WrittenDecoder& written) {
  std::vector<Tensor> kept;
  const auto statuses = RunRanks(1, TestEnv(), [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const auto session,
                             Session::Create(world, *memory, written.model, SessionOptions()));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session->Run(written.inputs));
    for (const Tensor& output : outputs) {
      const auto values = output.as<float>();
      kept.push_back(Tensor::FromVector<float>(output.type(), {values.begin(), values.end()}));
    }
    return Status();
  });
  NPUMESH_RETURN_IF_ERROR(statuses[0]);
  return kept;
}

void ExpectPlain(const Tensor& seen, const Plain& expected) {
  ASSERT_EQ(seen.elements(), expected.elements());
  double peak = 0;
  for (const double value : expected.values) peak = std::max(peak, std::abs(value));
  const auto values = seen.as<float>();
  for (size_t i = 0; i < expected.values.size(); ++i) {
    ASSERT_NEAR(values[i], expected.values[i], kTolerance * peak) << "element " << i;
  }
}

// What is to be split over ranks falls into equal pieces: nothing may stand in the way.
bool Divides(const DecoderForm& form, int ranks) {
  return form.heads % ranks == 0 && form.ffn % ranks == 0;
}

// Products with a weight that every rank has whole although it could be split.
std::vector<std::string> WholeProducts(const ShardedModel& sharded) {
  std::vector<std::string> nodes;
  for (const ShardNote& note : sharded.notes) {
    const bool product = note.type.find("MatMul") != std::string::npos;
    if (product && note.fate == ShardFate::kReplicated) nodes.push_back(note.node);
  }
  return nodes;
}

// Values that are gathered for nodes inside of the graph.
std::vector<std::string> Gathers(const WrittenDecoder& written, const ShardedModel& sharded) {
  const Graph& graph = written.model.graph;
  const std::string end = " gathered for " + graph.node(graph.NetOutput()).name;
  std::vector<std::string> values;
  for (const ShardNote& note : sharded.notes) {
    const bool inside = note.fate == ShardFate::kGathered && !note.text.ends_with(end);
    if (inside) values.push_back(fmt::format("{} ({}): {}", note.node, note.type, note.text));
  }
  return values;
}

// The second step goes on with what the first has left in the RefData.
std::vector<std::vector<Tensor>> StepsOf(const WrittenDecoder& written) {
  std::vector<std::vector<Tensor>> steps = {written.inputs};
  if (written.held.empty()) return steps;
  steps.push_back(written.inputs);
  for (const size_t at : written.held) steps[1][at] = Tensor();
  return steps;
}

std::vector<GraphMismatch> MatchModels(const std::vector<Model>& models) {
  std::vector<GraphPortrait> portraits;
  for (const Model& model : models) portraits.push_back(PortraitOf(model, BuiltinOps()));
  return MatchGraphs(portraits);
}

// An attribute of a rank's graph gets another value; false: no attribute is sure to be told.
bool Deviate(Node& node) {
  for (auto& [name, value] : node.attrs) {
    if (IsBookkeeping(node, name) || IsFurniture(node)) continue;
    if (auto* const flag = value.get<bool>()) {
      *flag = !*flag;
      return true;
    }
    if (auto* const number = value.get<float>(); number != nullptr && *number != 0) {
      *number *= 1.125f;
      return true;
    }
  }
  return false;
}

// Ranks of one model say the same, and one value of one rank that deviates is named.
void CheckAttributes(const std::vector<Model>& models, uint64_t seed) {
  const std::vector<GraphMismatch> none = MatchModels(models);
  ASSERT_TRUE(none.empty()) << none.front().text;
  const size_t odd = seed % models.size();
  std::vector<Model> deviating = models;
  Graph& graph = deviating[odd].graph;
  const size_t nodes = graph.nodes().size();
  for (size_t i = 0; i < nodes; ++i) {
    Node& node = graph.node(static_cast<NodeId>((i + seed) % nodes));
    const Operator* const op = BuiltinOps().Find(node.type);
    if (node.removed || op == nullptr || op->collective || !Deviate(node)) continue;
    const std::vector<GraphMismatch> found = MatchModels(deviating);
    ASSERT_EQ(found.size(), 1u) << node.name;
    EXPECT_THAT(found[0].text, HasSubstr(fmt::format("node \"{}\" ", node.name)));
    EXPECT_THAT(found[0].text, HasSubstr(fmt::format(" on rank {}", odd)));
    EXPECT_TRUE(models.size() == 2 || found[0].rank == static_cast<int>(odd));
    return;
  }
}

void CheckSplit(const DecoderForm& form, const WrittenDecoder& written, int ranks) {
  const auto sharded = ShardModel(written.model, BuiltinOps(), ranks, written.inputs);
  if (!sharded.ok()) {
    EXPECT_EQ(sharded.status().code(), Code::kUnsupported) << sharded.status().ToString();
    EXPECT_THAT(sharded.status().message(), HasSubstr("needed: "));
    EXPECT_FALSE(Divides(form, ranks)) << sharded.status().ToString();
    return;
  }
  CheckAttributes(sharded->models, static_cast<uint64_t>(form.rows + form.ffn + ranks));
  const auto proof =
      ProveShards(written.model, *sharded, BuiltinOps(), TestEnv(), StepsOf(written));
  ASSERT_TRUE(proof.ok()) << proof.status().ToString();
  EXPECT_FALSE(proof->difference) << proof->difference->node << ": " << proof->difference->text;
  // Heads of keys and values that do not fall to ranks stay whole, and so may those of one product.
  const bool apart = form.projections == ProjectionForm::kApart && form.shared_heads > 1 &&
                     ranks % form.shared_heads == 0;
  const bool may_stay = (form.shared_heads % ranks != 0 && !apart) || form.logits;
  if (Divides(form, ranks) && !may_stay) {
    EXPECT_THAT(WholeProducts(*sharded), testing::IsEmpty());
    EXPECT_THAT(Gathers(written, *sharded), testing::IsEmpty());
    for (const size_t at : written.held) EXPECT_TRUE(sharded->inputs[at].split()) << at;
  }
}

TEST(RandomShards, ComputeWhatOneCardAndPlainArithmeticDo) {
  for (uint64_t seed = first_seed; seed < first_seed + seed_count && !HasFailure(); ++seed) {
    const DecoderForm form = DrawDecoder(seed);
    SCOPED_TRACE(ToText(form));
    const auto written = WriteDecoder(form);
    ASSERT_TRUE(written.ok()) << written.status().ToString();
    const auto whole = RunWhole(*written);
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    ASSERT_EQ(whole->size(), written->outputs.size());
    for (size_t i = 0; i < whole->size(); ++i) {
      SCOPED_TRACE(fmt::format("output {}", i));
      ExpectPlain((*whole)[i], written->outputs[i]);
    }
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(fmt::format("{} ranks", ranks));
      CheckSplit(form, *written, ranks);
    }
  }
}

bool Take(std::string_view word) {
  const auto number = [&](std::string_view name, uint64_t* into) {
    if (!word.starts_with(name)) return false;
    const std::string_view text = word.substr(name.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *into);
    return error == std::errc() && end == text.data() + text.size();
  };
  return number("--first=", &first_seed) || number("--seeds=", &seed_count);
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (npumesh::Take(argv[i])) continue;
    std::cerr << "unknown argument " << argv[i] << "; expected --first=SEED or --seeds=N\n";
    return 2;
  }
  return RUN_ALL_TESTS();
}
