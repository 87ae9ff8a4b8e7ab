// MoeDistributeDispatch and MoeDistributeCombine over ranks, of both versions: what a token gets
// back is the weighted sum of what its experts made of it, wherever they live.
#include <gtest/gtest.h>

#include "tests/ranks/operators/expert_scene.h"

namespace npumesh {
namespace {

std::vector<double> Expected(const Scene& scene, int rank) {
  const std::vector<int32_t> ids = Ids(scene, rank);
  std::vector<double> y;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t i = 0; i < kWidth; ++i) {
      const double x = Element(rank, t, i);
      const auto of_expert = [&](int64_t id) { return Rounded(scene.dtype, x * Factor(id)); };
      double sum = scene.shared_ranks > 0 && IsActive(scene, t) ? of_expert(-1) : 0;
      for (int64_t k = 0; k < kChoices && IsActive(scene, t); ++k) {
        const int64_t id = ids[static_cast<size_t>(t * kChoices + k)];
        const int64_t special = id - kExperts;
        sum += Weight(t, k) * (special < 0    ? of_expert(id)
                               : special == 0 ? 0
                               : special == 1 ? x
                                              : 2 * x + 3);
      }
      y.push_back(sum);
    }
  }
  return y;
}

TEST(ExpertParallel, TokensComeBackSummed) {
  for (const Scene& scene : {Scene{1}, Scene{2}, Scene{3}, Scene{2, 0, 0, true}, Scene{4, 1},
                             Scene{4, 2}, Scene{3, 0, 0, false, 3}, Scene{2, 0, 0, false, 0, ""},
                             Scene{3, 0, 0, true, 0, ""}, Scene{4, 1, 0, false, 0, ""}}) {
    SCOPED_TRACE(fmt::format("{} ranks, {} shared, version \"{}\"", scene.ranks, scene.shared_ranks,
                             scene.version));
    ExpectAllOk(OnRanks(scene.ranks, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const OpCall dispatch = Dispatch(scene, group.rank());
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                               RunOnRank(BuiltinOps(), dispatch, group, memory));
      NPUMESH_ASSIGN_OR_RETURN(
          const std::vector<Tensor> y,
          RunOnRank(BuiltinOps(), Combine(scene, group.rank(), dispatch, arrived), group, memory));
      EXPECT_EQ(ToDoubles(y[0]), Expected(scene, group.rank())) << "rank " << group.rank();
      return Status();
    }));
  }
}

TEST(ExpertParallel, TheSumIsAddedAndNormalised) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    const Scene scene{2, 0, 0, true, 0, "V2", dtype};
    ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
      const OpCall dispatch = Dispatch(scene, group.rank());
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                               RunOnRank(BuiltinOps(), dispatch, group, memory));
      OpCall call = Combine(scene, group.rank(), dispatch, arrived);
      const Tensor residual = Pattern(dtype, {kTokens, 1, kWidth}, group.rank());
      const Tensor gamma = FromDoubles(dtype, {kWidth}, {1, -2, 0.75, 3});
      call.type = "MoeDistributeCombineAddRmsNorm";
      call.inputs.push_back({"residual_x", residual});
      call.inputs.push_back({"gamma", gamma});
      call.attrs.push_back({"norm_eps", AttrValue::Float(0.5f)});
      NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> out,
                               RunOnRank(BuiltinOps(), call, group, memory));
      const std::vector<double> sums = Expected(scene, group.rank());
      std::vector<double> x, y, rstd;
      for (size_t i = 0; i < sums.size(); ++i) {
        x.push_back(Rounded(dtype, sums[i] + ToDoubles(residual)[i]));
      }
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t row = i / kWidth * kWidth;
        double squares = 0;
        for (size_t d = row; d < row + kWidth; ++d) squares += x[d] * x[d];
        const double root = Rounded(DataType::kFloat, 1 / std::sqrt(squares / kWidth + 0.5));
        if (i == row) rstd.push_back(root);
        const double scaled = Rounded(dtype, Rounded(DataType::kFloat, x[i] * root));
        y.push_back(scaled * ToDoubles(gamma)[i - row]);
      }
      EXPECT_TRUE(SameBytes(out[0], FromDoubles(dtype, {kTokens, 1, kWidth}, y)));
      EXPECT_TRUE(SameBytes(out[1], FromDoubles(DataType::kFloat, {kTokens, 1, 1}, rstd)));
      EXPECT_TRUE(SameBytes(out[2], FromDoubles(dtype, {kTokens, 1, kWidth}, x)));
      return Status();
    }));
  }
}

// Rows come by local expert, then by rank, then by token.
TEST(ExpertParallel, ArrivesInOrder) {
  const Scene scene{2};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                             RunOnRank(BuiltinOps(), Dispatch(scene, group.rank()), group, memory));
    std::vector<double> first, ends, counts;
    for (int64_t e = 3 * group.rank(); e < 3 * group.rank() + 3; ++e) {
      const size_t before = first.size();
      for (int r = 0; r < 2; ++r) {
        const std::vector<int32_t> ids = Ids(scene, r);
        for (size_t p = 0; p < ids.size(); ++p) {
          if (ids[p] == e) first.push_back(Element(r, static_cast<int64_t>(p) / 2, 0));
        }
        ends.push_back(static_cast<double>(first.size()));
      }
      counts.push_back(static_cast<double>(first.size() - before));
    }
    EXPECT_EQ(arrived[0].shape(), (Shape{20, kWidth}));
    const std::vector<double> rows = ToDoubles(arrived[0]);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(rows[i * kWidth], first[i]) << i;
    EXPECT_EQ(ToDoubles(arrived[3]), counts);
    EXPECT_EQ(ToDoubles(arrived[4]), ends);
    return Status();
  }));
}

// The hand-over of the first version has a number for each choice of a token.
TEST(ExpertParallel, FirstVersionNumbersTheChoicesOfAnExpert) {
  const Scene scene{2, 0, 0, false, 0, ""};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                             RunOnRank(BuiltinOps(), Dispatch(scene, group.rank()), group, memory));
    const std::vector<int32_t> ids = Ids(scene, group.rank());
    std::vector<double> want;
    for (size_t i = 0; i < ids.size(); ++i) {
      want.push_back(static_cast<double>(
          std::count(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i), ids[i])));
    }
    EXPECT_EQ(ToDoubles(arrived[2]), want);
    return Status();
  }));
}

TEST(ExpertParallel, DynamicScalesTravelAlong) {
  const Scene scene{2, 0, 2};
  ExpectAllOk(OnRanks(2, [&](Communicator& group, DeviceMemory& memory) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Tensor> arrived,
                             RunOnRank(BuiltinOps(), Dispatch(scene, group.rank()), group, memory));
    EXPECT_EQ(arrived[0].dtype(), DataType::kInt8);
    const std::vector<double> rows = ToDoubles(arrived[0]);
    const std::vector<double> scales = ToDoubles(arrived[1]);
    const auto total = static_cast<size_t>(ToDoubles(arrived[4]).back());
    for (size_t i = 0; i < total; ++i) {
      const int32_t* from = arrived[2].as<int32_t>().data() + i * 128;
      EXPECT_EQ(rows[i * kWidth + kWidth - 1], 127) << "the last element is the largest";
      EXPECT_NEAR(scales[i] * 127, Element(from[0], from[1], kWidth - 1), 1e-4);
    }
    return Status();
  }));
}
}  // namespace
}  // namespace npumesh
