// Tokens enough to travel in chunks: the bits of the same tokens sent in as many calls, with ranks
// that have different numbers of tokens, and experts that get many and none.
#include <gtest/gtest.h>

#include <random>

#include "tests/ranks/operators/rank_op.h"

namespace npumesh {
namespace {

constexpr int64_t kMost = 768;   // tokens of rank 0, three chunks
constexpr int64_t kPiece = 256;  // tokens of a chunk
constexpr int64_t kPieces = kMost / kPiece;
constexpr int64_t kChunkedChoices = 2;
constexpr int64_t kChunkedExperts = 8;

// What a rank gives to the experts.
struct Tokens {
  Tensor x;
  Tensor ids;
  Tensor weights;
  int64_t count = 0;

  // Tokens of one piece.
  Tokens Piece(int64_t piece) const;
};

Tokens Tokens::Piece(int64_t piece) const {
  const int64_t first = piece * kPiece;
  const int64_t size = std::min(kPiece, count - first);
  return {RowsOf(x, first, size), RowsOf(ids, first, size), RowsOf(weights, first, size), size};
}

// Most choices fall on expert 1, none on expert 5.
Tokens TokensOf(int rank, int64_t width) {
  std::mt19937 random(static_cast<uint32_t>(rank));
  Tokens tokens;
  tokens.count = kMost - 60 * rank;
  std::vector<double> x, weights;
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < tokens.count; ++t) {
    for (int64_t i = 0; i < width; ++i) x.push_back(random() % 2001 / 977.0 - 1);
    const int32_t others[] = {0, 2, 3, 4, 6, 7};
    const int32_t second = others[random() % 6];
    ids.insert(ids.end(), {random() % 8 == 0 ? others[(random() % 5 + second) % 6] : 1, second});
    if (ids[ids.size() - 2] == second) ids[ids.size() - 2] = 1;
    weights.insert(weights.end(), {random() % 100 / 64.0, random() % 100 / 128.0});
  }
  tokens.x = FromDoubles(DataType::kFloat16, {tokens.count, width}, x);
  tokens.ids = Make<int32_t>(DataType::kInt32, {tokens.count, kChunkedChoices}, ids);
  tokens.weights = FromDoubles(DataType::kFloat, {tokens.count, kChunkedChoices}, weights);
  return tokens;
}

std::vector<std::pair<std::string, AttrValue>> Attrs(Communicator& group, int64_t most) {
  return {{"group_ep", AttrValue::String("ranks")},
          {"ep_world_size", AttrValue::Int(group.size())},
          {"ep_rank_id", AttrValue::Int(group.rank())},
          {"moe_expert_num", AttrValue::Int(kChunkedExperts)},
          {"global_bs", AttrValue::Int(most * group.size())}};
}

OpCall DispatchTokens(const Tokens& tokens, int64_t quant, Communicator& group, int64_t most) {
  OpCall call{.type = "MoeDistributeDispatchV2",
              .inputs = {{"x", tokens.x}, {"expert_ids", tokens.ids}},
              .attrs = Attrs(group, most)};
  call.attrs.push_back({"quant_mode", AttrValue::Int(quant)});
  return call;
}

// Rows [first, end) of an output in bytes.
std::string BytesOf(const Tensor& rows, int64_t first, int64_t end) {
  const auto row = static_cast<int64_t>(rows.bytes()) / rows.shape()[0];
  return std::string(reinterpret_cast<const char*>(rows.data()) + first * row,
                     static_cast<size_t>((end - first) * row));
}

// Where the rows of each (expert, rank) begin, and the end.
std::vector<int64_t> Bounds(const Tensor& ends) {
  std::vector<int64_t> bounds = {0};
  for (const int32_t end : ValuesOf<int32_t>(ends)) bounds.push_back(end);
  return bounds;
}

void ExpectDispatchOfPieces(const std::vector<Tensor>& whole,
                            const std::vector<std::vector<Tensor>>& pieces) {
  const std::vector<int64_t> bounds = Bounds(whole[4]);
  for (const int output : {0, 1, 6}) {  // expand_x, dynamic_scales, expand_scales
    const auto port = static_cast<size_t>(output);
    for (size_t block = 0; block + 1 < bounds.size(); ++block) {
      std::string want;
      for (const std::vector<Tensor>& piece : pieces) {
        const std::vector<int64_t> part = Bounds(piece[4]);
        want += BytesOf(piece[port], part[block], part[block + 1]);
      }
      EXPECT_EQ(BytesOf(whole[port], bounds[block], bounds[block + 1]) == want, true)
          << "output " << output << ", block " << block;
    }
    const Tensor& rows = whole[port];
    const std::string behind = BytesOf(rows, bounds.back(), rows.shape()[0]);
    EXPECT_EQ(behind.find_first_not_of('\0'), std::string::npos) << "behind the last row";
  }
}

Result<std::vector<Tensor>> CombineTokens(const Tokens& tokens, const std::vector<Tensor>& arrived,
                                          const Tensor& results, Communicator& group,
                                          DeviceMemory& memory, int64_t most) {
  return RunOnRank(BuiltinOps(),
                   {.type = "MoeDistributeCombineV2",
                    .inputs = {{"expand_x", results},
                               {"expert_ids", tokens.ids},
                               {"assist_info_for_combine", arrived[2]},
                               {"ep_send_counts", arrived[4]},
                               {"expert_scales", tokens.weights}},
                    .attrs = Attrs(group, most)},
                   group, memory);
}

TEST(ExpertChunks, DispatchHasTheBitsOfItsPieces) {
  for (const int ranks : {2, 4}) {
    for (const int64_t quant : {0, 2}) {
      ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
        // A token has 2 KiB on its way.
        const Tokens tokens = TokensOf(group.rank(), quant == 0 ? 1024 : 2048);
        const auto run = [&](const Tokens& some, int64_t most) {
          return RunOnRank(BuiltinOps(), DispatchTokens(some, quant, group, most), group, memory);
        };
        std::vector<std::vector<Tensor>> pieces;
        for (int64_t piece = 0; piece < kPieces; ++piece) {
          const uint64_t before = group.totals().calls;
          NPUMESH_ASSIGN_OR_RETURN(pieces.emplace_back(), run(tokens.Piece(piece), kPiece));
          EXPECT_EQ(group.totals().calls - before, 2u) << "counts and one chunk";
        }
        const uint64_t before = group.totals().calls;
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> whole, run(tokens, kMost));
        EXPECT_EQ(group.totals().calls - before, 1 + 3u) << "counts and three chunks";
        ExpectDispatchOfPieces(whole, pieces);
        return Status();
      }));
    }
  }
}

TEST(ExpertChunks, CombineHasTheBitsOfItsPieces) {
  for (const int ranks : {2, 4}) {
    ExpectAllOk(OnRanks(ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const Tokens tokens = TokensOf(group.rank(), 1024);
      const auto send = [&](const Tokens& some, int64_t most) -> Result<std::vector<Tensor>> {
        NPUMESH_ASSIGN_OR_RETURN(
            const std::vector<Tensor> arrived,
            RunOnRank(BuiltinOps(), DispatchTokens(some, 0, group, most), group, memory));
        return CombineTokens(some, arrived, arrived[0], group, memory, most);
      };
      std::string want;
      for (int64_t piece = 0; piece < kPieces; ++piece) {
        NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y, send(tokens.Piece(piece), kPiece));
        want += BytesOf(y[0], 0, y[0].shape()[0]);
      }
      const uint64_t before = group.totals().calls;
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y, send(tokens, kMost));
      EXPECT_EQ(group.totals().calls - before, (1 + 3) + (2 + 3u)) << "both in three chunks";
      EXPECT_EQ(BytesOf(y[0], 0, tokens.count) == want, true);
      return Status();
    }));
  }
}

// A rank whose batch is empty still has experts for the tokens of others.
TEST(ExpertChunks, ARankWithoutTokens) {
  ExpectAllOk(OnRanks(2, [](Communicator& group, DeviceMemory& memory) -> Status {
    Tokens tokens = TokensOf(0, 8).Piece(0);
    if (group.rank() == 1) {
      tokens = {Tensor::Allocate({DataType::kFloat16, {0, 8}}),
                Tensor::Allocate({DataType::kInt32, {0, kChunkedChoices}}),
                Tensor::Allocate({DataType::kFloat, {0, kChunkedChoices}}), 0};
    }
    NPUMESH_ASSIGN_OR_RETURN(
        const std::vector<Tensor> arrived,
        RunOnRank(BuiltinOps(), DispatchTokens(tokens, 0, group, kPiece), group, memory));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> y,
                             CombineTokens(tokens, arrived, arrived[0], group, memory, kPiece));
    EXPECT_EQ(y[0].shape(), (Shape{tokens.count, 8}));
    const std::vector<double> x = ToDoubles(tokens.x), weights = ToDoubles(tokens.weights);
    std::vector<double> want;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t token = i / 8;
      want.push_back(
          static_cast<double>(static_cast<float>(weights[2 * token]) * static_cast<float>(x[i])) +
          static_cast<double>(static_cast<float>(weights[2 * token + 1]) *
                              static_cast<float>(x[i])));
    }
    EXPECT_TRUE(SameBytes(y[0], FromDoubles(DataType::kFloat16, y[0].shape(), want)));
    return Status();
  }));
}

}  // namespace
}  // namespace npumesh
