// The Hcom operators: inference, and what they ask of the communicator. The collectives themselves
// are tested with ranks, in tests/ranks and tests/mpi.
#include "tests/unit/op_values.h"
#include "tests/unit/ops/collective/fake_communicator.h"

namespace npumesh {
namespace {

// Knows the group "tp" of two ranks; "others" has members, but not this rank.
class TwoRanks final : public GroupProvider {
 public:
  Result<Communicator*> Group(const std::string& group) override {
    if (group != "tp") return Error(Code::kNotFound, "no group \"{}\"", group);
    return communicator_.get();
  }
  Result<Members> MembersOf(const std::string& group) override {
    if (group == "tp") return Members{{4, 6}, 0};
    if (group == "others") return Members{{1, 2}, -1};
    return Error(Code::kNotFound, "no group \"{}\"", group);
  }
  std::vector<std::string>& calls() { return CallsOf(*communicator_); }

 private:
  std::unique_ptr<Communicator> communicator_ = MakeFakeCommunicator("tp", {4, 6});
};

class Collective : public testing::Test {
 protected:
  OpCall Call(std::string type, Tensor x, std::vector<std::pair<std::string, AttrValue>> attrs) {
    OpCall call{.type = std::move(type),
                .inputs = {{"x", std::move(x)}},
                .attrs = std::move(attrs),
                .groups = &ranks_};
    call.attrs.insert(call.attrs.begin(), {"group", AttrValue::String("tp")});
    return call;
  }
  // An operator with lists: `ints` are the ports behind the data.
  OpCall WithLists(std::string type, std::string port, Tensor data,
                   const std::vector<std::pair<std::string, std::vector<int64_t>>>& ints,
                   std::vector<std::pair<std::string, AttrValue>> attrs = {}) {
    OpCall call{.type = std::move(type),
                .inputs = {{std::move(port), std::move(data)}},
                .attrs = std::move(attrs),
                .groups = &ranks_};
    call.attrs.insert(call.attrs.begin(), {"group", AttrValue::String("tp")});
    for (const auto& [name, values] : ints) call.inputs.push_back({name, MakeInts(values)});
    return call;
  }
  OpCall AllToAllV(Tensor data, std::vector<std::vector<int64_t>> blocks) {
    return {.type = "HcomAllToAllV",
            .inputs = {{"send_data", std::move(data)},
                       {"send_counts", MakeInts(blocks[0])},
                       {"send_displacements", MakeInts(blocks[1])},
                       {"recv_counts", MakeInts(blocks[2])},
                       {"recv_displacements", MakeInts(blocks[3])}},
            .attrs = {{"group", AttrValue::String("tp")}},
            .groups = &ranks_};
  }

  TwoRanks ranks_;
  const std::pair<std::string, AttrValue> sum_ = {"reduction", AttrValue::String("sum")};
  const std::pair<std::string, AttrValue> two_ = {"rank_size", AttrValue::Int(2)};
};

TEST_F(Collective, AreMarkedAsSuch) {
  int types = 0;
  for (const std::string_view type : BuiltinOps().Types()) {
    if (!type.starts_with("Hcom") && type != "DistributeBarrier") continue;
    EXPECT_TRUE(BuiltinOps().Find(type)->collective) << type;
    ++types;
  }
  EXPECT_EQ(types, 13);
  EXPECT_TRUE(BuiltinOps().Find("DistributeBarrier")->side_effect)
      << "nobody may read what it gives";
}

TEST_F(Collective, AllReduceAsksForEveryReductionAndType) {
  for (const char* reduction : {"sum", "prod", "max", "min"}) {
    for (const DataType dtype : AllDtypes()) {
      const Tensor x = Pattern(dtype, {2, 3});
      const Tensor y =
          RunOne(Call("HcomAllReduce", x, {{"reduction", AttrValue::String(reduction)}}));
      EXPECT_TRUE(SameBytes(y, x));
      const DataType wire = dtype == DataType::kBool ? DataType::kInt8 : dtype;
      EXPECT_EQ(ranks_.calls().back(),
                fmt::format("AllReduce count=6 {} {} node=node_under_test", Name(wire), reduction));
    }
  }
}

TEST_F(Collective, AllGatherMultipliesTheFirstDimension) {
  const Tensor x = FromDoubles(DataType::kFloat, {1, 2}, {3, 4});
  const Tensor y = RunOne(Call("HcomAllGather", x, {two_}));
  EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kFloat, {2, 2}, {3, 4, 3, 4})));
  EXPECT_EQ(ranks_.calls().back(), "AllGather count=2 float32 node=node_under_test");
  EXPECT_EQ(RunOne(Call("HcomAllGather", Pattern(DataType::kFloat, {}), {two_})).shape(),
            (Shape{2}));
  EXPECT_EQ(RunOne(Call("HcomAllGather", Pattern(DataType::kInt8, {0, 3}), {two_})).shape(),
            (Shape{0, 3}));
}

TEST_F(Collective, ReduceScatterDividesTheFirstDimension) {
  const Tensor x = FromDoubles(DataType::kFloat16, {4, 1}, {1, 2, 3, 4});
  const Tensor y = RunOne(Call("HcomReduceScatter", x, {sum_, two_}));
  EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kFloat16, {2, 1}, {1, 2})));
  EXPECT_EQ(ranks_.calls().back(), "ReduceScatter count=2 float16 sum node=node_under_test");
}

TEST_F(Collective, BroadcastSendsEachTensor) {
  const Tensor a = Pattern(DataType::kFloat, {2});
  const Tensor b = Pattern(DataType::kBool, {3});
  const OpCall call{.type = "HcomBroadcast",
                    .inputs = {{"x0", a}, {"x1", b}},
                    .attrs = {{"group", AttrValue::String("tp")}, {"root_rank", AttrValue::Int(0)}},
                    .outputs = 2,
                    .groups = &ranks_};
  const Result<std::vector<Tensor>> y = RunOp(call);
  ASSERT_TRUE(y.ok()) << y.status().ToString();
  EXPECT_TRUE(SameBytes((*y)[0], a));
  EXPECT_TRUE(SameBytes((*y)[1], b));
  EXPECT_EQ(ranks_.calls(),
            (std::vector<std::string>{"Broadcast count=2 float32 root=0 node=node_under_test",
                                      "Broadcast count=3 int8 root=0 node=node_under_test"}));
}

TEST_F(Collective, AllToAllSplitsEvenly) {
  const Tensor x = Pattern(DataType::kInt64, {4, 3});
  EXPECT_TRUE(SameBytes(RunOne(Call("HcomAllToAll", x, {})), x));
  EXPECT_EQ(ranks_.calls().back(), "AllToAll count=6 int64 node=node_under_test");
}

TEST_F(Collective, AllToAllVEndsWithItsLastBlock) {
  const Tensor x = FromDoubles(DataType::kInt32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor y = RunOne(AllToAllV(x, {{2, 1}, {0, 5}, {2, 1}, {0, 3}}));
  EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kInt32, {4}, {1, 2, 0, 6}))) << "with a gap";
  EXPECT_EQ(ranks_.calls().back(),
            "AllToAllV send=[2, 1]@[0, 5] recv=[2, 1]@[0, 3] int32 node=node_under_test");
  EXPECT_EQ(RunOne(AllToAllV(x, {{0, 0}, {0, 0}, {0, 0}, {0, 0}})).shape(), (Shape{0}));
}

TEST_F(Collective, AllToAllVCPacksByTheMatrix) {
  const Tensor x = FromDoubles(DataType::kInt32, {3}, {1, 2, 3});
  const auto rank = std::pair<std::string, AttrValue>("rank", AttrValue::Int(0));
  const OpCall call =
      WithLists("HcomAllToAllVC", "send_data", x, {{"send_count_matrix", {1, 2, 3, 0}}}, {rank});
  EXPECT_EQ(RunOne(call).shape(), (Shape{4}));
  EXPECT_EQ(ranks_.calls().back(), "AllToAllVC matrix=[1, 2, 3, 0] int32 node=node_under_test");
}

TEST_F(Collective, ReduceLeavesZeroElsewhere) {
  const Tensor x = FromDoubles(DataType::kFloat, {2}, {3, 4});
  for (const int64_t root : {0, 1}) {
    const Tensor y = RunOne(Call("HcomReduce", x, {{"root_rank", AttrValue::Int(root)}, sum_}));
    EXPECT_TRUE(SameBytes(y, root == 0 ? x : FromDoubles(DataType::kFloat, {2}, {0, 0})));
    EXPECT_EQ(ranks_.calls().back(),
              fmt::format("Reduce count=2 float32 sum root={} node=node_under_test", root));
  }
}

TEST_F(Collective, AllGatherVPlacesBlocks) {
  const Tensor x = FromDoubles(DataType::kFloat, {2}, {3, 4});
  const Tensor packed =
      RunOne(WithLists("HcomAllGatherV", "x", x, {{"send_count", {2}}, {"recv_counts", {2, 1}}}));
  EXPECT_TRUE(SameBytes(packed, FromDoubles(DataType::kFloat, {3}, {3, 4, 3})));
  const Tensor spread = RunOne(
      WithLists("HcomAllGatherV", "x", x,
                {{"send_count", {2}}, {"recv_counts", {2, 1}}, {"recv_displacements", {2, 0}}}));
  EXPECT_TRUE(SameBytes(spread, FromDoubles(DataType::kFloat, {4}, {3, 0, 3, 4})));
  EXPECT_EQ(ranks_.calls().back(),
            "AllGatherV count=2 recv=[2, 1]@[2, 0] float32 node=node_under_test");
}

// TorchAir writes the displacements of tensors that are not cut evenly as empty constants.
TEST_F(Collective, EmptyDisplacementsMeanPackedBlocks) {
  const Tensor x = FromDoubles(DataType::kFloat, {2}, {3, 4});
  RunOne(WithLists("HcomAllGatherV", "x", x,
                   {{"send_count", {2}}, {"recv_counts", {2, 1}}, {"recv_displacements", {}}}));
  EXPECT_EQ(ranks_.calls().back(),
            "AllGatherV count=2 recv=[2, 1]@[0, 2] float32 node=node_under_test");
  const Tensor whole = FromDoubles(DataType::kInt8, {5}, {1, 2, 3, 4, 5});
  RunOne(WithLists("HcomReduceScatterV", "x", whole,
                   {{"recv_count", {2}}, {"send_counts", {2, 3}}, {"send_displacements", {}}},
                   {sum_}));
  EXPECT_EQ(ranks_.calls().back(),
            "ReduceScatterV send=[2, 3]@[0, 2] count=2 int8 sum node=node_under_test");
}

TEST_F(Collective, ReduceScatterVKeepsTheOwnBlock) {
  const Tensor x = FromDoubles(DataType::kInt8, {5}, {1, 2, 3, 4, 5});
  const Tensor y = RunOne(WithLists(
      "HcomReduceScatterV", "x", x,
      {{"recv_count", {2}}, {"send_counts", {2, 3}}, {"send_displacements", {3, 0}}}, {sum_}));
  EXPECT_TRUE(SameBytes(y, FromDoubles(DataType::kInt8, {2}, {4, 5})));
  EXPECT_EQ(ranks_.calls().back(),
            "ReduceScatterV send=[2, 3]@[3, 0] count=2 int8 sum node=node_under_test");
}

TEST_F(Collective, SendAndReceiveNameTheirPeer) {
  const auto tag = std::pair<std::string, AttrValue>("sr_tag", AttrValue::Int(7));
  const OpCall send = Call("HcomSend", Pattern(DataType::kFloat16, {2, 3}),
                           {tag, {"dest_rank", AttrValue::Int(1)}});
  const Result<std::vector<Tensor>> nothing = RunOp(send);
  ASSERT_TRUE(nothing.ok()) << nothing.status().ToString();
  EXPECT_EQ(ranks_.calls().back(), "Send count=6 float16 to=1 node=node_under_test");
  const OpCall receive{.type = "HcomReceive",
                       .inputs = {},
                       .attrs = {{"group", AttrValue::String("tp")},
                                 tag,
                                 {"src_rank", AttrValue::Int(1)},
                                 {"shape", AttrValue::Ints({2, 2})},
                                 {"dtype", AttrValue::Type(DataType::kInt8)}},
                       .groups = &ranks_};
  EXPECT_TRUE(SameBytes(RunOne(receive), FromDoubles(DataType::kInt8, {2, 2}, {1, 1, 1, 1})));
  EXPECT_EQ(ranks_.calls().back(), "Recv count=4 int8 from=1 node=node_under_test");
}

// What HcomSend sends, HcomReceive takes.
TEST_F(Collective, ReceivesATensorWithoutElements) {
  const OpCall receive{.type = "HcomReceive",
                       .inputs = {},
                       .attrs = {{"group", AttrValue::String("tp")},
                                 {"sr_tag", AttrValue::Int(0)},
                                 {"src_rank", AttrValue::Int(1)},
                                 {"shape", AttrValue::Ints({2, 0})},
                                 {"dtype", AttrValue::Type(DataType::kFloat)}},
                       .groups = &ranks_};
  EXPECT_TRUE(SameBytes(RunOne(receive), FromDoubles(DataType::kFloat, {2, 0}, {})));
  EXPECT_EQ(ranks_.calls().back(), "Recv count=0 float32 from=1 node=node_under_test");
}

// ---- errors ----

TEST_F(Collective, RefusesMessagesThatCannotBe) {
  const struct {
    int64_t tag, peer;
    std::vector<int64_t> shape;
    const char* says;
  } rows[] = {
      {-1, 1, {2}, "sr_tag is -1"},
      {0, 0, {2}, "src_rank 0 is this rank itself"},
      {0, 2, {2}, "src_rank 2 is outside of group \"tp\" with 2 members"},
      {0, 1, {2, -1}, "shape has a dimension of -1, expected 0 or more"},
  };
  for (const auto& row : rows) {
    const OpCall receive{.type = "HcomReceive",
                         .inputs = {},
                         .attrs = {{"group", AttrValue::String("tp")},
                                   {"sr_tag", AttrValue::Int(row.tag)},
                                   {"src_rank", AttrValue::Int(row.peer)},
                                   {"shape", AttrValue::Ints(row.shape)},
                                   {"dtype", AttrValue::Type(DataType::kInt8)}},
                         .groups = &ranks_};
    ExpectFails(receive, Code::kInvalidArgument, {row.says});
  }
}

TEST_F(Collective, RefusesListsThatDoNotFit) {
  const Tensor x = Pattern(DataType::kFloat, {4});
  const auto rank = [](int64_t r) {
    return std::vector<std::pair<std::string, AttrValue>>{{"rank", AttrValue::Int(r)}};
  };
  const auto matrix = [&](std::vector<int64_t> counts, int64_t r) {
    return WithLists("HcomAllToAllVC", "send_data", x, {{"send_count_matrix", std::move(counts)}},
                     rank(r));
  };
  const auto gather = [&](int64_t own, std::vector<int64_t> counts) {
    return WithLists("HcomAllGatherV", "x", x,
                     {{"send_count", {own}}, {"recv_counts", std::move(counts)}});
  };
  const std::pair<OpCall, const char*> rows[] = {
      {matrix({1, 1, 1, 1}, 1), "rank is 1, but this is rank 0"},
      {matrix({1, 1, 1}, 0), "has 3 entries, expected 4"},
      {matrix({1, -1, 1, 1}, 0), "-1 elements from rank 0 to rank 1"},
      {matrix({1, INT64_MAX, 1, 1}, 0), "elements from rank 0 to rank 1"},
      {matrix({1, 4, 1, 1}, 0), "5 elements are to be sent"},
      {gather(1, {2, 1}), "\"send_count\" is 1, but \"recv_counts\" says 2"},
      {gather(5, {5, 1}), "\"send_count\" is 5, but \"x\" is float32[4]"},
      {gather(2, {2}), "1 entries"},
      {gather(2, {2, INT64_MAX}), "are no block"},
      {WithLists("HcomReduceScatterV", "x", x, {{"recv_count", {2}}, {"send_counts", {2, 3}}},
                 {sum_}),
       "end at element 5"},
  };
  for (const auto& [call, says] : rows) {
    ExpectFails(call, Code::kInvalidArgument, {says});
  }
}

TEST_F(Collective, NeedsOtherRanks) {
  OpCall call = Call("HcomAllReduce", Pattern(DataType::kFloat, {2}), {sum_});
  call.groups = nullptr;
  ExpectFails(call, Code::kUnsupported, {"\"tp\"", "without other ranks"});
  call = Call("HcomAllGather", Pattern(DataType::kFloat, {2}), {two_});
  call.groups = nullptr;
  ExpectFails(call, Code::kUnsupported, {"\"tp\"", "without other ranks"});
}

TEST_F(Collective, NamesUnknownAndForeignGroups) {
  OpCall call = Call("HcomAllReduce", Pattern(DataType::kFloat, {2}), {sum_});
  call.attrs[0].second = AttrValue::String("dp");
  ExpectFails(call, Code::kNotFound, {"\"dp\""});
  call = Call("HcomAllGather", Pattern(DataType::kFloat, {2}), {two_});
  call.attrs[0].second = AttrValue::String("others");
  ExpectFails(call, Code::kInvalidArgument, {"no member of group \"others\""});
  call.attrs.erase(call.attrs.begin());
  ExpectFails(call, Code::kNotFound, {"hccl_world_group"});
}

TEST_F(Collective, RankSizeMustBeTheGroupSize) {
  const auto three = std::pair<std::string, AttrValue>("rank_size", AttrValue::Int(3));
  const Tensor x = Pattern(DataType::kFloat, {6});
  for (const OpCall& call :
       {Call("HcomAllGather", x, {three}), Call("HcomReduceScatter", x, {sum_, three})}) {
    ExpectFails(call, Code::kCorrupt, {"\"rank_size\" is 3", "\"tp\" has 2 members"});
  }
}

TEST_F(Collective, FirstDimensionMustDivide) {
  const Tensor odd = Pattern(DataType::kFloat, {3, 2});
  const Tensor scalar = Pattern(DataType::kFloat, {});
  for (const Tensor& x : {odd, scalar}) {
    ExpectFails(Call("HcomReduceScatter", x, {sum_, two_}), Code::kInvalidArgument,
                {x.type().ToString(), "2 ranks"});
    ExpectFails(Call("HcomAllToAll", x, {}), Code::kInvalidArgument,
                {x.type().ToString(), "2 ranks"});
  }
}

TEST_F(Collective, RefusesUnknownReductionsTypesRootsAndFusions) {
  const Tensor x = Pattern(DataType::kFloat, {2});
  ExpectFails(Call("HcomAllReduce", x, {{"reduction", AttrValue::String("avg")}}),
              Code::kInvalidArgument, {"\"avg\"", "sum, prod, max or min"});
  ExpectFails(Call("HcomAllReduce", Tensor::Allocate({DataType::kComplex64, {2}}), {sum_}),
              Code::kUnsupported, {"complex64"});
  ExpectFails(Call("HcomAllGather", x, {two_, {"fusion", AttrValue::Int(1)}}),
              Code::kInvalidArgument, {"fusion 1"});
  ExpectFails(Call("HcomAllReduce", x, {sum_, {"fusion", AttrValue::Int(2)}}),
              Code::kInvalidArgument, {"fusion 2", "fusion_id -1"});
  for (const int64_t root : {-1, 2}) {
    OpCall call{.type = "HcomBroadcast",
                .inputs = {{"x0", x}},
                .attrs = {{"group", AttrValue::String("tp")}, {"root_rank", AttrValue::Int(root)}},
                .groups = &ranks_};
    ExpectFails(call, Code::kInvalidArgument, {"root_rank " + std::to_string(root), "2 members"});
  }
  OpCall unequal{.type = "HcomBroadcast",
                 .inputs = {{"x0", x}, {"x1", x}},
                 .attrs = {{"group", AttrValue::String("tp")}, {"root_rank", AttrValue::Int(0)}},
                 .groups = &ranks_};
  ExpectFails(unequal, Code::kCorrupt, {"2 inputs", "1 outputs"});
}

TEST_F(Collective, RefusesBlocksThatDoNotFit) {
  const Tensor x = Pattern(DataType::kFloat, {4});
  ExpectFails(AllToAllV(x, {{1, 1, 1}, {0, 1}, {1, 1}, {0, 1}}), Code::kInvalidArgument,
              {"send_counts", "3 entries", "2 ranks"});
  ExpectFails(AllToAllV(x, {{1, 1}, {0, 1}, {1, 1}, {0}}), Code::kInvalidArgument,
              {"recv_displacements"});
  ExpectFails(AllToAllV(x, {{1, 4}, {0, 1}, {1, 1}, {0, 1}}), Code::kInvalidArgument,
              {"end at element 5", "float32[4]"});
  ExpectFails(AllToAllV(x, {{1, -1}, {0, 1}, {1, 1}, {0, 1}}), Code::kInvalidArgument,
              {"-1 elements", "rank 1"});
  ExpectFails(AllToAllV(x, {{1, 1}, {0, 1}, {INT64_MAX, 1}, {1, 1}}), Code::kInvalidArgument,
              {"recv_counts"});
  OpCall unknown = AllToAllV(x, {{1, 1}, {0, 1}, {1, 1}, {0, 1}});
  unknown.inputs[3].known = Known::kNo;
  ExpectFails(unknown, Code::kUnsupported, {"recv_counts"});
}

}  // namespace
}  // namespace npumesh
