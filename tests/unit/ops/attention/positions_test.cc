// RopeWithSinCosCache and GatherPaKvCache against the definitions, with drawn shapes.
#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

int64_t Between(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.Bits() % static_cast<uint64_t>(most - least + 1));
}

TEST(RopeWithSinCosCache, RandomPositions) {
  Random random(20261205);
  for (int turn = 0; turn < 120; ++turn) {
    const DataType types[] = {kF32, kF16, kBf16};
    const DataType dtype = types[turn % 3];
    const int64_t tokens = Between(random, 1, 5), half = Between(random, 3, 9),
                  head = 2 * half + (turn % 4 == 0 ? Between(random, 0, 4) : 0), places = 7;
    const int64_t heads[] = {Between(random, 1, 3), Between(random, 1, 2)};
    const bool three = turn % 2 == 0, by_turns = turn % 4 == 2, neox = turn % 5 < 3;
    std::vector<int64_t> sections = {0, 0, 0};
    if (three) {
      sections[1] = Between(random, 0, half / 3);
      sections[2] = Between(random, 0, half / 3);
      sections[0] = half - sections[1] - sections[2];
    }
    const int64_t rows = three ? 3 : 1;
    std::vector<double> positions;
    for (int64_t i = 0; i < rows * tokens; ++i) {
      positions.push_back(static_cast<double>(Between(random, 0, places - 1)));
    }
    const Tensor table = Noise(dtype, {places, 2 * half}, turn);
    const Tensor x[] = {Noise(dtype, {tokens, heads[0] * head}, turn + 1),
                        Noise(dtype, {tokens, heads[1], head}, turn + 2)};
    const std::vector<Tensor> got = Results(
        {.type = "RopeWithSinCosCache",
         .inputs = {{"positions", FromDoubles(turn % 3 == 0 ? DataType::kInt32 : DataType::kInt64,
                                              three ? Shape{3, tokens} : Shape{tokens}, positions)},
                    {"queryIn", x[0]},
                    {"keyIn", x[1]},
                    {"cosSinCache", table}},
         .attrs = {{"numQHeads", AttrValue::Int(heads[0])},
                   {"numKHeads", AttrValue::Int(heads[1])},
                   {"headSize", AttrValue::Int(head)},
                   {"mropeSection", AttrValue::Ints(sections)},
                   {"cacheMode", AttrValue::Int(by_turns ? 1 : 0)},
                   {"isNeoxStyle", AttrValue::Bool(neox)}}});
    const std::vector<double> angles = ToDoubles(table);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      ASSERT_EQ(got[i].type(), x[i].type());
      std::vector<double> y = ToDoubles(x[i]);
      const std::vector<double> from = y;
      for (int64_t h = 0; h < tokens * heads[i]; ++h) {
        for (int64_t c = 0; c < half; ++c) {
          int64_t row = 0;
          if (three && by_turns) row = c < 3 * sections[1] ? c % 3 : 0;
          if (three && !by_turns) {
            row = c >= sections[0] + sections[1] ? 2 : c >= sections[0] ? 1 : 0;
          }
          const double place = positions[static_cast<size_t>(row * tokens + h / heads[i])];
          const auto entry = static_cast<size_t>(place) * static_cast<size_t>(2 * half);
          const double cos = angles[entry + static_cast<size_t>(c)],
                       sin = angles[entry + static_cast<size_t>(half + c)];
          const auto a = static_cast<size_t>(h * head + (neox ? c : 2 * c)),
                     b = static_cast<size_t>(h * head + (neox ? half + c : 2 * c + 1));
          y[a] = from[a] * cos - from[b] * sin;
          y[b] = from[b] * cos + from[a] * sin;
        }
      }
      SCOPED_TRACE("turn " + std::to_string(turn));
      ExpectNear(got[i], y);
    }
  }
}

// Rows of sequences out of pages, element by element.
TEST(GatherPaKvCache, RandomPages) {
  Random random(20261206);
  for (int turn = 0; turn < 120; ++turn) {
    const bool tiled = turn % 2 == 1, sums = turn % 3 == 0, starts = turn % 5 < 2;
    const DataType dtype = turn % 4 == 0 ? kInt8 : turn % 4 == 1 ? kF16 : kBf16;
    const int64_t blocks = Between(random, 1, 5), size = Between(random, 1, 4),
                  pages = Between(random, 1, 3), sequences = Between(random, 1, 3), tile = 4;
    const int64_t heads = Between(random, 1, 2), widths[] = {4 * Between(random, 1, 2), 4};
    std::vector<double> table, lengths, offsets;
    int64_t end = 0;
    if (sums) lengths.push_back(0);
    for (int64_t i = 0; i < sequences * pages; ++i) {
      table.push_back(static_cast<double>(Between(random, -1, blocks)));  // the ends name no page
    }
    for (int64_t s = 0; s < sequences; ++s) {
      const int64_t length = Between(random, 0, 5);
      end += length;
      lengths.push_back(static_cast<double>(sums ? end : length));
      offsets.push_back(static_cast<double>(Between(random, 0, 2) * size));
    }
    const int64_t tokens = std::max<int64_t>(1, end + Between(random, -1, 1));
    Tensor caches[2], rows[2];
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Shape shape = tiled ? Shape{blocks, heads * widths[i] / tile, size, tile}
                                : Shape{blocks, size, heads, widths[i]};
      caches[i] = Pattern(dtype, shape, turn + 1);
      rows[i] =
          FromDoubles(dtype, {tokens, heads, widths[i]},
                      std::vector<double>(static_cast<size_t>(tokens * heads * widths[i]), 9));
    }
    OpCall call = {
        .type = "GatherPaKvCache",
        .inputs = {{"key_cache", caches[0]},
                   {"value_cache", caches[1]},
                   {"block_tables", FromDoubles(DataType::kInt32, {sequences, pages}, table)},
                   {"seq_lens",
                    FromDoubles(DataType::kInt32, {static_cast<int64_t>(lengths.size())}, lengths)},
                   {"key", rows[0]},
                   {"value", rows[1]}},
        .attrs = {{"cache_mode", AttrValue::String(tiled ? "PA_NZ" : "Norm")},
                  {"is_seq_lens_cumsum", AttrValue::Bool(sums)}}};
    if (starts) {
      call.inputs.push_back({"seq_offset", FromDoubles(DataType::kInt32, {sequences}, offsets)});
    }
    const std::vector<Tensor> got = Results(call);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const int64_t width = heads * widths[i];
      const std::vector<double> cache = ToDoubles(caches[i]);
      std::vector<double> want = ToDoubles(rows[i]);
      int64_t row = 0;
      for (int64_t s = 0; s < sequences; ++s) {
        const double before = sums ? lengths[static_cast<size_t>(s)] : 0;
        const auto length =
            static_cast<int64_t>(lengths[static_cast<size_t>(s + (sums ? 1 : 0))] - before);
        for (int64_t t = 0; t < length && row < tokens; ++t, ++row) {
          const int64_t first = starts ? static_cast<int64_t>(offsets[static_cast<size_t>(s)]) : 0;
          const int64_t page = first / size + t / size;
          const double block = page < pages ? table[static_cast<size_t>(s * pages + page)] : -1;
          for (int64_t e = 0; e < width; ++e) {
            double& value = want[static_cast<size_t>(row * width + e)];
            if (block < 0 || block >= static_cast<double>(blocks)) {
              value = 0;
              continue;
            }
            const auto b = static_cast<int64_t>(block);
            const int64_t at =
                tiled ? ((b * (width / tile) + e / tile) * size + t % size) * tile + e % tile
                      : (b * size + t % size) * width + e;
            value = cache[static_cast<size_t>(at)];
          }
        }
      }
      EXPECT_EQ(ToDoubles(got[i]), want) << "turn " << turn;
    }
  }
}

}  // namespace
}  // namespace npumesh
